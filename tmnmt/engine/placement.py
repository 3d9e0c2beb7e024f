"""Finds places for the codes of a segment in its target: as a pair of a memory has them, or where
the links of its words say."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tmnmt.codes.place import linked_codes, place
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Code, Part, Text, join_parts, pairs
from tmnmt.codes.transfer import borrowed, transfer_codes, with_ends
from tmnmt.filters.contract import MASK_NAME, ModelOutput
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.segments import Match, Translation
from tmnmt.text import match_tokens, token_spans

if TYPE_CHECKING:
    from tmnmt.engine.links import Array

Spans = list[tuple[int, int]]
MAX_CELLS = 10**8  # words of both sides and codes, multiplied, that are placed together
_HALVES = ("open", "close")
ALIKE = 0.5  # fuzzy score of a translation and the target that it borrows places from


@dataclass(frozen=True)
class _Piece:
    """What the model read, what it wrote, and the links of their words; None where nothing depends
    on the links."""

    model_text: str
    output: str
    links: Array | None = None


class Placement:
    """The places of the codes of one segment. `whole_target` is the whole target, where a pair
    gives its codes their places. `is_copied`: the target is the source or that of a match, as it
    stands."""

    def __init__(self, source: Text, model_text: Text) -> None:
        """source: the segment as memories know it.
        model_text: the segment as the model reads it, with the same codes."""
        self._source, self._model_text = source, model_text
        self._pieces: dict[int, _Piece] = {}
        self._is_taken = False  # from a memory, as it stands
        self.is_copied = False
        self.whole_target: Text | None = None

    @cached_property
    def masks(self) -> dict[int, str]:
        """What a model reads for placeholders as masks, by the numbers of the codes."""
        source_texts, model_texts = (
            [side.plain[code.at : code.at + code.covers] for code in side.codes]
            for side in (self._source, self._model_text)
        )
        text_pairs = enumerate(zip(source_texts, model_texts, strict=True))
        return {
            number: name
            for number, (text, name) in text_pairs
            if name != text and MASK_NAME.fullmatch(name)
        }

    @cached_property
    def _linked(self) -> list[int]:
        return linked_codes(self._source, token_spans(self._source.plain))

    @cached_property
    def _is_linked(self) -> bool:
        """Whether places of codes depend on the links of words, whatever the model writes."""
        return any(number not in self.masks for number in self._linked)

    def take(self, match: Match, is_split: bool) -> None:
        """Takes the target of a match for the whole segment.

        match: the match.
        is_split: whether the source has messages, so that the target may have other frames than the
        source."""
        self._is_taken = self.is_copied = True
        self._pieces = {0: _Piece(self._source.plain, match.tgt)}
        segment = match.segment
        if match.tgt == segment.tgt:
            pair = Text(segment.src, segment.src_codes), Text(segment.tgt, segment.tgt_codes)
            self.whole_target = transfer_codes(self._source, *pair)
            if self.whole_target is None and is_split:
                self.whole_target = with_placeholders(pair[1])
        else:
            self.whole_target = self._with_texts_of_codes(match.tgt)

    def _with_texts_of_codes(self, target: str) -> Text | None:
        """A target with the codes of the source, where each of them covers a text that stands in
        the target as often as in the source; None where another code is to be placed, too."""
        if not all(code.covers for code in self._source.codes):
            return None
        texts = sorted(code.markup for code in self._source.codes)
        placed = with_placeholders(Text(target))
        is_whole = sorted(code.markup for code in placed.codes) == texts
        return placed if is_whole else None

    def add(
        self,
        number: int,
        model_text: str,
        translation: Translation,
        is_whole: bool,
        links: Array | None = None,
    ) -> None:
        """Takes the translation of a piece. It does not count where a target was taken for the
        whole segment.

        number: the number of the piece.
        model_text: what the model has read of the piece.
        translation: the translation of the piece.
        is_whole: whether the piece is all of the segment.
        links: the links of its words, where they are known."""
        if self._is_taken:
            return
        self._pieces[number] = _Piece(model_text, translation.tgt, links)
        if is_whole:
            self.is_copied = translation.tgt == model_text
            self.whole_target = self._source if self.is_copied else self._borrowed(translation)

    def unlinked(self) -> list[tuple[int, str, str]]:
        """The pieces whose links are needed, because places of codes depend on them: the number,
        the text that was read, and the text that was written for it."""
        if self.whole_target is not None or (self._is_taken and not self._linked):
            return []
        return [
            (number, piece.model_text, piece.output)
            for number, piece in self._pieces.items()
            if piece.links is None and (self._is_taken or self._is_linked or self._loses(piece))
        ]

    def _loses(self, piece: _Piece) -> bool:
        return ModelOutput(
            piece.output, piece.model_text, frozenset(self.masks.values())
        ).loses_masks

    def link(self, piece: int, links: Array) -> None:
        """Takes the links of the words of a piece.

        piece: the number of the piece.
        links: (T, S) how much of every target word comes from every source word."""
        self._pieces[piece] = replace(self._pieces[piece], links=links)

    def _borrowed(self, translation: Translation) -> Text | None:
        """The codes in the places that a pair gives them, whose target is like the translation."""
        if any(map(self._stands_for_text, self._source.codes)) or not self._is_linked:
            return None
        from tmnmt.engine.links import same_words

        target = translation.tgt
        tokens, target_words = match_tokens(target), token_spans(target)
        for match in translation.matches:
            pair = match.segment
            sides = Text(pair.src, pair.src_codes), Text(pair.tgt, pair.tgt_codes)
            theirs = borrowed(self._source, *sides) if pair.tgt_codes else None
            if theirs is not None and fuzzy_score(tokens, match_tokens(pair.tgt)) >= ALIKE:
                links = same_words(pair.tgt, target).T
                placed = place(theirs, target, token_spans(pair.tgt), target_words, links)
                return with_ends(self._source, placed)
        return None

    def _stands_for_text(self, code: Code) -> bool:
        covered = self._source.plain[code.at : code.at + code.covers]
        return code.kind in ("placeholder", "standalone") and bool(covered.strip())

    def placed(self) -> Text:
        """What was written for all pieces, with the codes of the text that the model read."""
        pieces = [self._pieces[number] for number in sorted(self._pieces)]
        target = " ".join(piece.output for piece in pieces if piece.output)
        source_words, source_slices = _words(
            [piece.model_text for piece in pieces], self._model_text.plain
        )
        target_words, target_slices = _words([piece.output for piece in pieces], target)
        size = len(target_words), len(source_words)
        if len(pieces) > 1 and size[0] * size[1] * len(self._source.codes) > MAX_CELLS:
            return self._by_pieces(pieces)
        links = np.zeros(size)
        for piece, rows, columns in zip(pieces, target_slices, source_slices, strict=True):
            if piece.links is not None:
                links[rows, columns] = piece.links
        return place(self._model_text, target, source_words, target_words, links)

    def _by_pieces(self, pieces: Sequence[_Piece]) -> Text:
        """The codes of every piece placed in that piece alone, for a segment too long to place all
        of them together. Where one half of a span is in another piece, codes keep their order."""
        places = list[Part]()
        waiting = deque(self._model_text.codes)
        spans = spans_of([piece.model_text for piece in pieces], self._model_text.plain)
        for number, (start, end) in enumerate(spans):
            piece, last = pieces[number], number == len(pieces) - 1
            codes = list[Code]()
            while waiting and (last or waiting[0].at < end):
                code = waiting.popleft()
                inside = start <= code.at and code.at + code.covers <= end
                offset = min(max(code.at, start), end) - start
                codes.append(replace(code, at=offset, covers=code.covers if inside else 0))
            words, target_words = token_spans(piece.model_text), token_spans(piece.output)
            links = (
                np.zeros((len(target_words), len(words))) if piece.links is None else piece.links
            )
            halves = sum(code.kind in _HALVES for code in codes) > 2 * len(pairs(codes))
            text = place(
                Text(piece.model_text, tuple(codes)),
                piece.output,
                words,
                target_words,
                links,
                halves,
            )
            places += [" ", *text.parts()] if places and piece.output else text.parts()
        return join_parts(places)


def spans_of(parts: Sequence[str], text: str) -> Spans:
    """Where the parts stand in a text, one behind another, as the first character of each and the
    one behind it.

    parts: the parts, in order.
    text: the text."""
    spans = list[tuple[int, int]]()
    end = 0
    for part in parts:
        start = text.index(part, end)
        end = start + len(part)
        spans.append((start, end))
    return spans


def _words(parts: Sequence[str], text: str) -> tuple[Spans, list[slice]]:
    """The words of the parts, where they stand in the text; and which of them are of which part."""
    words, slices = list[tuple[int, int]](), list[slice]()
    for part, (start, _) in zip(parts, spans_of(parts, text), strict=True):
        first = len(words)
        words += [(start + a, start + b) for a, b in token_spans(part)]
        slices.append(slice(first, len(words)))
    return words, slices
