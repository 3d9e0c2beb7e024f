"""A model with its memories, for programs that translate. `tmnmt.engine.streaming` decides which
segments are translated together, and `tmnmt.engine.pipeline` is the way of a single sentence."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from tmnmt.codes.record import Pair, Source
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.compute_lock import ComputeLock
from tmnmt.engine.extension import Extensions, make_extensions
from tmnmt.engine.pipeline import Pipeline
from tmnmt.engine.preparation import paired, texts_of
from tmnmt.engine.run_statistics import Tally
from tmnmt.engine.settings import (
    Settings,
    check,
    default_mode,
    settled,
)
from tmnmt.engine.streaming import Stream
from tmnmt.errors import UsageError
from tmnmt.index.base import Index, WritableIndex
from tmnmt.index.match_value import PRECEDING, Trust
from tmnmt.index.named_memories import (
    Named,
    check_memory,
    open_memories,
    open_to_write,
    parse_memory,
)
from tmnmt.interactive.cache import CompletionCache
from tmnmt.layers.reach import Reaches
from tmnmt.models.addresses import with_languages
from tmnmt.progress import ReadProgress
from tmnmt.segments import Alternative, Translation
from tmnmt.session import Session

if TYPE_CHECKING:
    from tmnmt.layers.combine import MemoryLayers
    from tmnmt.models.folder import Model


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
        from tmnmt.engine.building import build_pipeline

        of_memory = trust, tally, extensions, reaches, lock
        self.pipeline = build_pipeline(model, layers, indexes, settings, device, *of_memory)
        self.settings, self.layers = settings, self.pipeline.layers
        self.reaches, self.writable = reaches, writable
        self.vocab = self.pipeline.vocab
        self.tally, self.lock = self.pipeline.tally, self.pipeline.lock
        self.src_lang, self.tgt_lang = self.pipeline.languages
        self.model_hash = model.hash
        self.completions = CompletionCache()

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

        model: the path of the model folder, or the address of a base, as
        "openai:http://127.0.0.1:11434/v1#NAME".
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
        from tmnmt.engine.building import calibrated
        from tmnmt.engine.loading import device_named, languages_of, load_layers, load_on

        check_memory(memory)
        if not isinstance(options, TranslationOptions):
            raise UsageError(f"{options!r} is no options: write TranslationOptions(...)")
        lock = ComputeLock(options.threads)
        with lock:
            device = device_named(options.device)
            place = with_languages(Path(model), options.src_lang, options.tgt_lang)
            loaded = load_on(place, device, needs_states=False)
            parameters = load_layers(loaded, device)
            settings = settled(options, parameters, default_mode(parameters, loaded))
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
                calibrated(settings, options, indexes, loaded),
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
        confirms = confirmed is not None
        stream = Stream(self.pipeline, self.writable, None, confirms, explain, tag, finished)
        yield from stream.translations(with_pairs)

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


def restrict(
    translator: Translator,
    indexes: Sequence[Index],
    trust: Sequence[Trust],
    settings: Settings,
    writable: WritableIndex | None = None,
    extensions: Extensions = MappingProxyType({}),
    reaches: Reaches | None = None,
) -> Translator:
    """A translator for one of several users who share a model, with a pipeline as
    `restricted_pipeline` gives it. Where the settings and extensions of several such translators
    are the same, any of them can decode batches of all, once each has retrieved for its own pieces.

    translator: the translator of the model.
    indexes: the open indexes that are searched.
    trust: how far the matches of each index are trusted, in the order of `indexes`.
    settings: how to translate.
    writable: the index that confirmed pairs are added to; None where they only last as long as
    their session.
    extensions: features that stand beside those of the translator, or take the place of those of
    the same name.
    reaches: how far nearest positions are read; None keeps what the translator has.

    Raises UsageError where neighbours are read, because these are found in all memories."""
    from tmnmt.engine.building import restricted_pipeline

    if translator.pipeline.writer.reads_all_memories:
        raise UsageError("neighbours are read of all memories; they cannot be narrowed to some")
    reaches = reaches or translator.reaches
    pipeline = translator.pipeline
    pipeline = restricted_pipeline(pipeline, indexes, trust, settings, extensions, reaches)
    restricted = _with_pipeline(translator, pipeline)
    restricted.reaches, restricted.writable = reaches, writable
    return restricted


def with_memory(translator: Translator, index: Index) -> Translator:
    """A translator that searches one more memory, and otherwise is the same. Where a match of that
    memory is worth as much as one of the others, it goes first.

    translator: the translator.
    index: the open index, as of what the file has that is translated."""
    from tmnmt.engine.building import restricted_pipeline

    pipeline, lookup = translator.pipeline, translator.pipeline.lookup
    indexes = [index, *lookup.retriever.indexes]
    trust = [PRECEDING, *lookup.retriever.trust]
    settings, reaches = pipeline.settings, lookup.reaches
    pipeline = restricted_pipeline(pipeline, indexes, trust, settings, reaches=reaches)
    return _with_pipeline(translator, pipeline)


def in_region(translator: Translator, code: str) -> Translator:
    """A translator that sets what it writes as a region does, where no option names another one.

    translator: the translator.
    code: the target language of a file, with or without a region."""
    pipeline, settings = translator.pipeline, translator.settings
    if settings.typography is not None or not {"-", "_"} & set(code):
        return translator
    filters = pipeline.preparation.filters.typesetting(code)
    preparation = pipeline.preparation.with_filters(filters)
    return _with_pipeline(translator, replace(pipeline, preparation=preparation))


def _with_pipeline(translator: Translator, pipeline: Pipeline) -> Translator:
    """The same translator with another pipeline of its model."""
    restricted = copy.copy(translator)
    restricted.__dict__.pop("_idle", None)  # it reads the memories of the first translator
    restricted.settings, restricted.pipeline = pipeline.settings, pipeline
    return restricted
