"""A segment on its way through the filters, and back."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tmnmt.codes.record import Code, Source, Text, inline, plain_of
from tmnmt.codes.spacing import with_spacing
from tmnmt.engine.full_match import has_codes
from tmnmt.engine.placement import Placement, spans_of
from tmnmt.filters import Filters
from tmnmt.filters.contract import ModelOutput, Reading, Split, Undo
from tmnmt.filters.masked_pair import MaskedPair, masked_pair
from tmnmt.formats.clean import clean
from tmnmt.segments import Match, Segment, Translation

if TYPE_CHECKING:
    from torch import Tensor

    from tmnmt.spans import Array


class SourceSegment:
    """One segment on its way. `original` is the segment as it came. `source` is the segment as
    memories and checks know it, on one line and with codes. `read_text` is the segment as the model
    reads it, with the same codes."""

    def __init__(self, original: Source, filters: Filters) -> None:
        """original: the segment as it came.
        filters: the filters that it goes through."""
        self.original, self._filters = original, filters
        self.had_control_characters = clean(plain_of(original))[1]
        self._has_other_codes = False  # than the match that was taken
        self._prepare(filters)
        self._note_plain()

    def _note_plain(self) -> None:
        """Notes whether there are no codes, and nothing that a filter takes back in the whole."""
        may_have_codes = bool(self.source.codes) or isinstance(self.original, Text)
        is_restored = any(
            undo.is_recased or type(undo).restore is not Undo.restore
            for undo in [*self._text_undos, *self._undos]
        )
        self.is_plain = not may_have_codes and not is_restored

    def _prepare(self, filters: Filters, keeps_case: bool = False) -> None:
        source, self._text_undos = filters.prepare(self.original, "text")
        model_text, self._undos = filters.prepare(source, "model", keeps_case)
        self.is_recased = any(undo.is_recased for undo in self._undos)
        self.source, self.read_text = (
            text if isinstance(text, Text) else Text(text) for text in (source, model_text)
        )
        # of several filters that split it, the first one does
        self.split = next((undo for undo in self._undos[::-1] if isinstance(undo, Split)), None)
        self.reading = next((undo.reading for undo in self._undos if undo.reading), None)
        self._start()

    def _start(self) -> None:
        self.placement = Placement(self.source, self.read_text)
        self._parts: list[SourceSegment] = []  # where these are translated one by one
        self._is_typed = False  # in part, by a person

    def copy(self) -> SourceSegment:
        """The same segment, of which nothing is translated yet."""
        duplicate = copy.copy(self)
        duplicate._start()
        return duplicate

    def keep_case(self) -> None:
        """Lets the model read the text in its own letters."""
        self._prepare(self._filters, keeps_case=True)
        self._note_plain()

    @property
    def read(self) -> str:
        """The text as the model reads it."""
        return self.read_text.plain

    @property
    def codes(self) -> Sequence[Code] | None:
        """The codes that memories compare; None for a text that can have none."""
        return None if self.is_plain else self.source.codes

    @property
    def has_tags_as_text(self) -> bool:
        """Whether the segment is a string in which codes are written."""
        return isinstance(self.original, str) and bool(inline(self.source.codes))

    @property
    def parts(self) -> Sequence[str]:
        """The parts of what the model reads that may be translated one by one, as `retry`
        describes."""
        return next((undo.parts for undo in self._undos if undo.parts), ())

    def retry(self, output: str) -> Sequence[str]:
        """The parts that are translated one by one, because what was written for the whole lacks
        something; none where it stands.

        output: what the model wrote for the whole."""
        return next((parts for undo in self._undos if (parts := undo.retry(output))), ())

    def split_segments(self) -> list[SourceSegment]:
        """The texts as which the segment is translated. Its translation is made of their
        translations."""
        texts = () if self.split is None else self.split.texts
        self._parts = [SourceSegment(text, self._filters) for text in texts]
        return self._parts

    @property
    def linked_segments(self) -> list[SourceSegment]:
        """The segments whose codes are placed by links: the segment itself, or the texts as which
        it is translated."""
        return self._parts or [self]

    def query_text(self, text: str) -> str:
        """The form in which the memories are asked for what is like a text.

        text: a text of the segment."""
        for undo in self._undos:
            text = undo.query(text)
        return text

    def masked_pair(self, pair: Segment) -> MaskedPair:
        """A pair as the model reads it beside the segment, with the masks of the segment.

        pair: the pair."""
        masks = {name: self.covered(number) for number, name in self.placement.masks.items()}
        return masked_pair(masks, pair.src, pair.tgt, self._filters.copied)

    def covered(self, number: int) -> str:
        """The text that a code of the source covers.

        number: the number of the code."""
        code = self.source.codes[number]
        return self.source.plain[code.at : code.at + code.covers]

    def pieces(self, texts: Sequence[str]) -> list[str]:
        """What the source has for texts that the model reads. A single text that is all of what the
        model reads stands for all of the source, even where signs at its ends are read as nothing.

        texts: the texts, which follow one another."""
        if [*texts] == [self.read.strip()]:
            return [self.source.plain]
        ends = [code.at + code.covers for code in self.read_text.codes]
        source_ends = [code.at + code.covers for code in self.source.codes]

        def in_source(offset: int) -> int:
            number = bisect_right(ends, offset) - 1  # of the last code that ends before
            return offset if number < 0 else source_ends[number] + offset - ends[number]

        spans = spans_of(texts, self.read)
        return [self.source.plain[in_source(start) : in_source(end)] for start, end in spans]

    def restore_piece(
        self,
        text: str,
        model_text: str,
        subwords: Sequence[str] = (),
        attention: Callable[[], Tensor] | None = None,
        reading: Reading | None = None,
        is_typed: bool = False,
    ) -> str:
        """What the model wrote for a piece, behind the filters. Only masks stand for placeholders.

        text: what the model wrote.
        model_text: what it has read.
        subwords: the subwords of what it wrote.
        attention: a function that gives (T + 1, S + 1), how much each subword of the target, and
        the end, looked at every subword of the source and its end; None where it is not known.
        reading: the other way to read the piece, where that was read.
        is_typed: whether a person has typed how the translation begins."""
        self._is_typed = is_typed
        masks = frozenset(self.placement.masks.values())
        output = ModelOutput(text, model_text, masks, subwords, attention, is_typed)
        for undo in [*([reading.undo] if reading is not None else []), *self._undos]:
            output = replace(output, text=undo.restore_piece(output))
        return output.text

    def refuses(self, output: str, model_text: str) -> bool:
        """Whether what was written for a text that no memory has is no translation of it.

        output: what the model wrote.
        model_text: what it has read."""
        return any(undo.refuses(output, model_text) for undo in self._undos)

    def barred(self, model_text: str) -> frozenset[str]:
        """The characters that the translation of a text does not have.

        model_text: what the model reads."""
        return frozenset[str]().union(*(undo.barred(model_text) for undo in self._undos))

    def trailing(self) -> frozenset[str]:
        """The subwords that a translation of the segment does not end with."""
        return frozenset[str]().union(*(undo.trailing for undo in self._undos))

    def to_target(self, text: str) -> str:
        """What was typed of a translation, as the model writes it: with masks, and without tags.

        text: what was typed."""
        for undo in reversed([*self._undos, *self._text_undos]):
            text = undo.to_target(text)
        return text

    def display(self, text: str) -> str:
        """A part of what the model wrote, as a person who types sees it.

        text: the part."""
        for undo in self._undos:
            text = undo.display(text)
        return text

    def use_match(self, match: Match) -> None:
        """Takes the target of a match for the whole segment. It stays as a person wrote it, also in
        what a model would copy for its form. A match that something was put into does not lend its
        places.

        match: the match."""
        if self.is_plain:
            return
        self._prepare(self._filters.for_people)
        self._has_other_codes = not has_codes(match, self.source.codes)
        has_frames = self.split is not None and not self.split.is_optional
        self.placement.take(match, is_split=has_frames)

    def add(
        self,
        number: int,
        model_text: str,
        translation: Translation,
        is_whole: bool,
        links: Array | None = None,
    ) -> None:
        """Takes the translation of a piece.

        number: the number of the piece.
        model_text: what the model has read of the piece.
        translation: its translation.
        is_whole: whether the piece is all of the segment.
        links: (T, S) how much of every target word comes from every source word, where what has
        written the translation says so."""
        if not self.is_plain:
            self.placement.add(number, model_text, translation, is_whole, links)

    def _target(self) -> Text:
        """The whole target with its codes, those that are text too."""
        if self._parts and self.split is not None:
            return self.split.join([part._target() for part in self._parts])
        if self.placement.whole_target is not None:
            return self._typeset(self.placement.whole_target)
        target = self.placement.placed()
        for undo in self._undos:
            target = self._typeset_by(undo, undo.restore(target))
        return with_spacing(self.source, target)

    def _typeset(self, target: Text) -> Text:
        """A target as its language sets it, where the model has written it."""
        for undo in self._undos:
            target = self._typeset_by(undo, target)
        return target

    def _typeset_by(self, undo: Undo, target: Text) -> Text:
        stays = self._is_typed or self.placement.is_copied
        return target if stays else undo.typeset(target)

    def restore(self, translation: Translation) -> Translation:
        """The translation of the whole segment as its user gets it, with its codes.

        translation: the translation of all pieces."""
        if self.is_plain:
            return translation
        target, texts = self._target(), [token.text for token in translation.tokens]
        for undo in self._text_undos:
            target = undo.restore(target)
        for undo in self._undos:
            texts = [*undo.restore_tokens(texts)]
        tokens = (
            replace(token, text=text) for token, text in zip(translation.tokens, texts, strict=True)
        )
        is_adapted = self._has_other_codes and translation.origin == "memory"
        alternatives = () if self._parts else translation.others
        return replace(
            translation,
            origin="adapted" if is_adapted else translation.origin,
            src=plain_of(self.original),
            tgt=target.plain,
            src_codes=self.original.codes if isinstance(self.original, Text) else (),
            tgt_codes=target.codes,
            tokens=tuple(tokens),
            others=tuple(
                replace(alternative, tgt=self._typeset(Text(self.display(alternative.tgt))).plain)
                for alternative in alternatives
            ),
        )
