"""Makes pieces of documents: what the model can translate at once."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from tmnmt.codes.record import Beside, Pair, Source, Text, plain_of, surroundings
from tmnmt.engine.confirmed import source_of
from tmnmt.engine.history import History
from tmnmt.engine.piece import OpenSegment, Piece, Preceding
from tmnmt.engine.pieces import pieces
from tmnmt.engine.run_statistics import CONTROL, Tally
from tmnmt.engine.source_segment import SourceSegment
from tmnmt.errors import UsageError
from tmnmt.partial_document import PartialDocument

if TYPE_CHECKING:
    from tmnmt.engine.assembly import Assembly
    from tmnmt.engine.compute_lock import ComputeLock
    from tmnmt.engine.lookup import Lookup
    from tmnmt.filters import Filters
    from tmnmt.vocab import Vocabulary


class Preparation:
    """Cuts segments into pieces for one model and its memories. `filters` says what is done to
    their texts, and `lock` is held while the memories are asked."""

    def __init__(
        self,
        vocab: Vocabulary,
        filters: Filters,
        longest: int,
        lookup: Lookup,
        lock: ComputeLock,
        tally: Tally,
        previous: int = 0,
    ) -> None:
        """vocab: the vocabulary of the model.
        filters: the filters that texts go through.
        longest: how many subwords a piece has at most.
        lookup: what asks the memories.
        lock: what is held while they are asked.
        tally: what the counts are added to.
        previous: how many segments before it in its document a segment's translation reads."""
        self.vocab, self.longest, self.lookup = vocab, longest, lookup
        self.lock, self.tally, self.previous = lock, tally, previous
        self.filters = filters

    def with_lookup(self, lookup: Lookup) -> Preparation:
        """The same, with what asks other memories.

        lookup: what asks them."""
        preparation = copy.copy(self)
        preparation.lookup = lookup
        return preparation

    def with_filters(self, filters: Filters) -> Preparation:
        """The same, with other filters.

        filters: the filters that texts go through."""
        preparation = copy.copy(self)
        preparation.filters = filters
        return preparation

    def documents(
        self,
        documents: Iterable[tuple[Sequence[Source], Iterable[Pair | None]]],
        assembly: Assembly,
        tag: str,
        at_once: int | None = None,
        preceding: Preceding = (),
    ) -> Iterator[list[Piece]]:
        """Gives every document as the pieces that are to be translated. Blank lines part documents.

        documents: the texts of every document, each with the pair that is then confirmed, or None.
        A document that is translated in part knows its confirmed pairs.
        assembly: what all segments are announced to.
        tag: the target language, as in `Translator.stream`.
        at_once: about how many pieces of a document come in one list, each list made when it is
        asked for; None gives a document in one list.
        preceding: what the model reads of the segments before the first."""
        number = 0
        for texts, pairs in documents:
            confirmed = iter(pairs)
            history = history_of(texts)
            place = 0
            for part in _split_at_blanks(texts_of(texts)):
                prepared = list[Piece]()
                for text, neighbours in zip(part, surroundings(part), strict=True):
                    pair = next(confirmed, None)
                    new_pieces = self.pieces(
                        text, assembly, neighbours, preceding, tag, number, pair, history, place
                    )
                    place += 1
                    preceding = self.following(preceding, new_pieces)
                    prepared += new_pieces
                    if at_once is not None and len(prepared) > at_once:
                        yield prepared[:-1]
                        prepared = prepared[-1:]  # the last of its document, perhaps
                number, preceding = number + 1, ()
                if prepared:
                    yield [*prepared[:-1], _ending_document(prepared[-1])]

    def pieces(
        self,
        text: Source,
        assembly: Assembly,
        neighbours: Beside = ("", ""),
        preceding: Preceding = (),
        tag: str = "",
        document: int = 0,
        to_confirm: Pair | None = None,
        history: History | None = None,
        place: int = 0,
    ) -> list[Piece]:
        """Makes the pieces of a segment, which the model can translate. They have no control
        characters, and none is longer than the model was trained on, unless a memory holds the
        segment as it is.

        text: the segment.
        assembly: what the segment is announced to.
        neighbours: the texts before and after it.
        preceding: what the model reads of the segments before it.
        tag: the target language, as in `Translator.stream`.
        document: the number of its document.
        to_confirm: the pair that is confirmed once it is translated; None confirms nothing.
        history: the pairs of its document that were confirmed before; None where there are none.
        place: how many texts of its document that are translated stand before it."""
        source = source_of(text)
        whole = SourceSegment(source, self.filters)
        with self.lock:
            if whole.is_recased and self.lookup.knows_case(whole):
                whole.keep_case()
            cleaned, model_text = whole.source.plain, whole.read.strip()
            texts = pieces(model_text, self.vocab, self.longest) if model_text else []
            if len(texts) > 1 and (whole.split is not None or self.lookup.holds(cleaned)):
                texts = [model_text]
            self.tally.changed[CONTROL] += whole.had_control_characters
        segment = OpenSegment(
            whole,
            assembly.announce(plain_of(source), len(texts), whole),
            document,
            len(texts),
            neighbours,
            to_confirm=to_confirm,
            reading_ids=() if tag else self._reading_ids(whole, texts),
            history=history,
            place=place,
        )
        text_pairs = zip(whole.pieces(texts), texts, strict=True)
        return [
            Piece(segment, source_text, text, self._ids(text, tag), number, context=preceding)
            for number, (source_text, text) in enumerate(text_pairs)
        ]

    def _ids(self, text: str, tag: str) -> tuple[int, ...]:
        ids = self.vocab.encode_source(text)
        return tuple(self.vocab.tagged(ids, tag) if tag else ids)

    def _reading_ids(self, segment: SourceSegment, texts: Sequence[str]) -> tuple[int, ...]:
        """The subwords of the other way to read a segment of one piece, where there is one."""
        reading = segment.reading if len(texts) == 1 else None
        return () if reading is None else tuple(self.vocab.encode_source(reading.text))

    def preceding_ids(self, texts: Iterable[str]) -> Preceding:
        """What the model reads of the segments that stand before the one it translates.

        texts: their sources, the oldest first."""
        if not self.previous:
            return ()
        ids = [tuple(self.vocab.encode_source(text)[: self.longest]) for text in texts]
        return tuple(ids[-self.previous :])

    def following(self, preceding: Preceding, new_pieces: Sequence[Piece]) -> Preceding:
        """What the model reads before the next segment.

        preceding: what it has read before this one.
        new_pieces: the pieces of this segment. A segment without pieces does not count."""
        if not self.previous or not new_pieces:
            return preceding
        ids = tuple(chain.from_iterable(piece.ids for piece in new_pieces))[: self.longest]
        return (*preceding, ids)[-self.previous :]


