"""Translation that remembers: a model with its memories, and what is done with them. The way of a
sentence itself is `tmnmt.engine.pipeline`; here stands what is translated together."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from pathlib import Path

import torch

from tmnmt.codes.record import Source
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.completion import CompletionCache
from tmnmt.engine.compute_lock import ComputeLock
from tmnmt.engine.confidence import Confidence
from tmnmt.engine.confirmation import Confirmation, confirmation
from tmnmt.engine.decoder import Decoder
from tmnmt.engine.links import Linker
from tmnmt.engine.loading import device_named, languages_of, load_layers, load_on
from tmnmt.engine.lookup import Lookup
from tmnmt.engine.named_memories import (
    Named,
    check_memory,
    open_memories,
    open_to_write,
    parse_memory,
)
from tmnmt.engine.piece import Piece
from tmnmt.engine.pipeline import Pipeline
from tmnmt.engine.postprocess import Postprocessor
from tmnmt.engine.preparation import Pair, Preparation, paired, texts_of
from tmnmt.engine.retrieve import Retriever
from tmnmt.engine.run_statistics import Tally
from tmnmt.engine.schedule import by_length, join_batches, side_by_side
from tmnmt.engine.session import Session, Sessions
from tmnmt.engine.settings import (
    UNTRAINED,
    Settings,
    check,
    default_mode,
    settled,
    shortlist_of,
    voting_of,
)
from tmnmt.engine.terms import TermList
from tmnmt.errors import UsageError
from tmnmt.filters import Filters
from tmnmt.filters.contract import Reader
from tmnmt.index.base import Index, WritableIndex
from tmnmt.index.embedded.index import MemoryIndex
from tmnmt.index.match_value import Trust
from tmnmt.keys.compute import header_of, longest, longest_whole, precomputed
from tmnmt.keys.datastore import Datastore
from tmnmt.keys.pair_keys import PairKeys, PairKeyStore
from tmnmt.layers.cache import CacheContents
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.nearest import SessionPositions
from tmnmt.layers.reach import STANDARD, Reaches, reaches_of
from tmnmt.models.folder import Model
from tmnmt.progress import ReadProgress
from tmnmt.segments import Alternative, Translation
from tmnmt.terms.find import Finder
from tmnmt.terms.reading import read_terms
from tmnmt.terms.term import Term

PIECES_AT_ONCE = 256  # of a document: more would only lie in memory
LACKING_TOGETHER = 4  # batches whose translations that lack terms are written anew together
DOUBTFUL = 0.5  # of the low score: below it a heading is read in two ways; chosen on dev


class Translator:
    """A model with its memories. `tally` says what had to be changed, how many scored low, what the
    vocabulary lacked, and where the time went.

    Any thread may use it, and its sessions: one batch is translated after another, under `lock`, so
    that results are those of one thread. It answers several threads, but no faster than one. What
    it counts is of all threads."""

    def __init__(
        self,
        model: Model,
        layers: MemoryLayers | None,
        indexes: Sequence[Index],
        settings: Settings,
        device: str = "cpu",
        writable: WritableIndex | None = None,
        trust: Sequence[Trust] = (),
        tally: Tally | None = None,
        terms: Sequence[Term] = (),
        hard_terms: bool = False,
        reaches: Reaches | None = None,
        lock: ComputeLock | None = None,
    ) -> None:
        """reaches: how nearest positions are read; None: as calibration has it for the memories.
        lock: held while something is computed; None: one of its own."""
        model = model.reading(settings)
        model = replace(model, products=settings.precision)
        check(settings, layers, model)
        if settings.mode in UNTRAINED and settings.mode != "off":
            layers = layers or MemoryLayers()
        self.settings = settings
        self.reaches = reaches
        self.layers = layers
        self.device = device
        self.writable = writable
        self.lock = lock or ComputeLock()
        self.model_hash = model.hash
        self.states_hash = model.states_hash
        slot_kind = layers.cache.slots_by if layers is not None and layers.cache is not None else ""
        self.cache_hash = (
            f"{model.states_hash} {slot_kind}".strip()
        )  # of all that a slot depends on
        self.vocab = model.vocab
        self.src_lang = model.config["src_lang"]
        self.tgt_lang = model.config["tgt_lang"]
        self.backbone = model.decoding
        self.completions = CompletionCache()
        self.tally = tally or Tally()
        keys = self._pair_keys(model, indexes)
        self._longest, self._longest_whole = longest(model), longest_whole(model)
        low_score = model.config.get("low_score", -math.inf)
        decoder = Decoder(
            backbone=self.backbone,
            layers=layers,
            settings=settings,
            device=device,
            tally=self.tally,
            linker=Linker(self.backbone, self.vocab, device),
            shortlist=shortlist_of(settings, model),
            terms=TermList(Finder(terms), self.vocab, hard_terms, self.tgt_lang) if terms else None,
            datastore=self._datastore(indexes) if settings.neighbours else None,
            voting=voting_of(settings, model, device),
            doubtful=DOUBTFUL * low_score,
        )
        self.filters = Filters(Reader(self.vocab, self.src_lang, settings.keep_finders))
        self.copied = self.filters.copied
        lookup = self._lookup(settings, keys, indexes, trust)
        self.pipeline = Pipeline(
            settings=settings,
            vocab=self.vocab,
            backbone=self.backbone,
            layers=layers,
            keys=keys,
            lookup=lookup,
            preparation=self._preparation(lookup),
            decoder=decoder,
            postprocessor=Postprocessor(
                backbone=self.backbone,
                vocab=self.vocab,
                terms=decoder.terms,
                confidence=Confidence.load(model),
                low_score=low_score,
                nbest=settings.nbest,
            ),
            copied=self.copied,
            tally=self.tally,
            lock=self.lock,
        )

    @property
    def terms(self) -> TermList | None:
        """The list of words whose translations must come."""
        return self.pipeline.terms

    def _pair_keys(self, model: Model, indexes: Sequence[Index]) -> PairKeyStore:
        """Pair keys, read where `tmnmt keys` has computed them, else computed at need."""
        header = header_of(model)
        files = [
            keys
            for index in indexes
            if isinstance(index, MemoryIndex) and (keys := precomputed(index.path, header))
        ]
        return PairKeyStore(
            self.backbone,
            self.vocab,
            header.max_subwords,
            device=self.device,
            precomputed=files,
            directions=self.settings.mode == "nearest",
            model=header,
            forcing=lambda: model.for_directions,
        )

    def _reaches(self, indexes: Sequence[Index]) -> Reaches:
        """How the nearest positions of these memories are read."""
        return (
            reaches_of(indexes, self.states_hash) if self.settings.mode == "nearest" else STANDARD
        )

    def _datastore(self, indexes: Sequence[Index]) -> Datastore:
        """The keys of all memories, which neighbours are found in."""
        datastore = Datastore.open(indexes, self.states_hash, torch.get_num_threads())
        for search in datastore.searches:
            search.files.check_words(search.files.ids, len(self.vocab))
        return datastore

    def _lookup(
        self,
        settings: Settings,
        keys: PairKeyStore,
        indexes: Sequence[Index],
        trust: Sequence[Trust],
    ) -> Lookup:
        """What asks these memories, as the settings say."""
        retriever = Retriever(
            indexes,
            settings.top_k,
            settings.threshold,
            settings.selection,
            settings.short_threshold,
            settings.penalties,
            trust,
        )
        lengths = self._longest, self._longest_whole
        reaches = self.reaches or self._reaches(indexes)
        return Lookup(retriever, keys, self.vocab, settings, *lengths, self.tally, reaches)

    def _preparation(self, lookup: Lookup) -> Preparation:
        return Preparation(
            self.vocab,
            self.filters,
            self._longest,
            lookup,
            self.lock,
            self.tally,
            self.backbone.previous,
        )

    def restricted(
        self,
        indexes: Sequence[Index],
        trust: Sequence[Trust],
        settings: Settings,
        writable: WritableIndex | None = None,
        terms: TermList | None = None,
        reaches: Reaches | None = None,
    ) -> Translator:
        """The same model, weights, pair keys, lock and counts, with these memories and terms alone,
        and what is confirmed written to `writable`: for what several users share, each with what is
        theirs. Batches of several such translators can be decoded by any of them once each has
        retrieved for its own, where their settings and terms are the same. `reaches`: as in
        `__init__`; None: as this one has them.

        Raises UsageError where neighbours are read: those are of all memories."""
        pipeline = self.pipeline
        if pipeline.decoder.datastore is not None:
            raise UsageError("neighbours are read of all memories; they cannot be narrowed to some")
        translator = copy.copy(self)
        translator.__dict__.pop("_idle", None)  # a session of the memories of the first
        translator.settings, translator.writable = settings, writable
        translator.reaches = reaches or self.reaches
        lookup = translator._lookup(settings, pipeline.keys, indexes, trust)
        translator.pipeline = replace(
            pipeline,
            settings=settings,
            lookup=lookup,
            preparation=self._preparation(lookup),
            decoder=replace(pipeline.decoder, settings=settings, terms=terms),
            postprocessor=replace(pipeline.postprocessor, terms=terms, nbest=settings.nbest),
        )
        return translator

    @classmethod
    def load(
        cls,
        model: str | Path,
        memory: Sequence[str | Path | Index] = (),
        options: TranslationOptions = TranslationOptions(),
        *,
        write_to: Named | None = None,
        progress: ReadProgress | None = None,
    ) -> Translator:
        """The translator of a model folder.

        memory: built indexes, memory files, or open indexes; matches are the best of all. After a
        name there may be settings, as in "a.tmx:penalty=5" (`named_memories.NamedMemory`).
        options: what steers the translation.
        write_to: the index that confirmed pairs are added to, for good; it is searched, too, and
        made where it is not there yet. Without it they last as long as their session.
        progress: called with units read and the share of all bytes read, when a memory file has to
        be indexed.

        Raises ModelError for what is no model, MemoryIndexError and FormatError for what is no
        memory, or has no keys where there are to be neighbours, UsageError for an option that is
        wrong or that this model cannot serve."""
        check_memory(memory)
        if not isinstance(options, TranslationOptions):
            raise UsageError(f"{options!r} is no options: write TranslationOptions(...)")
        lock = ComputeLock(options.threads)
        with lock:
            device = device_named(options.device)
            loaded = load_on(Path(model), device)
            parameters = load_layers(loaded, device)
            settings = settled(options, parameters, default_mode(parameters))
            loaded = loaded.reading(settings)
            check(
                settings, parameters, loaded
            )  # before a memory is indexed, which may take minutes
            languages = languages_of(loaded, options.src_lang, options.tgt_lang)
            listed = read_terms(options.terms, *languages) if options.terms is not None else []
            hard = options.terms_mode == "hard"
            indexes = open_memories(memory, *languages, progress, options)
            writable = None
            if write_to is not None:
                writable = open_to_write(write_to, memory, indexes, *languages)
                indexes += [writable] if not any(writable is index for index in indexes) else []
            trust = [parse_memory(entry).trust for entry in memory]
            return cls(
                loaded,
                parameters,
                indexes,
                settings,
                device,
                writable,
                trust,
                terms=listed,
                hard_terms=hard,
                lock=lock,
            )

    def translate(
        self, texts: Iterable[Source], explain: bool = False, tag: str = ""
    ) -> list[Translation]:
        """The translations of one document's segments, in order. A blank text is translated as ""
        and starts a new document; one with codes (`Text`) does not. What has codes keeps them.
        `explain`: with the origin of every token. `tag`: as in `stream`.
        Raises UsageError for what is no list of texts."""
        return list(self.stream([texts_of(texts)], explain, tag=tag))

    def stream(
        self,
        documents: Iterable[Sequence[Source]],
        explain: bool = False,
        confirmed: Iterable[Sequence[Pair | None]] | None = None,
        tag: str = "",
        finished: Callable[[], None] = lambda: None,
    ) -> Iterator[Translation]:
        """The translations of all segments of all documents in order, each as soon as those before
        it are there. Where codes stand among words a few batches are waited for, so that their
        places are found together.

        confirmed: for every text of every document the source and target that are confirmed as soon
        as it is translated, as `Session.confirm` does it; None: nothing is. Every document has a
        session of its own. Documents then go side by side, each in its own order; so they do where
        own words are remembered. Else sentences of similar length go together.

        tag: of an imported model with several target languages another than its own, as deu of
        >>deu<<. Raises UsageError where the model has none such, or memories are read or something
        is confirmed: those are in one target language.

        finished: called for every segment once it is translated, also where it has to wait for
        those before it."""
        if tag and (
            confirmed is not None
            or self.settings.remembers
            or self.pipeline.lookup.retriever.indexes
        ):
            raise UsageError(
                f"tag {tag}: memories, and what is remembered, are in {self.tgt_lang}; leave out "
                "one or the other"
            )
        with_pairs = (
            zip(documents, repeat(repeat(None)))
            if confirmed is None
            else paired(documents, confirmed)
        )
        yield from self._stream(with_pairs, explain, confirmed is not None, finished, tag=tag)

    def stream_on(
        self, session: Session, texts: Iterable[Source], explain: bool = False
    ) -> Iterator[Translation]:
        """As `Session.stream` says."""
        yield from self._stream([(texts_of(texts), repeat(None))], explain, False, first=session)

    def _stream(
        self,
        documents: Iterable[tuple[Sequence[Source], Iterable[Pair | None]]],
        explain: bool,
        confirms: bool,
        finished: Callable[[], None] = lambda: None,
        first: Session | None = None,
        tag: str = "",
    ) -> Iterator[Translation]:
        in_order = confirms or self.settings.remembers
        passage, sessions = self.pipeline.passage(finished), Sessions(self, in_order, first)
        can_prefetch = first is None and not (confirms and self.settings.memorises)
        whole = in_order or self.backbone.reads_around
        prepared: Iterator[list[Piece]] = self.pipeline.preparation.documents(
            documents,
            passage.assembly,
            tag,
            None if whole else PIECES_AT_ONCE,
            first.preceding if first is not None else (),
        )
        for batch in self.batches(prepared, in_order, can_prefetch):
            batch_sessions = [sessions.get_session(piece) for piece in batch]
            passage.translate(batch, batch_sessions, explain)
            to_confirm = [
                (session, piece.segment.to_confirm)
                for session, piece in zip(batch_sessions, batch, strict=True)
                if piece.ends_segment and piece.segment.to_confirm
            ]
            self.confirm([(session, self.confirmation(*pair)) for session, pair in to_confirm])
            for piece in batch:
                sessions.leave(piece)
            yield from passage.ready()
        yield from passage.finish()

    def batches(
        self, prepared: Iterable[list[Piece]], in_order: bool, can_prefetch: bool
    ) -> Iterator[list[Piece]]:
        """What is translated together, of documents made pieces; `can_prefetch`: what they read
        does not change meanwhile."""
        if self.backbone.reads_around:
            prepared = map(self._first_pass, prepared)
        if in_order:
            retrieve = self.pipeline.retrieve if can_prefetch else list
            return side_by_side(prepared, self.settings.batch, retrieve)
        batches = by_length(prepared, self.settings.batch)
        return batches if self.terms is None else join_batches(batches, LACKING_TOGETHER)

    def _first_pass(self, pieces: Sequence[Piece]) -> list[Piece]:
        """As `Decoder.first_pass` says."""
        with self.lock:
            return self.pipeline.decoder.first_pass(pieces)

    def confirmation(self, src: Source, tgt: Source) -> Confirmation:
        """A pair as it is confirmed, with what the checks find in it. Nothing is learnt. Raises
        UsageError as `Session.confirm` does."""
        languages = self.src_lang, self.tgt_lang
        return confirmation(src, tgt, *languages, self.terms, self.copied)

    def confirm(self, pairs: Sequence[tuple[Session, Confirmation]]) -> None:
        """Every session learns its pair, as `Session.confirm` says."""
        with self.lock:
            keys: Sequence[PairKeys | None] = [None] * len(pairs)
            if self.settings.caches:
                keys = self.pipeline.keys_to_remember(
                    [(pair.src.plain, pair.tgt.plain) for _, pair in pairs]
                )
            for (session, pair), of_pair in zip(pairs, keys, strict=True):
                session.learn(pair.src, pair.tgt, of_pair)

    def complete(
        self, source: Source, prefix: str, session: Session | None = None, explain: bool = False
    ) -> Translation:
        """As `Session.complete` says; without a session, that of none."""
        return (session or self._idle).complete(source, prefix, explain)

    def alternatives(
        self, source: Source, prefix: str, count: int = 5, session: Session | None = None
    ) -> list[Alternative]:
        """As `Session.alternatives` says; without a session, those of none."""
        return (session or self._idle).alternatives(source, prefix, count)

    @cached_property
    def _idle(self) -> Session:
        """A session in which nothing is ever confirmed."""
        session = Session(self)
        session.cache = self.new_cache(0)
        return session

    def session(self, path: str | Path | None = None) -> Session:
        """A document that is translated sentence by sentence and learns from every confirmed
        translation.

        path: of a session that was saved, which goes on as if it never had been. Raises DataError
        where it is none, ModelError where another model, K or kind of cache made it."""
        session = Session(self)
        if path is not None:
            session.restore(Path(path))
        return session

    def new_cache(self, slots: int | None = None) -> CacheContents:
        """An empty session cache of so many slots, or of those set."""
        slots = self.settings.cache if slots is None else slots
        overwrite = self.settings.cache_overwrite
        sizes = self.backbone.context_size, self.backbone.hidden_size
        if self.layers is None or self.layers.cache is None:
            contents = CacheContents(0, *sizes, device=self.device)
        else:
            cache = self.layers.cache
            contents = CacheContents(
                slots,
                *cache.slot_sizes,
                cache.kind.overwrite if overwrite is None else overwrite,
                self.device,
            )
        if self.settings.mode == "nearest" and not contents.size:
            contents.positions = SessionPositions(self.backbone.hidden_size, self.device)
        return contents
