"""A segment that is not read as it stands, on its way through the translator: its plain text is
translated, with masks for placeholders and without capitals throughout; and its codes are placed in
what comes out."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tmnmt.codes.apart import kept_apart
from tmnmt.codes.capitals import as_sentences, in_capitals, pieces_in_capitals, recased
from tmnmt.codes.form import BY_FORM, Copied
from tmnmt.codes.lent import borrowed, lent, with_ends
from tmnmt.codes.masked import mask
from tmnmt.codes.masked_pair import MaskedPair, masked_pair
from tmnmt.codes.messages import Messages, messages
from tmnmt.codes.place import linked_codes, place
from tmnmt.codes.placeholders import ALL, with_placeholders
from tmnmt.codes.record import Code, Part, Source, Text, inline, is_text, joined, pairs
from tmnmt.codes.tags import html_tags, with_tags
from tmnmt.engine.verbatim import has_codes
from tmnmt.files.texts import string_of, text_of
from tmnmt.formats.clean import clean
from tmnmt.formats.clean_codes import clean_codes
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.numbers import mended
from tmnmt.segments import Match, Segment, Token, Translation
from tmnmt.text import match_tokens, token_spans

if TYPE_CHECKING:
    from tmnmt.engine.links import Array

Spans = list[tuple[int, int]]
MOST = 10**8  # words of both sides and codes, multiplied, that are placed together
_HALVES = ("open", "close")
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
    as codes, in a string tags, too, and, if it may have codes, the white space at its ends;
    `changed`: whether it had control characters."""

    def __init__(self, given: Source, size: Callable[[str], int], copied: Copied = BY_FORM) -> None:
        """`size`: of a word, in subwords; `copied`: what comes through besides the placeholders
        that the text's reader has found."""
        self._size = size
        if isinstance(given, Text):
            self.given = given
            self.source, self.changed = clean_codes(given)
        else:
            plain, self.changed = clean(given)
            self.given = Text(given)
            self.source = text_of(plain, breaks=False) if "<" in plain else Text(plain)
        self._is_string = isinstance(given, str)
        # those that the text's reader has found, by their markup; there are no others then
        self._placeholders = {code.markup for code in self.given.codes if is_text(code)}
        self._copied = copied
        usual = () if self._placeholders else ALL
        self._as_filed = with_placeholders(self.source, usual)  # nothing is copied for its form
        finders = [*usual, *copied.finders]
        self.source = with_placeholders(self.source, finders, copied.first)
        self.in_capitals = in_capitals(self.source)  # and read as a sentence
        self._masked = mask(self.source, reads=copied.reads)
        self._parts: dict[int, _Part] = {}
        self._lent: Text | None = None
        self._of_messages: list[Coded] = []  # where these are translated one by one
        self.is_taken = False  # from a memory, as it stands
        self._has_others = False  # a match was taken that has other codes

    def anew(self) -> Coded:
        """The same segment, of which nothing is translated yet."""
        other = copy.copy(self)
        other._parts = {}
        other._lent = None
        other._of_messages = []
        other.is_taken = False
        other._has_others = False
        return other

    @cached_property
    def messages(self) -> Messages | None:
        """Those among which an argument in the text chooses."""
        return messages(self.source)

    def by_message(self) -> list[Coded]:
        """Its messages as segments, out of whose translations its own is made."""
        texts = () if self.messages is None else self.messages.texts
        self._of_messages = [Coded(text, self._size, self._copied) for text in texts]
        return self._of_messages

    @property
    def linked_apart(self) -> list[Coded]:
        """The segments whose codes are placed by links: itself, or its messages."""
        return self._of_messages or [self]

    @property
    def is_plain(self) -> bool:
        """Whether the text is read as it stands, and can have no codes."""
        return not self.given.codes and not self.source.codes and not self.in_capitals

    @property
    def read(self) -> str:
        """The text as the model reads it, with masks, and as in a sentence."""
        text = self._masked.text
        return as_sentences(recased(text, self._size)) if self.in_capitals else text.plain

    def asked(self, text: str) -> str:
        """A text of the segment as the memories are asked for what is like it."""
        if not self.in_capitals:
            return text
        return as_sentences(recased(with_placeholders(Text(text)), self._size))

    def beside(self, pair: Segment) -> MaskedPair:
        """A pair as the model reads it beside the segment: with its masks."""
        return masked_pair(self._masked, pair.src, pair.tgt, self._copied)

    def pieces(self, read: Sequence[str]) -> list[str]:
        """What the source has for texts that the model reads, which follow one another: all of it
        for one that is all, though signs at its ends be read as nothing."""
        if [*read] == [self.read.strip()]:
            return [self.source.plain]
        return [self._masked.original(start, end) for start, end in _spans(read, self.read)]

    def said(self, written: str, read: str) -> str:
        """What the model wrote for what it read, with masks alone for the placeholders, and with
        the right number."""
        said = self._masked.again(written, read)
        if not self._masked.lost(said, read):
            said = mended(read, said)
        return said.upper() if self.in_capitals else said

    @property
    def has_tags_as_text(self) -> bool:
        return self._is_string and bool(inline(self.source.codes))

    def typed(self, text: str) -> str:
        """What was typed of a translation, as the model writes it: with masks, without tags."""
        if self.has_tags_as_text:
            text = with_tags(Text(text), html_tags).plain
        return self._masked.typed(text)

    def shown(self, written: str) -> str:
        """What the model wrote, with the placeholders of its masks, and in capitals where the
        source is."""
        shown = self._masked.shown(written)
        return shown.upper() if self.in_capitals else shown

    @cached_property
    def _is_linked(self) -> bool:
        """Whether places of codes depend on the links of words, whatever the model writes."""
        masks = set(self._masked.masks.values())
        return any(number not in masks for number in self._linked)

    @cached_property
    def _linked(self) -> list[int]:
        return linked_codes(self.source, token_spans(self.source.plain))

    def take(self, match: Match) -> None:
        """Takes the target of a match, as a person wrote it, for the whole, whatever it makes of
        what a model would copy for its form. One that something was put into does not lend its
        places."""
        self.source = self._as_filed
        self.__dict__.pop("_linked", None)
        self._masked = mask(self.source, by_person=True)
        self.is_taken = True
        self.in_capitals = False
        self._parts = {0: _Part(self.source.plain, match.tgt, None)}
        segment = match.segment
        self._has_others = not has_codes(match, self.source.codes)
        if match.tgt == segment.tgt:
            pair = Text(segment.src, segment.src_codes), Text(segment.tgt, segment.tgt_codes)
            self._lent = lent(self.source, *pair)
            if self._lent is None and self.messages is not None:  # its target has frames of its own
                self._lent = with_placeholders(pair[1])

    def add(self, number: int, read: str, translation: Translation, is_whole: bool) -> None:
        """The translation of the piece of this number, of which the model has read `read`; of no
        account where a target was taken for the whole."""
        if self.is_taken:
            return
        self._parts[number] = _Part(read, translation.tgt, None)
        if is_whole:
            is_same = translation.tgt == read
            self._lent = self.source if is_same else self._borrowed(translation)

    def unlinked(self) -> list[tuple[int, str, str]]:
        """The pieces whose links are wanted, since places of codes depend on them: number, what was
        read, and what was written for it."""
        if self._lent is not None or (self.is_taken and not self._linked):
            return []
        return [
            (number, part.read, part.written)
            for number, part in self._parts.items()
            if part.links is None
            and (self.is_taken or self._is_linked or self._masked.lost(part.written, part.read))
        ]

    def linked(self, part: int, links: Array) -> None:
        """The links of the words of a piece."""
        self._parts[part] = replace(self._parts[part], links=links)

    def _borrowed(self, translation: Translation) -> Text | None:
        """The codes in the places that a pair gives them, whose target is like the translation."""
        if self._masked.numbers or not self._is_linked:
            return None
        from tmnmt.engine.links import same_words

        said = translation.tgt
        tokens, into = match_tokens(said), token_spans(said)
        for match in translation.matches:
            pair = match.segment
            sides = Text(pair.src, pair.src_codes), Text(pair.tgt, pair.tgt_codes)
            theirs = borrowed(self.source, *sides) if pair.tgt_codes else None
            if theirs is not None and fuzzy_score(tokens, match_tokens(pair.tgt)) >= ALIKE:
                links = same_words(pair.tgt, said).T
                placed = place(theirs, said, token_spans(pair.tgt), into, links)
                return with_ends(self.source, placed)
        return None

    def finished(self, translation: Translation) -> Translation:
        """The translation of the whole segment, with its codes."""
        text = self._target()
        codes = tuple(c for c in text.codes if not is_text(c) or c.markup in self._placeholders)
        tgt, codes = (string_of(text), ()) if self._is_string else (text.plain, codes)
        tokens = translation.tokens
        if self.in_capitals:
            capitals = pieces_in_capitals([token.text for token in tokens])
            tokens = tuple(map(_shown_as, tokens, capitals))
        adapted = self._has_others and translation.origin == "memory"
        return replace(
            translation,
            origin="adapted" if adapted else translation.origin,
            src=self.given.plain,
            tgt=tgt,
            src_codes=self.given.codes,
            tgt_codes=codes,
            tokens=tokens,
            others=()
            if self._of_messages
            else tuple(replace(one, tgt=self.shown(one.tgt)) for one in translation.others),
        )

    def _target(self) -> Text:
        """The whole target with its codes, placeholders too."""
        if self._of_messages and self.messages is not None:
            return self.messages.joined([one._target() for one in self._of_messages])
        return self._lent or kept_apart(self.source, self._placed())

    def _placed(self) -> Text:
        parts = [self._parts[number] for number in sorted(self._parts)]
        target = " ".join(part.written for part in parts if part.written)
        source_words, read = _words([part.read for part in parts], self.read)
        target_words, written = _words([part.written for part in parts], target)
        size = len(target_words), len(source_words)
        if len(parts) > 1 and size[0] * size[1] * len(self.source.codes) > MOST:
            return self._masked.unmasked(self._by_pieces(parts))
        links = np.zeros(size)
        for part, rows, columns in zip(parts, written, read, strict=True):
            if part.links is not None:
                links[rows, columns] = part.links
        text = place(self._masked.text, target, source_words, target_words, links)
        return self._masked.unmasked(text)

    def _by_pieces(self, parts: Sequence[_Part]) -> Text:
        """The codes of every piece placed in that piece alone, for a segment too long to place all
        of them together. Where one half of a span is in another piece, codes keep their order."""
        places = list[Part]()
        waiting = deque(self._masked.text.codes)
        for number, (start, end) in enumerate(_spans([part.read for part in parts], self.read)):
            part, last = parts[number], number == len(parts) - 1
            codes = list[Code]()
            while waiting and (last or waiting[0].at < end):
                code = waiting.popleft()
                inside = start <= code.at and code.at + code.covers <= end
                at = min(max(code.at, start), end) - start
                codes.append(replace(code, at=at, covers=code.covers if inside else 0))
            words, into = token_spans(part.read), token_spans(part.written)
            links = np.zeros((len(into), len(words))) if part.links is None else part.links
            halves = sum(code.kind in _HALVES for code in codes) > 2 * len(pairs(codes))
            text = place(Text(part.read, tuple(codes)), part.written, words, into, links, halves)
            places += [" ", *text.parts()] if places and part.written else text.parts()
        return joined(places)


def _shown_as(token: Token, text: str) -> Token:
    return replace(token, text=text)


def _spans(parts: Sequence[str], text: str) -> Spans:
    """Where the parts stand in a text, one behind another."""
    spans = list[tuple[int, int]]()
    at = 0
    for part in parts:
        start = text.index(part, at)
        at = start + len(part)
        spans.append((start, at))
    return spans


def _words(parts: Sequence[str], text: str) -> tuple[Spans, list[slice]]:
    """The words of the parts, where they stand in the text; and which of them are of which part."""
    words, slices = list[tuple[int, int]](), list[slice]()
    for part, (start, _) in zip(parts, _spans(parts, text), strict=True):
        first = len(words)
        words += [(start + a, start + b) for a, b in token_spans(part)]
        slices.append(slice(first, len(words)))
    return words, slices
