"""Builds the pipeline of a model with its memories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from tmnmt.engine.compute_lock import ComputeLock
from tmnmt.engine.decoder import Decoder
from tmnmt.engine.extension import Extensions, make_extensions, with_extensions
from tmnmt.engine.links import Linker
from tmnmt.engine.lookup import Lookup
from tmnmt.engine.pipeline import Pipeline
from tmnmt.engine.postprocess import Postprocessor
from tmnmt.engine.preparation import Preparation
from tmnmt.engine.retrieve import Retriever
from tmnmt.engine.run_statistics import Tally
from tmnmt.engine.settings import Settings, check, shortlist_of, whole_memory_of
from tmnmt.filters import Filters
from tmnmt.filters.contract import Reader
from tmnmt.index.base import Index, is_in_folder
from tmnmt.index.match_value import Trust
from tmnmt.keys.compute import header_of, longest, longest_whole, precomputed
from tmnmt.keys.layout import DIRECTIONS, PAIRS
from tmnmt.keys.pair_keys import PairKeyStore
from tmnmt.layers.combine import MemoryLayers
from tmnmt.layers.reach import STANDARD, Reaches, reaches_of
from tmnmt.models.folder import Model

DOUBTFUL = 0.5  # times the low score: below it, a heading is read in two ways; chosen on dev


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
    if settings.mode != "off":
        layers = layers or MemoryLayers()
    tally, lock = tally or Tally(), lock or ComputeLock()
    backbone, vocab, src_lang = model.decoding, model.vocab, model.config["src_lang"]
    keys = _pair_keys(model, indexes, settings, device)
    lengths = longest(model), longest_whole(model)
    low_score = model.config.get("low_score", -math.inf)
    extensions = make_extensions(model) if extensions is None else extensions
    retriever = _retriever(indexes, trust, settings)
    memory_reaches = reaches or _reaches(indexes, settings, model.states_hash)
    lookup = Lookup(retriever, keys, vocab, settings, *lengths, tally, memory_reaches)
    tgt_lang = model.config["tgt_lang"]
    reader = Reader(
        vocab,
        src_lang,
        settings.keep_finders,
        tgt_lang=tgt_lang,
        typography=settings.typeset_in(tgt_lang),
    )
    filters = Filters(reader)
    return Pipeline(
        settings=settings,
        languages=(src_lang, tgt_lang),
        vocab=vocab,
        backbone=backbone,
        layers=layers,
        keys=keys,
        lookup=lookup,
        preparation=Preparation(vocab, filters, lengths[0], lookup, lock, tally, backbone.previous),
        decoder=Decoder(
            backbone=backbone,
            layers=layers,
            settings=settings,
            device=device,
            tally=tally,
            linker=Linker(backbone, vocab, device),
            vocab=vocab,
            src_lang=src_lang,
            shortlist=shortlist_of(settings, model),
            extensions=extensions,
            whole_memory=whole_memory_of(settings, model, indexes, device),
            doubtful=DOUBTFUL * low_score,
        ),
        postprocessor=Postprocessor(
            backbone=backbone,
            vocab=vocab,
            extensions=extensions,
            low_score=low_score,
            nbest=settings.nbest,
        ),
        states_hash=model.states_hash,
        copied=filters.copied,
        tally=tally,
        lock=lock,
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
        preparation=pipeline.preparation.with_lookup(lookup),
        decoder=replace(pipeline.decoder, settings=settings, extensions=extensions),
        postprocessor=replace(pipeline.postprocessor, extensions=extensions, nbest=settings.nbest),
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


def _pair_keys(
    model: Model, indexes: Sequence[Index], settings: Settings, device: str
) -> PairKeyStore:
    """The store of pair keys. It reads them where `tmnmt keys` has computed them, and computes the
    others at need."""
    reads_directions = settings.mode == "nearest"
    header = header_of(model, DIRECTIONS if reads_directions else PAIRS)
    files = [
        keys
        for index in indexes
        if is_in_folder(index) and (keys := precomputed(index.folder, header))
    ]
    return PairKeyStore(
        model.decoding,
        model.vocab,
        header.max_subwords,
        device=device,
        precomputed=files,
        directions=reads_directions,
        model=header,
        forcing=lambda: model.for_directions,
    )
