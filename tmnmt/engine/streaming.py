"""Translates the segments of several documents: decides which are translated together, and confirms
what is to be confirmed meanwhile. The way of a single sentence is in `tmnmt.engine.pipeline`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tmnmt.engine.document_state import DocumentState, confirm_all
from tmnmt.engine.schedule import by_length, join_batches, side_by_side

if TYPE_CHECKING:
    from tmnmt.codes.record import Pair, Source
    from tmnmt.engine.history import History
    from tmnmt.engine.piece import OpenSegment, Piece
    from tmnmt.engine.pipeline import Pipeline
    from tmnmt.index.base import WritableIndex
    from tmnmt.segments import Translation

MOST_STRETCHES = 32  # of documents that a stream holds: more than a batch is of
PIECES_AT_ONCE = 256  # of a document are prepared ahead: more would only take up memory
REVISED_TOGETHER = 4  # batches whose incomplete translations are revised together


@dataclass(frozen=True)
class Stream:
    """Documents on their way through a pipeline. Translations come in order, each as soon as those
    before it are there.

    Documents go side by side, each in its order, where something is confirmed or the model's own
    words are remembered. Otherwise sentences of similar length go together.

    pipeline: the pipeline.
    writable: the index that confirmed pairs are added to; None where there is none.
    first: the document whose next segments come first; the other documents find what was confirmed
    in it. None begins with a new document.
    confirms: whether pairs are confirmed.
    explain: whether every token comes with its origin.
    tag: the target language, as in `Translator.stream`.
    finished: a function that is called for every segment once it is translated."""

    pipeline: Pipeline
    writable: WritableIndex | None = None
    first: DocumentState | None = None
    confirms: bool = False
    explain: bool = False
    tag: str = ""
    finished: Callable[[], None] = lambda: None

    def translations(
        self, documents: Iterable[tuple[Sequence[Source], Iterable[Pair | None]]]
    ) -> Iterator[Translation]:
        """The translations of all segments.

        documents: the segments of every document, each with the pair that is confirmed once it is
        translated, or None."""
        passage = self.pipeline.passage(self.finished)
        states = _Documents(self._new, self._in_order, self.first)
        whole = self._in_order or self.pipeline.writer.reads_around
        prepared = self.pipeline.preparation.documents(
            documents,
            passage.assembly,
            self.tag,
            None if whole else PIECES_AT_ONCE,
            self.first.preceding if self.first is not None else (),
        )
        for batch in self._batches(prepared):
            batch_documents = [states.get(piece) for piece in batch]
            passage.translate(batch, batch_documents, self.explain)
            confirm_all(
                [
                    (document, document.confirmation(*piece.segment.to_confirm))
                    for document, piece in zip(batch_documents, batch, strict=True)
                    if piece.ends_segment and piece.segment.to_confirm
                ]
            )
            for piece in batch:
                states.leave(piece)
            yield from passage.ready()
        yield from passage.finish()

    @property
    def _in_order(self) -> bool:
        """Whether a piece may only be translated after those before it in its document."""
        return self.confirms or self.pipeline.settings.remembers

    def _batches(self, prepared: Iterable[list[Piece]]) -> Iterator[list[Piece]]:
        """Gives the pieces that are translated together, batch by batch. Matches are looked up
        ahead where what the pieces read does not change meanwhile.

        prepared: the pieces of one document, or of a part of it, after another."""
        pipeline, size = self.pipeline, self.pipeline.settings.batch
        if pipeline.writer.reads_around:
            prepared = map(self._first_pass, prepared)
        if self._in_order:
            changes = self.first is not None or (self.confirms and pipeline.settings.memorises)
            return side_by_side(prepared, size, list if changes else pipeline.retrieve)
        batches = by_length(prepared, size)
        return (
            join_batches(batches, REVISED_TOGETHER) if pipeline.writer.batches_together else batches
        )

    def _first_pass(self, pieces: Sequence[Piece]) -> list[Piece]:
        """The pieces of a document with what `Decoder.first_pass` gives them."""
        with self.pipeline.lock:
            return self.pipeline.writer.first_pass(pieces)

    def _new(self) -> DocumentState:
        if self.first is not None:
            return self.first.fork()
        return DocumentState(self.pipeline, self.writable)


class _Documents:
    """The documents of a stream, each for as long as it is needed. Where a document has confirmed
    pairs, and nothing is learned of what is translated, every stretch of it is a document that has
    learned the pairs near by."""

    def __init__(
        self, new: Callable[[], DocumentState], is_separate: bool, first: DocumentState | None
    ) -> None:
        """new: a function that opens a document.
        is_separate: whether every document is needed apart.
        first: the first document; None where it is a new one."""
        self._new, self._is_separate = new, is_separate
        self._open: dict[int, DocumentState] = {} if first is None else {0: first}
        self._idle = new()  # for all documents that need none of their own
        # by document and stretch, those that were used last at the end
        self._of_stretches = OrderedDict[tuple[int, int], DocumentState]()

    def get(self, piece: Piece) -> DocumentState:
        """The document that a piece belongs to, or its stretch of the document."""
        segment = piece.segment
        if segment.document not in self._open:
            if not self._is_separate:
                return self._idle if segment.history is None else self._stretch(segment)
            self._open[segment.document] = self._informed(segment.history)
        return self._open[segment.document]

    def _stretch(self, segment: OpenSegment) -> DocumentState:
        if segment.history is None:
            return self._idle
        stretch = segment.history.stretch_of(segment.place)
        key = segment.document, stretch
        if key not in self._of_stretches:
            self._of_stretches[key] = self._informed(segment.history, stretch)
        self._of_stretches.move_to_end(key)
        if len(self._of_stretches) > MOST_STRETCHES:
            self._of_stretches.popitem(last=False)
        return self._of_stretches[key]

    def _informed(self, history: History | None, stretch: int = 0) -> DocumentState:
        """A new document that has learned what was confirmed near a stretch."""
        document = self._new()
        if history is not None:
            document.learn_background([(src, tgt) for src, tgt, _ in history.nearest(stretch)])
        return document

    def leave(self, piece: Piece) -> None:
        """Forgets a document, if this is its last piece."""
        if piece.segment.ends_document and self._is_separate:
            self._open.pop(piece.segment.document, None)
