"""A segment that is not read as it stands, on its way through the translator: its plain text is
translated, with masks for placeholders and without capitals throughout; and its codes are placed in
what comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tmnmt.codes.apart import kept_apart
from tmnmt.codes.capitals import capitalised, in_capitals, recased
from tmnmt.codes.lent import borrowed, lent, with_ends
from tmnmt.codes.masked import mask
from tmnmt.codes.place import linked, place
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Source, Text, is_text
from tmnmt.formats.clean import clean
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.segments import Match, Translation
from tmnmt.text import match_tokens, token_spans

if TYPE_CHECKING:
    from tmnmt.engine.links import Array

Spans = list[tuple[int, int]]
ALIKE = 0.5  # fuzzy score of a translation and the target that it borrows places from


@dataclass(frozen=True)
class _Part:
    """A piece of the segment: what the model read, what it wrote, and the links of their words;
    None: nothing depends on them."""

    read: str
    written: str
    links: Array | None


class Coded:
    """One segment. `given` is its text as it came; `source` the same on one line, with placeholders
    as codes and, if it may have codes, the white space at its ends, too; `changed`: whether it had
    control characters."""

    def __init__(self, given: Source, size: Callable[[str], int]) -> None:
        """`size`: of a word, in subwords."""
        self._size = size
        if isinstance(given, Text):
            self.given = given
            self.source, self.changed = clean_codes(given)
        else:
            plain, self.changed = clean(given)
            self.given, self.source = Text(given), Text(plain)
        self._finds = not any(map(is_text, self.given.codes))  # else its reader has found them
        if self._finds:
            self.source = with_placeholders(self.source)
        self._in_capitals = in_capitals(self.source)
        self._masked = mask(self.source)
        self._parts: dict[int, _Part] = {}
        self._lent: Text | None = None
        self.is_taken = False  # from a memory, as it stands

    @property
    def is_plain(self) -> bool:
        """Whether the text is read as it stands, and can have no codes."""
        return not self.given.codes and not self.source.codes and not self._in_capitals

    @property
    def read(self) -> str:
        """The text as the model reads it, with masks, and as in a sentence."""
        text = self._masked.text
        return capitalised(recased(text, self._size)) if self._in_capitals else text.plain

    def asked(self, text: str) -> str:
        """A text of the segment as the memories are asked for what is like it."""
        if not self._in_capitals:
            return text
        return capitalised(recased(with_placeholders(Text(text)), self._size))

    def pieces(self, read: Sequence[str]) -> list[str]:
        """What the source has for texts that the model reads, which follow one another."""
        return [self._masked.original(start, end) for start, end in _found(read, self.read)]

    def said(self, written: str, read: str) -> str:
        """What the model wrote for what it read, with masks alone for the placeholders."""
        said = self._masked.again(written, read)
        return said.upper() if self._in_capitals else said

    @cached_property
    def is_linked(self) -> bool:
        """Whether places of codes depend on the links of words, whatever the model writes."""
        return any(number not in self._masked.masks for number in self._linked)

    @cached_property
    def _linked(self) -> list[int]:
        return linked(self.source, token_spans(self.source.plain))

    def take(self, match: Match) -> None:
        """Takes the target of a match, as a person wrote it, for the whole. One that something was
        put into does not lend its places."""
        self._masked, self.is_taken = mask(self.source, by_person=True), True
        self._in_capitals = False
        segment = match.segment
        if match.tgt == segment.tgt:
            pair = Text(segment.src, segment.src_codes), Text(segment.tgt, segment.tgt_codes)
            self._lent = lent(self.source, *pair)

    def wants_links(self, written: str, read: str) -> bool:
        """Whether places of codes depend on the links of what was written for what was read."""
        if self._lent is not None:
            return False
        if self.is_taken:
            return bool(self._linked)
        return self.is_linked or self._masked.lost(written, read)

    def borrow(self, written: str, matches: Sequence[Match]) -> bool:
        """Takes the places that a pair gives the same codes, for what was written for the whole;
        whether one does. It must be like what was written."""
        if self._masked.numbers or not self.is_linked:
            return False
        from tmnmt.engine.links import same_words

        tokens = match_tokens(written)
        for match in matches:
            pair = match.segment
            sides = Text(pair.src, pair.src_codes), Text(pair.tgt, pair.tgt_codes)
            theirs = borrowed(self.source, *sides) if pair.tgt_codes else None
            if theirs is not None and fuzzy_score(tokens, match_tokens(pair.tgt)) >= ALIKE:
                words, into = token_spans(pair.tgt), token_spans(written)
                links = same_words(pair.tgt, written).T
                self._lent = with_ends(self.source, place(theirs, written, words, into, links))
                return True
        return False

    def add(self, part: int, read: str, written: str, links: Array | None) -> None:
        """A piece of the translation; without links no place depends on them."""
        self._parts[part] = _Part(read, written, links)

    def finished(self, translation: Translation) -> Translation:
        """The translation of the whole segment, with its codes."""
        text = self._lent or kept_apart(self.source, self._placed())
        codes = tuple(c for c in text.codes if not is_text(c)) if self._finds else text.codes
        tokens = translation.tokens
        if self._in_capitals:
            tokens = tuple(replace(token, text=token.text.upper()) for token in tokens)
        return replace(
            translation,
            src=self.given.plain,
            tgt=text.plain,
            src_codes=self.given.codes,
            tgt_codes=codes,
            tokens=tokens,
        )

    def _placed(self) -> Text:
        parts = [self._parts[number] for number in sorted(self._parts)]
        target = " ".join(part.written for part in parts if part.written)
        source_words, read = _words([part.read for part in parts], self.read)
        target_words, written = _words([part.written for part in parts], target)
        links = np.zeros((len(target_words), len(source_words)))
        for part, rows, columns in zip(parts, written, read, strict=True):
            if part.links is not None:
                links[rows, columns] = part.links
        text = place(self._masked.text, target, source_words, target_words, links)
        return self._masked.unmasked(text)


def _found(parts: Sequence[str], text: str) -> Spans:
    """Where the parts stand in a text, one behind another."""
    spans, at = list[tuple[int, int]](), 0
    for part in parts:
        start = text.index(part, at)
        at = start + len(part)
        spans.append((start, at))
    return spans


def _words(parts: Sequence[str], text: str) -> tuple[Spans, list[slice]]:
    """The words of the parts, where they stand in the text; and which of them are of which part."""
    words, slices = list[tuple[int, int]](), list[slice]()
    for part, (start, _) in zip(parts, _found(parts, text), strict=True):
        first = len(words)
        words += [(start + a, start + b) for a, b in token_spans(part)]
        slices.append(slice(first, len(words)))
    return words, slices
