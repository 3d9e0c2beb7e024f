"""Builds the pipeline of a model with its memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from tmnmt.config.options import ModelOptions
from tmnmt.engine.compute_lock import ComputeLock
from tmnmt.engine.extension import Extensions, make_extensions, with_extensions
from tmnmt.engine.invented_words import invented_words
from tmnmt.engine.lookup import Lookup
from tmnmt.engine.pipeline import Pipeline
from tmnmt.engine.preparation import Preparation
from tmnmt.engine.retrieve import Retriever
from tmnmt.engine.run_statistics import Tally
from tmnmt.engine.settings import Settings, check
from tmnmt.engine.writer import WRITERS
from tmnmt.filters import Filters
from tmnmt.filters.contract import Reader
from tmnmt.index.base import Index
from tmnmt.index.match_value import Trust
from tmnmt.keys.compute import longest, longest_whole
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.reach import STANDARD, Reaches, neighbours_of, reaches_of
from tmnmt.models.folder import Model


def build_pipeline(
    model: Model,
    layers: MemoryLayers | None,
    indexes: Sequence[Index],
    settings: Settings,
    device: str = "cpu",
    trust: Sequence[Trust] = (),
    tally: Tally | None = None,
    extensions: Extensions | None = None,
    reaches: Reaches | None = None,
    lock: ComputeLock | None = None,
) -> Pipeline:
    """The pipeline of a model with its memories.

    model: the model, as `load_on` opens it.
    layers: the memory layers that the model has learned; None where it has learned none.
    indexes: the open indexes that are searched.
    settings: what the options come to for this model, as `settled` gives them.
    device: what torch computes on, such as "cpu" or "cuda:0".
    trust: how far the matches of each index are trusted, in the order of `indexes`; none given, all
    count in full.
    tally: what the counts are added to; None makes a new one.
    extensions: the features on the way of a sentence, by name; None takes those that the model has
    without any option.
    reaches: how far nearest positions are read; None takes what a calibration has found for the
    memories.
    lock: what is held while something is computed; None makes a new lock.

    Raises UsageError for settings that the model cannot serve."""
    model = replace(model.reading(settings), products=settings.precision)
    check(settings, layers, model)
    tally, lock = tally or Tally(), lock or ComputeLock()
    vocab, languages = model.vocab, (model.config["src_lang"], model.config["tgt_lang"])
    extensions = make_extensions(model) if extensions is None else extensions
    make_writer = WRITERS[model.backbone.writer]
    writer = make_writer(model, layers, indexes, settings, device, tally, extensions)
    lengths = longest(model), longest_whole(model)
    retriever = _retriever(indexes, trust, settings)
    memory_reaches = reaches or _reaches(indexes, settings, model.states_hash)
    lookup = Lookup(retriever, writer.keys, vocab, settings, *lengths, tally, memory_reaches)
    filters = Filters(_reader(model, settings))
    previous = model.backbone.previous
    return Pipeline(
        settings=settings,
        languages=languages,
        vocab=vocab,
        lookup=lookup,
        preparation=Preparation(vocab, filters, lengths[0], lookup, lock, tally, previous),
        writer=writer,
        states_hash=model.states_hash,
        copied=filters.copied,
        words=invented_words(languages[1], vocab, indexes),
        tally=tally,
        lock=lock,
    )


def calibrated(
    settings: Settings, options: ModelOptions, indexes: Sequence[Index], model: Model
) -> Settings:
    """The settings with as many neighbours of a draft as `tmnmt calibrate` has chosen for the
    memories, where these have keys, and the options leave the number open.

    settings: what the options come to without the memories.
    options: the options.
    indexes: the open indexes that are searched.
    model: the model.

    Raises DataError where a file of chosen numbers is damaged."""
    is_open = options.neighbours is None and options.knn_adaptive is None
    if settings.mode != "nearest" or not is_open:
        return settings
    states_hash = replace(model.reading(settings), products=settings.precision).states_hash
    return replace(settings, neighbours=neighbours_of(indexes, states_hash))


def _reader(model: Model, settings: Settings) -> Reader:
    """What the filters may know of who reads."""
    tgt_lang = model.config["tgt_lang"]
    return Reader(
        model.vocab if model.vocab.is_learned else None,
        model.config["src_lang"],
        settings.keep_finders,
        tgt_lang=tgt_lang,
        typography=settings.typeset_in(tgt_lang),
    )


def restricted_pipeline(
    pipeline: Pipeline,
    indexes: Sequence[Index],
    trust: Sequence[Trust],
    settings: Settings,
    extensions: Extensions = MappingProxyType({}),
    reaches: Reaches | None = None,
) -> Pipeline:
    """A pipeline with the same model, weights, pair keys, lock and counts, but only these memories.

    pipeline: the pipeline of the model.
    indexes: the open indexes that are searched.
    trust: how far the matches of each index are trusted, in the order of `indexes`.
    settings: how to translate.
    extensions: features that stand beside those of the pipeline, or take the place of those of the
    same name.
    reaches: how far nearest positions are read; None takes what a calibration has found for the
    memories."""
    extensions = with_extensions(pipeline.extensions, extensions)
    memory_reaches = reaches or _reaches(indexes, settings, pipeline.states_hash)
    lookup = pipeline.lookup.with_memories(
        _retriever(indexes, trust, settings), settings, memory_reaches
    )
    return replace(
        pipeline,
        settings=settings,
        lookup=lookup,
        words=invented_words(pipeline.languages[1], pipeline.vocab, indexes),
        preparation=pipeline.preparation.with_lookup(lookup),
        writer=pipeline.writer.restricted(settings, extensions),
    )


def _retriever(indexes: Sequence[Index], trust: Sequence[Trust], settings: Settings) -> Retriever:
    return Retriever(
        indexes,
        settings.top_k,
        settings.threshold,
        settings.selection,
        settings.short_threshold,
        settings.penalties,
        trust,
    )


def _reaches(indexes: Sequence[Index], settings: Settings, states_hash: str) -> Reaches:
    """How the nearest positions of these memories are read."""
    return reaches_of(indexes, states_hash) if settings.mode == "nearest" else STANDARD
