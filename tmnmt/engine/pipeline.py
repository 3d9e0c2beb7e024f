"""The way of a sentence, for whoever feeds it: prepare -> retrieve -> take or decode -> remember ->
put together -> place codes -> check and count.

    passage = pipeline.passage()
    pieces = passage.open(text)                      prepared, and announced
    passage.translate(pieces, sessions)              retrieved, taken or decoded, remembered
    translations = passage.finish()                  put together, checked and counted

Streams, sessions, completion and the server's queue differ only in what they feed, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tmnmt.checks import check_preserved
from tmnmt.codes.record import Beside, Source, plain_of
from tmnmt.engine.assembly import Assembly, Translated, join_parts
from tmnmt.engine.extension import Extensions, check_all
from tmnmt.engine.full_match import copy_match
from tmnmt.engine.piece import NO_MATCHES, Piece, Preceding
from tmnmt.engine.placement import Placement
from tmnmt.engine.replays import replay_checks
from tmnmt.engine.source_segment import SourceSegment
from tmnmt.engine.splitting import retried_parts, split_texts
from tmnmt.errors import UsageError
from tmnmt.segments import Match, Translation

if TYPE_CHECKING:
    from tmnmt.codes.form import Copied
    from tmnmt.engine.beam_writer import BeamWriter
    from tmnmt.engine.compute_lock import ComputeLock
    from tmnmt.engine.decoder import Decoder
    from tmnmt.engine.invented_words import InventedWords
    from tmnmt.engine.lookup import Lookup
    from tmnmt.engine.preparation import Preparation
    from tmnmt.engine.run_statistics import Tally
    from tmnmt.engine.settings import Settings
    from tmnmt.engine.writer import DocumentMemory, Draft, Writer
    from tmnmt.keys.pair_keys import Pair, PairKeys, PairKeyStore
    from tmnmt.layers.combine import MemoryLayers
    from tmnmt.layers.contract import Histories
    from tmnmt.models.base import Backbone
    from tmnmt.vocab import Vocabulary

CHECKED_ORIGINS = ("model", "memory", "adapted", "fuzzy")  # of translations that extensions check
WAITING_AT_MOST = 8  # batches, at most, that wait for the places of their codes


@dataclass(frozen=True)
class Outcome:
    """What became of a piece, or of a part of it. It has neither a draft nor a match where
    another piece stands for it.

    piece: the piece.
    draft: what the base has written; None where a match is taken.
    match: the match whose target is taken as it stands; None where the base has written."""

    piece: Piece
    draft: Draft | None = None
    match: Match | None = None


@dataclass(frozen=True)
class Pipeline:
    """One model with its memories, through which sentences pass, one batch after another.

    settings: how to translate.
    languages: the codes of the source and the target language.
    vocab: the vocabulary.
    lookup: asks the memories.
    preparation: makes pieces of segments.
    writer: makes translations of pieces.
    states_hash: names what pair keys and slots are bound to.
    copied: finds what is copied as it stands.
    words: finds words that nothing knows; None where they are not looked for.
    tally: what the counts are added to.
    lock: is held while a batch is translated."""

    settings: Settings
    languages: tuple[str, str]
    vocab: Vocabulary
    lookup: Lookup
    preparation: Preparation
    writer: Writer[Any]
    states_hash: str
    copied: Copied
    words: InventedWords | None
    tally: Tally
    lock: ComputeLock

    @property
    def extensions(self) -> Extensions:
        """The features on the way of a sentence, by name."""
        return self.writer.extensions

    @property
    def layers(self) -> MemoryLayers | None:
        """The memory layers of the model; None where it has none."""
        return self.writer.layers

    @property
    def keys(self) -> PairKeyStore:
        """The keys of pairs."""
        return self.writer.keys

    @property
    def search(self) -> BeamWriter:
        """The search of a base that shows its states.

        Raises UsageError where the base writes whole texts."""
        from tmnmt.engine.beam_writer import BeamWriter

        if not isinstance(self.writer, BeamWriter):
            raise UsageError(
                "this base writes whole texts and shows no states, and what is wanted reads them: "
                "take a model folder"
            )
        return self.writer

    @property
    def backbone(self) -> Backbone:
        """The base as it decodes, where it shows its states, as `search` says."""
        return self.search.backbone

    @property
    def decoder(self) -> Decoder:
        """What makes hypotheses of pieces, where the base shows its states, as `search` says."""
        return self.search.decoder

    def passage(self, on_complete: Callable[[], None] = lambda: None) -> Passage:
        """Opens a passage for the segments of one caller.

        on_complete: a function that is called for every segment once it is translated, also while
        the segment has to wait for those before it."""
        return Passage(self, on_complete)

    def retrieve(
        self, pieces: Sequence[Piece], documents: Sequence[DocumentMemory] = ()
    ) -> list[Piece]:
        """The pieces with what the memories have for them, as `Lookup.with_matches` and
        `Writer.with_neighbours` give it.

        pieces: the pieces.
        documents: the document of every piece, whose confirmed pairs are searched, too; or
        nothing."""
        with self.lock:
            confirmed = [document.confirmed.similar for document in documents]
            return [*self.writer.with_neighbours(self.lookup.with_matches(pieces, confirmed))]

    def translate(
        self, pieces: Sequence[Piece], documents: Sequence[DocumentMemory], explain: bool = False
    ) -> list[Translated]:
        """Translates pieces: retrieve -> take or decode -> remember -> put together. Returns the
        translation of each, with its length in subwords. Translations that an extension finds
        incomplete are written once more, all of them together.

        pieces: the pieces. Where documents learn from what is translated, each must be of another
        document.
        documents: the document of every piece.
        explain: whether every token comes with its origin."""
        with self.lock:
            pieces = self.retrieve(pieces, documents)
            outcomes = self.outcomes(pieces, documents, explain)
            self._remember(documents, outcomes)
            return self.merged(pieces, outcomes, explain)

    def outcomes(
        self,
        pieces: Sequence[Piece],
        documents: Sequence[DocumentMemory],
        explain: bool,
        is_split: bool = False,
    ) -> list[list[Outcome]]:
        """What becomes of pieces that were looked up. Each has one outcome, with two exceptions. A
        piece that is translated as several texts has one outcome for every text, and a piece whose
        translation has lost a sentence has one for every sentence.

        pieces: the pieces.
        documents: the document of every piece.
        explain: whether every token comes with its origin.
        is_split: whether the pieces are such texts themselves."""
        results = [
            self._match_outcome(piece, document)
            for piece, document in zip(pieces, documents, strict=True)
        ]
        rows = [row for row, outcome in enumerate(results) if outcome is None]
        parts = {row: self._texts(pieces[row]) if not is_split else [] for row in rows}
        rows = [row for row in rows if not parts[row]]
        sources, contexts = [pieces[row] for row in rows], [documents[row] for row in rows]
        drafts = self.writer.drafts(sources, contexts, explain) if rows else []
        for row, piece, draft in zip(rows, sources, drafts, strict=True):
            parts[row] = self._retried(piece, draft)
            results[row] = Outcome(piece, draft)
        of_parts = iter(self._outcomes_of_parts(parts, documents, explain))
        return [
            [part_outcome for _ in parts.get(row, []) for part_outcome in next(of_parts)]
            or ([outcome] if outcome is not None else [])
            for row, outcome in enumerate(results)
        ]

    def _outcomes_of_parts(
        self, parts: dict[int, list[Piece]], documents: Sequence[DocumentMemory], explain: bool
    ) -> list[list[Outcome]]:
        """The outcomes of every part in turn."""
        ordered = [(piece, documents[row]) for row in sorted(parts) for piece in parts[row]]
        if not ordered:
            return []
        part_documents = [document for _, document in ordered]
        pieces = self.retrieve([piece for piece, _ in ordered], part_documents)
        return self.outcomes(pieces, part_documents, explain, is_split=True)

    def full_match(self, piece: Piece, document: DocumentMemory) -> Match | None:
        """The match of the whole segment that is taken as it stands; None where the model is asked.

        piece: a piece of the segment.
        document: its document."""
        if not self.settings.verbatim:
            return None
        confirmed = document.confirmed.exact(piece.segment.text, piece.segment.source.codes)
        return confirmed or (piece.retrieved or NO_MATCHES).full_match

    def _match_outcome(self, piece: Piece, document: DocumentMemory) -> Outcome | None:
        """The outcome of a piece that a match stands for; None where the model is asked."""
        match = self.full_match(piece, document)
        is_in_first = match is not None and piece.number > 0
        if piece.role == "merged" or is_in_first:
            return Outcome(piece)
        return None if match is None else Outcome(piece, match=match)

    def _texts(self, piece: Piece) -> list[Piece]:
        """The texts as which a piece is translated; none where it is translated as it is, or where
        the model reads whole documents."""
        if self.writer.reads_around:
            return []
        return split_texts(piece, self.vocab, self.preparation.longest)

    def _retried(self, piece: Piece, draft: Draft) -> list[Piece]:
        """The sentences that are translated again, because what the model wrote has fewer; none
        where it stands."""
        if not self.settings.lost_sentences or self.writer.reads_around:
            return []
        return retried_parts(piece, draft.text, self.vocab)

    def merged(
        self, pieces: Sequence[Piece], outcomes: Sequence[Sequence[Outcome]], explain: bool
    ) -> list[Translated]:
        """The translation of each piece, with its length in subwords, from what became of it or of
        its parts.

        pieces: the pieces.
        outcomes: what became of every piece.
        explain: whether every token comes with its origin."""
        return [
            join_parts(piece.text, [self._translated(outcome, explain) for outcome in of_piece])
            for piece, of_piece in zip(pieces, outcomes, strict=True)
        ]

    def _translated(self, outcome: Outcome, explain: bool) -> Translated:
        """The translation of a piece, which its segment has from now on, and its length."""
        piece, source = outcome.piece, outcome.piece.segment.source
        if outcome.draft is not None:
            translation = self.writer.translation(piece, outcome.draft)
            length = outcome.draft.length
        elif outcome.match is not None:
            source.use_match(outcome.match)
            translation = copy_match(piece.text, outcome.match, piece.matches, self.vocab, explain)
            translation = self.writer.annotated(translation)
            length = len(self.vocab.encode(translation.tgt)) + 1
        else:
            return Translation(piece.text, "", 0.0), 0
        links = outcome.draft.links(translation.tgt) if outcome.draft is not None else None
        source.add(piece.number, piece.model_text, translation, piece.is_whole, links)
        return translation, length

    def link(self, segments: Sequence[Placement]) -> None:
        """Gives segments with codes the links on which the places of these codes depend.

        segments: the segments."""
        with self.lock, self.tally.timed("links"):
            self.writer.link(segments)

    def checked(self, translation: Translation) -> Translation:
        """A finished translation, with what the extensions find wrong in it, what it lacks of what
        is to be kept, whether it is a replay, and which of its words nothing knows.

        translation: the translation."""
        src, tgt = translation.src, translation.tgt
        checks = [
            *translation.user_checks,
            *check_preserved(src, tgt, self.copied),
            *replay_checks(translation, self.languages[0]),
        ]
        if self.words is not None:
            with self.lock:
                checks += self.words.checks(translation)
        if translation.origin in CHECKED_ORIGINS and tgt.strip():
            questions = [
                question
                for extension in self.extensions.values()
                for question in extension.questions(src)
            ]
            checks = [*check_all(self.extensions, src, tgt), *questions, *checks]
        return replace(translation, user_checks=tuple(checks)) if checks else translation

    def write_keys(self, histories: Histories, keys: PairKeys) -> None:
        """Writes a pair into what the layers keep of its document.

        histories: what they keep.
        keys: the keys of the pair."""
        if self.layers is None:
            return
        import torch

        with torch.no_grad():
            self.layers.write(histories, keys)

    def keys_to_remember(
        self, pairs: Sequence[Pair], documents: Iterable[Histories]
    ) -> list[PairKeys]:
        """The keys of pairs as `write_keys` takes them. They are in full where a layer keeps
        contexts and states.

        pairs: the pairs.
        documents: what the layers keep of their documents."""
        if any(kept.needs_states for histories in documents for kept in histories.values()):
            return self.keys.in_full(pairs)
        return self.keys.keys_of([pairs])[0]

    @property
    def history_hash(self) -> str:
        """Names all that what the layers keep of a document depends on."""
        of_layers = self.layers.history_digest if self.layers is not None else ""
        return f"{self.states_hash} {of_layers}".strip()

    def new_histories(self) -> Histories:
        """What the memory layers keep of a document that begins."""
        return self.writer.new_histories(self.settings)

    def _remember(
        self, documents: Sequence[DocumentMemory], outcomes: Sequence[Sequence[Outcome]]
    ) -> None:
        """Writes what was translated to what is kept of documents, where that learns from it."""
        if not self.settings.remembers:
            return
        for document, of_piece in zip(documents, outcomes, strict=True):
            for outcome in of_piece:
                if outcome.draft is not None:
                    for keys in outcome.draft.states():
                        self.write_keys(document.histories, keys)
                elif outcome.match is not None:
                    self._remember_match(document.histories, outcome.piece, outcome.match)

    def _remember_match(self, histories: Histories, piece: Piece, match: Match) -> None:
        """Writes a match that is taken as it stands, or adapted, to what is kept of a document."""
        src = match.segment.src if match.tgt == match.segment.tgt else piece.text
        [keys] = self.keys_to_remember([(src, match.tgt)], [histories])
        self.write_keys(histories, keys)


class Passage:
    """Segments of one caller on their way. They come out in the order in which they went in."""

    def __init__(self, pipeline: Pipeline, on_complete: Callable[[], None]) -> None:
        """pipeline: the pipeline that they pass through.
        on_complete: a function that is called for every segment once it is translated."""
        self.pipeline = pipeline
        self.assembly = Assembly(on_complete)
        # segments whose codes wait for their places, each once; batches that were put meanwhile
        self._unlinked = dict[int, Placement]()
        self._waiting = 0

    def open(
        self, source: Source, neighbours: Beside = ("", ""), preceding: Preceding = ()
    ) -> list[Piece]:
        """Prepares a segment. Returns the pieces that are to be translated, as `Preparation.pieces`
        makes them.

        source: the segment.
        neighbours: the texts before and after it.
        preceding: what the model reads of the segments before it."""
        prepare = self.pipeline.preparation.pieces
        return prepare(source, self.assembly, neighbours, preceding)

    def open_again(self, source: Source, pieces: Sequence[Piece]) -> list[Piece]:
        """Prepares a segment that was opened before and of which nothing is translated yet. Returns
        its pieces.

        source: the segment.
        pieces: the pieces that it had."""
        if not pieces:
            source_segment = SourceSegment(source, self.pipeline.preparation.filters)
            self.assembly.announce(plain_of(source), 0, source_segment)
            return []
        segment = pieces[0].segment
        source_segment = segment.source.copy()
        number = self.assembly.announce(plain_of(source), len(pieces), source_segment)
        segment = replace(segment, number=number, source=source_segment)
        return [replace(piece, segment=segment) for piece in pieces]

    def translate(
        self, pieces: Sequence[Piece], documents: Sequence[DocumentMemory], explain: bool = False
    ) -> None:
        """Translates pieces that were opened, as `Pipeline.translate` does.

        pieces: the pieces.
        documents: the document of every piece.
        explain: whether every token comes with its origin."""
        results = self.pipeline.translate(pieces, documents, explain)
        for piece, result in zip(pieces, results, strict=True):
            self.put(piece, *result)

    def put(self, piece: Piece, translation: Translation, length: int) -> None:
        """Takes the translation of a piece. The pieces of a segment may come in any order.

        piece: the piece.
        translation: its translation.
        length: how many subwords the translation has."""
        self.assembly.put(piece, translation, length)
        for segment in piece.segment.source.linked_segments:
            if segment.placement.unlinked():
                self._unlinked[id(segment.placement)] = segment.placement

    def ready(self) -> list[Translation]:
        """The translations that are finished and follow those before them. Where codes stand among
        words, a few calls give nothing, so that the places of codes are found together."""
        self._waiting = self._waiting + 1 if self._unlinked else 0
        enough = self.pipeline.writer.linked_together
        if len(self._unlinked) < enough and 0 < self._waiting < WAITING_AT_MOST:
            return []
        return self.finish()

    def finish(self, counts: bool = True) -> list[Translation]:
        """The translations that are finished and follow those before them, without waiting for
        others.

        counts: whether they count in the tally."""
        self.pipeline.link([*self._unlinked.values()])
        self._unlinked, self._waiting = {}, 0
        finished = map(self.pipeline.checked, self.assembly.ready())
        return [*(map(self.pipeline.tally.count, finished) if counts else finished)]
