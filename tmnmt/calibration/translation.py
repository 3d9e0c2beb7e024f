"""Translates segments that are held out of a memory, with several numbers for the nearest
positions. They are translated as a document, with the rest of the memory, while their references
are confirmed one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tmnmt.calibration.fitting import are_scored
from tmnmt.calibration.held_out import Rest, Stretch, excluded_pairs
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.document_state import confirm_all
from tmnmt.engine.piece import Piece
from tmnmt.engine.pipeline import Passage
from tmnmt.engine.settings import Settings, WholeMemory, settled, whole_memory_of
from tmnmt.index.base import FolderIndex
from tmnmt.keys.compute import longest
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.reach import STANDARD, Reaches
from tmnmt.models.folder import Model
from tmnmt.segments import Segment
from tmnmt.session import Session
from tmnmt.translator import Translator, restrict


@dataclass
class _Document:
    """One stretch, translated with one set of numbers."""

    segments: Iterator[Segment]
    session: Session
    passage: Passage
    translations: list[str] = field(default_factory=list)

    def prepare(self, segment: Segment) -> list[Piece]:
        """The pieces of the next segment, with what the rest of the memory has for them."""
        pieces = self.passage.open(segment.src)
        return self.passage.pipeline.retrieve(pieces, [self.session] * len(pieces))


def translate_held_out(
    model: Model,
    layers: MemoryLayers | None,
    index: FolderIndex,
    stretches: Sequence[Stretch],
    reaches: Sequence[Reaches],
    device: str = "cpu",
    progress: Callable[[int], None] = lambda count: None,
    neighbours: int = 0,
) -> tuple[list[str], list[list[str]]]:
    """Gives the references of all segments that are scored, and the translations of the segments
    with each of the numbers. Matches, fragments and what is confirmed are read as the model reads
    them by default.

    model: the model.
    layers: its memory layers; None where it has learned none.
    index: the index of the memory.
    stretches: the segments that are held out.
    reaches: the numbers that are tried.
    device: what torch computes on.
    progress: a function that is called with the number of translations that are made.
    neighbours: how many positions of the whole memory, without all stretches, are read at every
    word of a draft.

    Raises MemoryIndexError where neighbours are read and the index has no keys of the model."""
    settings = _settings(model, layers)
    shared = Translator(model, layers, [index], settings, device, reaches=STANDARD)
    whole = whole_memory_of(replace(settings, neighbours=neighbours), model, [index], device)
    if whole is not None:
        whole = whole.excluding(excluded_pairs(index, stretches))
    by_stretch = [_scored(model, stretch) for stretch in stretches]
    documents = [
        [_document(shared, Rest(index, stretch), whole, segments, numbers) for numbers in reaches]
        for stretch, segments in zip(stretches, by_stretch, strict=True)
    ]
    working = [document for group in documents for document in group]
    while working := _translate_next(shared, working):
        progress(len(working))
    columns = zip(*documents, strict=True)
    references = [segment.tgt for segments in by_stretch for segment in segments]
    return references, [
        [text for document in column for text in document.translations] for column in columns
    ]


def _settings(model: Model, layers: MemoryLayers | None) -> Settings:
    """The settings that hold by default with these products, except that nothing is taken as it
    stands."""
    options = TranslationOptions(mode="nearest", verbatim=0, precision=model.products)
    return settled(options, layers, "nearest")


def _scored(model: Model, stretch: Stretch) -> list[Segment]:
    scored = are_scored(stretch, model.vocab, longest(model))
    return [segment for segment, fits in zip(stretch.segments, scored, strict=True) if fits]


def _document(
    shared: Translator,
    rest: Rest,
    whole: WholeMemory | None,
    segments: Sequence[Segment],
    reaches: Reaches,
) -> _Document:
    translator = restrict(shared, [rest], [], shared.settings, reaches=reaches)
    pipeline = translator.pipeline
    decoder = replace(pipeline.decoder, whole_memory=whole)
    pipeline = replace(pipeline, writer=replace(pipeline.search, decoder=decoder))
    return _Document(iter(segments), translator.session(), pipeline.passage())


def _translate_next(shared: Translator, documents: Sequence[_Document]) -> list[_Document]:
    """Translates and confirms the next segment of every document, all of them together. Gives the
    documents that had one."""
    coming = [
        (document, segment) for document in documents if (segment := next(document.segments, None))
    ]
    pieces = [
        (document, piece) for document, segment in coming for piece in document.prepare(segment)
    ]
    batch, sessions = [piece for _, piece in pieces], [document.session for document, _ in pieces]
    translated = shared.pipeline.translate(batch, sessions)
    for (document, piece), result in zip(pieces, translated, strict=True):
        document.passage.put(piece, *result)
    for document, _ in coming:
        document.translations += [translation.tgt for translation in document.passage.finish()]
    sessions = [document.session for document, _ in coming]
    pairs = zip(sessions, (segment for _, segment in coming), strict=True)
    confirm_all([(session, session.confirmation(seg.src, seg.tgt)) for session, seg in pairs])
    return [document for document, _ in coming]
