"""Places for the codes of a segment in its target: as a pair of a memory has them, or where the
links of its words say."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tmnmt.codes.place import linked_codes, place
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Code, Part, Text, joined, pairs
from tmnmt.codes.transfer import borrowed, lent, with_ends
from tmnmt.filters.contract import Written
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.segments import Match, Translation
from tmnmt.text import match_tokens, token_spans

if TYPE_CHECKING:
    from tmnmt.engine.links import Array

Spans = list[tuple[int, int]]
MOST = 10**8  # words of both sides and codes, multiplied, that are placed together
_HALVES = ("open", "close")
ALIKE = 0.5  # fuzzy score of a translation and the target that it borrows places from


@dataclass(frozen=True)
class _Piece:
    """What the model read, what it wrote, and the links of their words; None: nothing depends on
    them."""

    read: str
    written: str
    links: Array | None = None


class Placement:
    """`source`, `read`: the segment as memories know it, and as the model reads it, with the same
    codes. `lent`: the whole target, where a pair gives its codes their places."""

    def __init__(self, source: Text, read: Text) -> None:
        self._source, self._read = source, read
        self._pieces: dict[int, _Piece] = {}
        self._is_taken = False  # from a memory, as it stands
        self.lent: Text | None = None

    @cached_property
    def masks(self) -> dict[int, str]:
        """The numbers that a model reads for placeholders, by the numbers of the codes."""
        own, read = (
            [one.plain[code.at : code.at + code.covers] for code in one.codes]
            for one in (self._source, self._read)
        )
        both = enumerate(zip(own, read, strict=True))
        return {number: name for number, (text, name) in both if name != text and name.isdigit()}

    @cached_property
    def _linked(self) -> list[int]:
        return linked_codes(self._source, token_spans(self._source.plain))

    @cached_property
    def _is_linked(self) -> bool:
        """Whether places of codes depend on the links of words, whatever the model writes."""
        return any(number not in self.masks for number in self._linked)

    def take(self, match: Match, is_split: bool) -> None:
        """The target of a match, for the whole. `is_split`: the source has messages, so that the
        target may have frames of its own."""
        self._is_taken = True
        self._pieces = {0: _Piece(self._source.plain, match.tgt)}
        segment = match.segment
        if match.tgt == segment.tgt:
            pair = Text(segment.src, segment.src_codes), Text(segment.tgt, segment.tgt_codes)
            self.lent = lent(self._source, *pair)
            if self.lent is None and is_split:
                self.lent = with_placeholders(pair[1])

    def add(self, number: int, read: str, translation: Translation, is_whole: bool) -> None:
        """The translation of the piece of this number, of which the model has read `read`; of no
        account where a target was taken for the whole."""
        if self._is_taken:
            return
        self._pieces[number] = _Piece(read, translation.tgt)
        if is_whole:
            is_same = translation.tgt == read
            self.lent = self._source if is_same else self._borrowed(translation)

    def unlinked(self) -> list[tuple[int, str, str]]:
        """The pieces whose links are wanted, since places of codes depend on them: number, what was
        read, and what was written for it."""
        if self.lent is not None or (self._is_taken and not self._linked):
            return []
        return [
            (number, piece.read, piece.written)
            for number, piece in self._pieces.items()
            if piece.links is None and (self._is_taken or self._is_linked or self._loses(piece))
        ]

    def _loses(self, piece: _Piece) -> bool:
        return Written(piece.written, piece.read, frozenset(self.masks.values())).loses_masks

    def link(self, piece: int, links: Array) -> None:
        """The links of the words of a piece."""
        self._pieces[piece] = replace(self._pieces[piece], links=links)

    def _borrowed(self, translation: Translation) -> Text | None:
        """The codes in the places that a pair gives them, whose target is like the translation."""
        if any(map(self._stands_for_text, self._source.codes)) or not self._is_linked:
            return None
        from tmnmt.engine.links import same_words

        said = translation.tgt
        tokens, into = match_tokens(said), token_spans(said)
        for match in translation.matches:
            pair = match.segment
            sides = Text(pair.src, pair.src_codes), Text(pair.tgt, pair.tgt_codes)
            theirs = borrowed(self._source, *sides) if pair.tgt_codes else None
            if theirs is not None and fuzzy_score(tokens, match_tokens(pair.tgt)) >= ALIKE:
                links = same_words(pair.tgt, said).T
                placed = place(theirs, said, token_spans(pair.tgt), into, links)
                return with_ends(self._source, placed)
        return None

    def _stands_for_text(self, code: Code) -> bool:
        covered = self._source.plain[code.at : code.at + code.covers]
        return code.kind in ("placeholder", "standalone") and bool(covered.strip())

    def placed(self) -> Text:
        """What was written for all pieces, with the codes of `read`."""
        pieces = [self._pieces[number] for number in sorted(self._pieces)]
        target = " ".join(piece.written for piece in pieces if piece.written)
        source_words, read = _words([piece.read for piece in pieces], self._read.plain)
        target_words, written = _words([piece.written for piece in pieces], target)
        size = len(target_words), len(source_words)
        if len(pieces) > 1 and size[0] * size[1] * len(self._source.codes) > MOST:
            return self._by_pieces(pieces)
        links = np.zeros(size)
        for piece, rows, columns in zip(pieces, written, read, strict=True):
            if piece.links is not None:
                links[rows, columns] = piece.links
        return place(self._read, target, source_words, target_words, links)

    def _by_pieces(self, pieces: Sequence[_Piece]) -> Text:
        """The codes of every piece placed in that piece alone, for a segment too long to place all
        of them together. Where one half of a span is in another piece, codes keep their order."""
        places = list[Part]()
        waiting = deque(self._read.codes)
        spans = spans_of([piece.read for piece in pieces], self._read.plain)
        for number, (start, end) in enumerate(spans):
            piece, last = pieces[number], number == len(pieces) - 1
            codes = list[Code]()
            while waiting and (last or waiting[0].at < end):
                code = waiting.popleft()
                inside = start <= code.at and code.at + code.covers <= end
                at = min(max(code.at, start), end) - start
                codes.append(replace(code, at=at, covers=code.covers if inside else 0))
            words, into = token_spans(piece.read), token_spans(piece.written)
            links = np.zeros((len(into), len(words))) if piece.links is None else piece.links
            halves = sum(code.kind in _HALVES for code in codes) > 2 * len(pairs(codes))
            text = place(Text(piece.read, tuple(codes)), piece.written, words, into, links, halves)
            places += [" ", *text.parts()] if places and piece.written else text.parts()
        return joined(places)


def spans_of(parts: Sequence[str], text: str) -> Spans:
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
    for part, (start, _) in zip(parts, spans_of(parts, text), strict=True):
        first = len(words)
        words += [(start + a, start + b) for a, b in token_spans(part)]
        slices.append(slice(first, len(words)))
    return words, slices