def _ending_document(piece: Piece) -> Piece:
    return replace(piece, segment=replace(piece.segment, ends_document=True))


def paired(
    documents: Iterable[Sequence[Source]], confirmed: Iterable[Sequence[Pair | None]]
) -> Iterator[tuple[Sequence[Source], Sequence[Pair | None]]]:
    """Joins every document with its pairs.

    documents: the texts of every document.
    confirmed: for every text, the pair that is then confirmed, or None.

    Raises UsageError where there are not as many pairs as texts."""
    for number, (texts, pairs) in enumerate(zip_longest(documents, confirmed), 1):
        if texts is None or pairs is None or len(texts) != len(pairs):
            raise UsageError(f"confirmed: document {number} has not as many pairs as texts")
        yield texts, pairs


def history_of(document: Sequence[Source]) -> History | None:
    """The pairs of a document that were confirmed before; None where there are none.

    document: its texts."""
    pairs = document.pairs if isinstance(document, PartialDocument) else ()
    return History(pairs) if pairs else None


def texts_of(texts: object) -> list[Source]:
    """Gives back the texts of a document.

    texts: what a caller gave.

    Raises UsageError for a single text, and for what is no list of texts."""
    if isinstance(texts, str | bytes | Text) or not isinstance(texts, Iterable):
        raise UsageError(f"a list of texts is wanted, not {type(texts).__name__}")
    return [source_of(text) for text in texts]


def _split_at_blanks(texts: Iterable[Source]) -> Iterator[list[Source]]:
    """The texts of each document in turn. A blank one ends a document, and is its last, but not one
    that may have codes: it is of a file, which says itself where documents end."""
    document = list[Source]()
    for text in texts:
        document.append(text)
        if isinstance(text, str) and not text.strip():
            yield document
            document = []
    if document:
        yield document
