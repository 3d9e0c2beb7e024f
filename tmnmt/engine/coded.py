"""A segment with codes on its way through the translator: its plain text is translated, with masks
for placeholders, and the codes are placed in what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tmnmt.codes.lent import borrowed, lent, with_ends
from tmnmt.codes.masked import mask
from tmnmt.codes.place import linked, place
from tmnmt.codes.record import Text
from tmnmt.engine.links import Array, same_words
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.segments import Match, Segment, Translation
from tmnmt.text import match_tokens, token_spans

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
    """One segment. `given` is its text as it came, `source` the same on one line, with the white
    space at its ends as codes; `changed`: whether it had control characters."""

    def __init__(self, given: Text) -> None:
        self.given = given
        self.source, self.changed = clean_codes(given)
        self._masked = mask(self.source)
        self._parts: dict[int, _Part] = {}
        self._lent: Text | None = None
        self.is_taken = False  # from a memory, as it stands

    @property
    def read(self) -> str:
        """The text as the model reads it, with masks."""
        return self._masked.text.plain

    def pieces(self, read: Sequence[str]) -> list[str]:
        """What the source has for texts that the model reads, which follow one another."""
        return [self._masked.original(start, end) for start, end in _found(read, self.read)]

    def said(self, written: str, read: str) -> str:
        """What the model wrote for what it read, with masks alone for the placeholders."""
        return self._masked.again(written, read)

    @cached_property
    def is_linked(self) -> bool:
        """Whether places of codes depend on the links of words, whatever the model writes."""
        return any(number not in self._masked.masks for number in self._linked)

    @cached_property
    def _linked(self) -> list[int]:
        return linked(self.source, token_spans(self.source.plain))

    def take(self, segment: Segment) -> None:
        """Takes the target of a pair, as a person wrote it, for the whole."""
        self._masked, self.is_taken = mask(self.source, by_person=True), True
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
        text = self._lent or self._placed()
        return replace(
            translation,
            src=self.given.plain,
            tgt=text.plain,
            src_codes=self.given.codes,
            tgt_codes=text.codes,
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
