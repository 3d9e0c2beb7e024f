"""The second pass of `tmnmt train`: the memory layers on a finished base, which stays as it
is, unless the translation memory is trained with it, end to end; last, where asked for, the gates
of TM and cache together."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tmnmt.durable import make_folder
from tmnmt.layers.combine import MemoryLayers
from tmnmt.models.base import Backbone
from tmnmt.segments import Segment
from tmnmt.trained_layers.cache import CacheKind, SessionCache
from tmnmt.trained_layers.tm import TMKind, TranslationMemory
from tmnmt.training import checkpoint
from tmnmt.training.cache import CachePart, SideBySide, Stretch, WrittenStretches
from tmnmt.training.checkpoint import digest_of
from tmnmt.training.memory_config import MemoryConfig, check
from tmnmt.training.memory_data import MemoryData
from tmnmt.training.parts import Part, PartTrainer, Standing
from tmnmt.training.teacher_forcing import force_references
from tmnmt.training.tm import IRRELEVANT, PairedSentences, TMPart
from tmnmt.training.trainers import (
    CACHE_HISTORIES,
    CACHE_TRAINERS,
    END_TO_END,
    FIXED,
    JOINT_TRAINERS,
    TM_TRAINERS,
)
from tmnmt.vocab import Vocabulary

log = logging.getLogger(__name__)


class Reached(NamedTuple):
    """Dev losses in nats a subword: of the plain model, with a part as it has learned, and with
    what was there of it before; None: nothing was."""

    plain: float
    final: float
    initial: float | None = None

    @property
    def start(self) -> float:
        """What the part has to be better than."""
        return self.plain if self.initial is None else self.initial


class TrainingOutcome(NamedTuple):
    """`reached`: for every part; for copy and fusion with irrelevant pairs, too."""

    layers: MemoryLayers
    reached: dict[str, Reached]


def train_layers(
    backbone: Backbone,
    vocab: Vocabulary,
    documents: Sequence[Sequence[Segment]],
    dev_documents: Sequence[Sequence[Segment]],
    folder: Path,
    config: MemoryConfig,
    resume: bool = False,
    languages: tuple[str, str] = ("en", "fr"),
    initial: MemoryLayers | None = None,
) -> TrainingOutcome:
    """Trains what `config` asks for; checkpoints and log go to `folder`. The caller saves the
    layers, and before them the base where it was trained with them, end to end.

    initial: layers of this base to begin from; what they have is trained on as the kind that it is,
    whatever `config` says. They stay as they are.

    documents: those the base was trained on, in order; dev sources must not stand among them.
    `backbone` is put into evaluation mode and no longer asks for gradients. A run may be taken up
    with one of copy and fusion left out: each has a loss of its own, so both are trained to the
    end, and what is not asked for is dropped. Raises UsageError where a run is there and `resume`
    is not given, DataError where there is nothing to learn from."""
    check(config)
    data = MemoryData(documents, dev_documents, vocab, folder, config, languages)
    # what they lack is told before all else
    stretches = data.stretches(config.cache_pairs) if config.cache else None
    make_folder(folder)
    backbone.eval().requires_grad_(False)
    sizes = backbone.context_size, backbone.hidden_size, backbone.word_size
    torch.manual_seed(config.seed)
    initial = initial or MemoryLayers()
    kind = _tm_kind(config, initial.tm)
    tm = TranslationMemory(*sizes, _as_begun(kind, folder)) if kind.copy or kind.fusion else None
    cache = SessionCache(*sizes, _cache_kind(config, initial.cache)) if config.cache else None
    if cache is not None:
        nn.init.constant_(cache.U.bias, config.cache_gate_start)
    for layer, initial_layer in ((tm, initial.tm), (cache, initial.cache)):
        if layer is not None and initial_layer is not None:
            _take_up(layer, initial_layer)
    layers = MemoryLayers(tm, cache).to(next(backbone.parameters()).device)
    reached: dict[str, Reached] = {}
    if tm is not None:
        begun_from = _digest(backbone, initial.tm)
        tm_part = _tm_part(tm, backbone, vocab, data, initial.tm is None)
        standing = _train(tm_part, folder, config, resume, begun_from)
        reached |= _reached(standing, config, initial)
        backbone.eval().requires_grad_(False)
        layers.tm = tm = _dropped(tm, TranslationMemory(*sizes, kind).to(tm.log_eta.device))
        _report_attention(tm)
    if cache is not None and stretches is not None:
        documents_of = SideBySide(cache, backbone, vocab, config.documents_together)
        description = _written_stretches(documents_of, stretches, folder, config)
        begun_from = (
            f"{_digest(backbone, initial.cache)} {json.dumps(asdict(cache.kind))} "
            f"{config.cache_history}"
        )
        part = _cache_part(documents_of, description, config, tm is None, initial.cache is not None)
        reached |= _reached(_train(part, folder, config, resume, begun_from), config, initial)
        backbone.eval().requires_grad_(False)
        if config.tune_gates and tm is not None:
            _tune(tm, layers, documents_of, data, folder, config, resume)
    data.close()
    return TrainingOutcome(layers.eval(), reached)


def _tm_part(
    tm: TranslationMemory, backbone: Backbone, vocab: Vocabulary, data: MemoryData, new: bool
) -> TMPart:
    config, sentences = data.config, data.sentences()
    if new:
        tm.begin(_first_contexts(backbone, vocab, sentences[0], tm.log_eta.device))
    train = TM_TRAINERS[END_TO_END if config.end_to_end else FIXED]
    return train(tm, backbone, vocab, *sentences, config)


def _cache_part(
    documents: SideBySide,
    described: tuple[WrittenStretches, WrittenStretches],
    config: MemoryConfig,
    alone: bool,
    is_pretrained: bool,
) -> CachePart:
    """alone: no TM has learned before it, so that the base may learn with the cache."""
    train = CACHE_TRAINERS[END_TO_END if config.end_to_end and alone else FIXED]
    return train(documents, *described, config, is_pretrained)


def _first_contexts(
    backbone: Backbone, vocab: Vocabulary, train: PairedSentences, device: torch.device
) -> Tensor:
    """Contexts (n, l) along a few of the sentences that are learned from."""
    segments = [train.segments[i] for i in train.sentences[:64]]
    batch = force_references(backbone, vocab, segments, device)
    return batch.contexts[batch.real]


def _written_stretches(
    documents: SideBySide,
    stretches: tuple[list[Stretch], list[Stretch]],
    folder: Path,
    config: MemoryConfig,
) -> tuple[WrittenStretches, WrittenStretches]:
    """Stretches to learn from and dev, with what is written to the cache of them."""
    history = CACHE_HISTORIES[config.cache_history]
    paths = folder / "own-training.jsonl.gz", folder / "own-dev.jsonl.gz"
    train, dev = (
        WrittenStretches(
            documents_read,
            history(documents.backbone, documents.vocab, documents_read, path, documents.device),
        )
        for documents_read, path in zip(stretches, paths, strict=True)
    )
    return train, dev


def _tune(
    tm: TranslationMemory,
    layers: MemoryLayers,
    documents: SideBySide,
    data: MemoryData,
    folder: Path,
    config: MemoryConfig,
    resume: bool,
) -> None:
    """The gates together; they stay as they were where that makes dev no better."""
    begun_from = digest_of(documents.backbone, layers)
    part = JOINT_TRAINERS["gates"](tm, documents, data)
    standing = _train(part, folder, config, resume, begun_from)
    if standing.best >= standing.at_start["criterion"]:
        log.warning(
            "gates: left as each memory had trained its own; tuned together they make dev no better"
        )


def _tm_kind(config: MemoryConfig, initial: TranslationMemory | None) -> TMKind:
    if initial is not None:
        return replace(initial.kind, copy=config.copy, fusion=config.fusion)
    return TMKind(**{name: getattr(config, name) for name in TMKind.__dataclass_fields__})


def _take_up(layer: nn.Module, initial: nn.Module) -> None:
    """The parameters of `initial`, as far as `layer` has them, too."""
    state = initial.state_dict()
    layer.load_state_dict({name: state.get(name, new) for name, new in layer.state_dict().items()})


def _digest(backbone: Backbone, initial: nn.Module | None) -> str:
    """Of what a part began from; of one that began from nothing, of the base alone."""
    return digest_of(backbone) if initial is None else digest_of(backbone, initial)


def _as_begun(kind: TMKind, folder: Path) -> TMKind:
    """With the gates that the run in `folder`, if there is one, has trained, besides those asked
    for.

    A run end to end is gone on with as it began alone: its base has learned with all its parts."""
    path = folder / "memory-tm-last.safetensors"
    names = (
        {name.partition(".")[0] for name in checkpoint.read_names(path)} if path.exists() else set()
    )
    return replace(kind, copy=kind.copy or "copy" in names, fusion=kind.fusion or "fusion" in names)


def _dropped(tm: TranslationMemory, smaller: TranslationMemory) -> TranslationMemory:
    """`smaller` with the parameters of `tm`; `tm` itself where it is of that kind."""
    if tm.kind == smaller.kind:
        return tm
    state = tm.state_dict()
    smaller.load_state_dict({name: state[name] for name in smaller.state_dict()})
    return smaller


def _cache_kind(config: MemoryConfig, initial: SessionCache | None) -> CacheKind:
    if initial is not None:
        return initial.kind
    return CacheKind(
        config.cache_fusion,
        config.words,
        config.cache_matching,
        config.cache_combining,
        config.cache_gate,
        config.cache_follows,
        config.cache_signs,
        config.cache_rank,
        config.cache_size,
        config.cache_overwrite,
        config.cache_empty,
    )


def _train(
    part: Part, folder: Path, config: MemoryConfig, resume: bool, begun_from: str
) -> Standing:
    epochs = {"tm": config.tm_epochs, "cache": config.cache_epochs, "gates": 1}[part.name]
    rate = config.learning_rate if part.name == "tm" else config.cache_learning_rate
    trainer = PartTrainer(
        part, folder, epochs, rate, config.validate_every, config.checkpoint_every, begun_from
    )
    standing = trainer.run_from(resume, "trained memory layers")
    figures = (
        f"{name} {standing.at_start.get(name, value):.4f} -> {value:.4f}"
        for name, value in standing.at_best.items()
    )
    log.info("%s: dev %s", part.name, ", ".join(figures))
    return standing


def _reached(standing: Standing, config: MemoryConfig, initial: MemoryLayers) -> dict[str, Reached]:
    losses, first = standing.at_best, standing.at_start
    parts = {*initial.modes, *(["cache"] if initial.cache is not None else [])}
    return {
        figure: Reached(losses["plain"], losses[figure], first[figure] if name in parts else None)
        for name in ("copy", "fusion", "cache")
        for figure in (name, name + IRRELEVANT)
        if getattr(config, name) and figure in losses
    }


def _report_attention(tm: TranslationMemory) -> None:
    """With M and lambda free, eta is redundant: only the quotients say something."""
    with torch.no_grad():
        eta = tm.log_eta.exp()
        preferences = tm.preferences if tm.preferences is not None else (None, None, None)
        names = "mean M", "lambda", "mu", "nu", "kappa", "rho"
        weights = zip(names, (tm.M, tm.coverage.weight, *preferences, tm.pointer), strict=True)
        ratios = [
            f"{name} / eta {float(x.mean() / eta):.3f}" for name, x in weights if x is not None
        ]
        log.info("tm: %s", ", ".join(ratios))
