"""A model with its memories, for programs that translate. This module decides which segments are
translated together; the way of a single sentence is in `tmnmt.engine.pipeline`."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from pathlib import Path
from types import MappingProxyType

from tmnmt.codes.record import Source
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.compute_lock import ComputeLock
from tmnmt.engine.confirmation import Confirmation, confirmation
from tmnmt.engine.decoder import Decoder
from tmnmt.engine.extension import Extensions, make_extensions, with_extensions
from tmnmt.engine.links import Linker
from tmnmt.engine.loading import device_named, languages_of, load_layers, load_on
from tmnmt.engine.lookup import Lookup
from tmnmt.engine.piece import Piece
from tmnmt.engine.pipeline import Pipeline
from tmnmt.engine.postprocess import Postprocessor
from tmnmt.engine.preparation import Pair, Preparation, paired, texts_of
from tmnmt.engine.retrieve import Retriever
from tmnmt.engine.run_statistics import Tally
from tmnmt.engine.schedule import by_length, join_batches, side_by_side
from tmnmt.engine.settings import (
    Settings,
    check,
    default_mode,
    settled,
    shortlist_of,
    whole_memory_of,
)
from tmnmt.errors import UsageError
from tmnmt.filters import Filters
from tmnmt.filters.contract import Reader
from tmnmt.index.base import Index, WritableIndex, is_in_folder
from tmnmt.index.match_value import PRECEDING, Trust
from tmnmt.index.named_memories import (
    Named,
    check_memory,
    open_memories,
    open_to_write,
    parse_memory,
)
from tmnmt.interactive.completion import CompletionCache
from tmnmt.keys.compute import header_of, longest, longest_whole, precomputed
from tmnmt.keys.pair_keys import PairKeys, PairKeyStore
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.contract import Histories
from tmnmt.layers.reach import STANDARD, Reaches, reaches_of
from tmnmt.models.folder import Model
from tmnmt.progress import ReadProgress
from tmnmt.segments import Alternative, Translation
from tmnmt.session import Session, Sessions

PIECES_AT_ONCE = 256  # of a document are prepared ahead: more would only take up memory
REVISED_TOGETHER = 4  # batches whose incomplete translations are revised together
DOUBTFUL = 0.5  # times the low score: below it, a heading is read in two ways; chosen on dev


class Translator:
    """A model with its memories. `Translator.load` makes one from a model folder.

    `tally` counts what had to be changed in texts, how many segments scored low and which words the
    vocabulary lacked, and says where the time went.

    Any thread may use a translator and its sessions. One batch is translated after another, under
    `lock`, so the results are those of a single thread. Several threads get their answers no
    faster than one would. The counts of `tally` are those of all threads together."""

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
        extensions: Extensions | None = None,
        reaches: Reaches | None = None,
        lock: ComputeLock | None = None,
    ) -> None:
        """model: the model, as `load_on` opens it.
        layers: the memory layers that the model has learned; None where it has learned none.
        indexes: the open indexes that are searched.
        settings: what the options come to for this model, as `settled` gives them.
        device: what torch computes on, such as "cpu" or "cuda:0".
        writable: the index that confirmed pairs are added to; None where they only last as long as
        their session.
        trust: how far the matches of each index are trusted, in the order of `indexes`; none given,
        all count in full.
        tally: what the counts are added to; None makes a new one.
        extensions: the features on the way of a sentence, by name; None takes those that the model
        has without any option.
        reaches: how far nearest positions are read; None takes what a calibration has found for the
        memories.
        lock: what is held while something is computed; None makes a new lock.

        Raises UsageError for settings that the model cannot serve."""
        model = model.reading(settings)
        model = replace(model, products=settings.precision)
        check(settings, layers, model)
        if settings.mode != "off":
            layers = layers or MemoryLayers()
        self.settings = settings
        self.reaches = reaches
        self.layers = layers
        self.device = device
        self.writable = writable
        self.lock = lock or ComputeLock()
        self.model_hash = model.hash
        self.states_hash = model.states_hash
        of_layers = layers.history_digest if layers is not None else ""
        # names all that what layers keep of a document depends on
        self.cache_hash = f"{model.states_hash} {of_layers}".strip()
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
            extensions=make_extensions(model) if extensions is None else extensions,
            whole_memory=whole_memory_of(settings, model, indexes, device),
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
                extensions=decoder.extensions,
                low_score=low_score,
                nbest=settings.nbest,
            ),
            copied=self.copied,
            tally=self.tally,
            lock=self.lock,
        )

    @property
    def extensions(self) -> Extensions:
        """The features on the way of a sentence, by name."""
        return self.pipeline.extensions

    def _pair_keys(self, model: Model, indexes: Sequence[Index]) -> PairKeyStore:
        """The store of pair keys. It reads them where `tmnmt keys` has computed them, and computes
        the others at need."""
        header = header_of(model)
        files = [
            keys
            for index in indexes
            if is_in_folder(index) and (keys := precomputed(index.folder, header))
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

    def _lookup(
        self,
        settings: Settings,
        keys: PairKeyStore,
        indexes: Sequence[Index],
        trust: Sequence[Trust],
    ) -> Lookup:
        """The part of the pipeline that asks these memories, as the settings say."""
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
        extensions: Extensions = MappingProxyType({}),
        reaches: Reaches | None = None,
    ) -> Translator:
        """A translator for one of several users who share a model. It has the same model, weights,
        pair keys, lock and counts, but only these memories. Where the settings and extensions of
        several such translators are the same, any of them can decode batches of all, once each
        has retrieved for its own pieces.

        indexes: the open indexes that are searched.
        trust: how far the matches of each index are trusted, in the order of `indexes`.
        settings: what the options come to for this user.
        writable: the index that confirmed pairs are added to; None where they only last as long as
        their session.
        extensions: the features that are this user's own, by name. They take the place of those of
        the same name.
        reaches: how far nearest positions are read; None keeps what this translator has.

        Raises UsageError where neighbours are read, because these are found in all memories."""
        if self.pipeline.decoder.whole_memory is not None:
            raise UsageError("neighbours are read of all memories; they cannot be narrowed to some")
        translator = self._reading(indexes, trust, settings, reaches or self.reaches)
        pipeline = translator.pipeline
        extensions = with_extensions(pipeline.extensions, extensions)
        translator.writable = writable
        translator.pipeline = replace(
            pipeline,
            decoder=replace(pipeline.decoder, extensions=extensions),
            postprocessor=replace(pipeline.postprocessor, extensions=extensions),
        )
        return translator

    def _reading(
        self,
        indexes: Sequence[Index],
        trust: Sequence[Trust],
        settings: Settings,
        reaches: Reaches | None,
    ) -> Translator:
        """The same translator with these memories and settings."""
        pipeline = self.pipeline
        translator = copy.copy(self)
        translator.__dict__.pop("_idle", None)  # it reads the memories of the first translator
        translator.settings, translator.reaches = settings, reaches
        lookup = translator._lookup(settings, pipeline.keys, indexes, trust)
        translator.pipeline = replace(
            pipeline,
            settings=settings,
            lookup=lookup,
            preparation=self._preparation(lookup),
            decoder=replace(pipeline.decoder, settings=settings),
            postprocessor=replace(pipeline.postprocessor, nbest=settings.nbest),
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
        """Makes the translator of a model folder.

        model: the path of the model folder.
        memory: the memories, each as the path or address of an index, as the path of a memory file,
        or as an open index. Matches are the best of all memories. A name may end in settings, as in
        "a.tmx:penalty=5" (`tmnmt.index.named_memories.NamedMemory`).
        options: what steers the translation.
        write_to: the index that confirmed pairs are added to, for good. It is searched, too, and it
        is made where it is not there yet. Without it, confirmed pairs last as long as their
        session.
        progress: a function that is called while a memory file is indexed, with the number of units
        read since the last call and the share of all bytes read, from 0 to 1.

        Raises ModelError for a folder that is no model. Raises MemoryIndexError or FormatError for
        what is no memory, and where neighbours are wanted of an index that has no keys. Raises
        UsageError for an option that is wrong or that this model cannot serve."""
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
            extensions = make_extensions(loaded, options)
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
                extensions=extensions,
                lock=lock,
            )

    def translate(
        self, texts: Iterable[Source], explain: bool = False, tag: str = ""
    ) -> list[Translation]:
        """Translates the segments of one document. Returns their translations, in order.

        texts: the segments, as plain text or as a `Text` with codes, which the translation keeps. A
        blank plain text is translated as "", and a new document begins behind it.
        explain: whether every token comes with its origin; this takes longer.
        tag: the target language, as in `stream`.

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
        """Translates the segments of several documents. Gives the translations of all segments in
        order, each as soon as those before it are there. Where codes stand among words, the
        translations of a few batches may come together, because the places of codes are found
        together.

        Documents go side by side, each in its order, where something is confirmed or the model's
        own words are remembered. Otherwise sentences of similar length go together.

        documents: the segments of every document, in order. A `PartialDocument` has confirmed pairs
        besides, which the session cache has from the beginning.
        explain: whether every token comes with its origin; this takes longer.
        confirmed: for every text of every document, the source and target that are confirmed as
        soon as the text is translated, as `Session.confirm` does it, or None where nothing is.
        Every document then has a session of its own. None confirms nothing.
        tag: the target language, for an imported model that has several, as `deu` for `>>deu<<`; ""
        takes the language that the model folder names.
        finished: a function that is called for every segment once it is translated, also while the
        segment has to wait for those before it.

        Raises UsageError for a tag that the model does not have, and for a tag where memories are
        read or something is confirmed, because these are in one target language."""
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
        """Gives the translations of the texts that follow in a session, as `Session.stream` does.

        session: the session, which nothing is confirmed in meanwhile.
        texts: the next segments of its document.
        explain: whether every token comes with its origin."""
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
        for batch in self._batches(prepared, in_order, can_prefetch):
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

    def _batches(
        self, prepared: Iterable[list[Piece]], in_order: bool, can_prefetch: bool
    ) -> Iterator[list[Piece]]:
        """Gives the pieces that are translated together, batch by batch.

        prepared: the pieces of one document, or of a part of it, after another.
        in_order: whether a piece may only be translated after those before it in its document.
        can_prefetch: whether matches may be looked up ahead, because what the pieces read does not
        change meanwhile."""
        decoder = self.pipeline.decoder
        if self.backbone.reads_around:
            prepared = map(self._first_pass, prepared)
        if in_order:
            retrieve = self.pipeline.retrieve if can_prefetch else list
            return side_by_side(prepared, self.settings.batch, retrieve)
        batches = by_length(prepared, self.settings.batch)
        return join_batches(batches, REVISED_TOGETHER) if decoder.revisers else batches

    def _first_pass(self, pieces: Sequence[Piece]) -> list[Piece]:
        """The pieces of a document with what `Decoder.first_pass` gives them."""
        with self.lock:
            return self.pipeline.decoder.first_pass(pieces)

    def confirmation(self, src: Source, tgt: Source) -> Confirmation:
        """Makes a pair ready to be confirmed: both texts are cleaned, and the checks look at them.
        Nothing is learned.

        src: the source.
        tgt: its translation, as a person has approved it.

        Raises UsageError as `Session.confirm` does."""
        languages = self.src_lang, self.tgt_lang
        return confirmation(src, tgt, *languages, self.extensions, self.copied)

    def confirm(self, pairs: Sequence[tuple[Session, Confirmation]]) -> None:
        """Has every session learn its pair, as `Session.confirm` does.

        pairs: the sessions, each with the pair that `confirmation` has made."""
        with self.lock:
            keys: Sequence[PairKeys | None] = [None] * len(pairs)
            if self.settings.caches:
                texts = [(pair.src.plain, pair.tgt.plain) for _, pair in pairs]
                histories = (session.histories for session, _ in pairs)
                keys = self.pipeline.keys_to_remember(texts, histories)
            for (session, pair), of_pair in zip(pairs, keys, strict=True):
                session.learn(pair.src, pair.tgt, of_pair)

    def complete(
        self, source: Source, prefix: str, session: Session | None = None, explain: bool = False
    ) -> Translation:
        """Completes a translation that a person has begun to type, as `Session.complete` does.

        source: the segment that is translated.
        prefix: what was typed of its translation.
        session: the document that the segment belongs to; None where nothing was confirmed.
        explain: whether every token comes with its origin.

        Raises UsageError for what is no text."""
        return (session or self._idle).complete(source, prefix, explain)

    def alternatives(
        self, source: Source, prefix: str, count: int = 5, session: Session | None = None
    ) -> list[Alternative]:
        """The words that may stand behind what a person has typed, as `Session.alternatives` gives
        them.

        source: the segment that is translated.
        prefix: what was typed of its translation.
        count: how many words are given at most.
        session: the document that the segment belongs to; None where nothing was confirmed.

        Raises UsageError for what is no text."""
        return (session or self._idle).alternatives(source, prefix, count)

    @cached_property
    def _idle(self) -> Session:
        """The session for segments of no document. Nothing is ever confirmed in it."""
        session = Session(self)
        session.histories = {}
        return session

    def session(self, path: str | Path | None = None) -> Session:
        """Opens a document that is translated sentence by sentence, and that learns from every
        confirmed translation.

        path: the file of a session that `Session.save` wrote. The session goes on as if it had
        never been saved. None opens a new session.

        Raises DataError where the file is no session. Raises ModelError where it was saved with
        another model, another number of slots or another kind of cache."""
        session = Session(self)
        if path is not None:
            session.restore(Path(path))
        return session

    def new_histories(self) -> Histories:
        """What the memory layers keep of a document that begins."""
        return self.pipeline.new_histories()


def with_memory(translator: Translator, index: Index) -> Translator:
    """A translator that searches one more memory, and otherwise is the same. Where a match of that
    memory is worth as much as one of the others, it goes first.

    translator: the translator.
    index: the open index, as of what the file has that is translated."""
    lookup = translator.pipeline.lookup
    indexes = [index, *lookup.retriever.indexes]
    trust = [PRECEDING, *lookup.retriever.trust]
    return translator._reading(indexes, trust, translator.settings, lookup.reaches)
