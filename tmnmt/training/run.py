"""`tmnmt train`: configuration -> data -> vocabulary -> base model -> reference network -> memory
layers -> model folder."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from tmnmt.durable import make_folder, write
from tmnmt.engine.loading import device_named
from tmnmt.errors import DataError, UsageError
from tmnmt.index.embedded.lock import writing
from tmnmt.models.base import Backbone, Injectable
from tmnmt.models.folder import (
    Model,
    load_model,
    network_file,
    network_files,
    parameters,
    save_model,
)
from tmnmt.models.injected import Injected
from tmnmt.models.kinds import make
from tmnmt.training.config import TrainConfig
from tmnmt.training.data import Corpora, Pairs, encode_pairs, load_corpora
from tmnmt.training.low_score import low_score
from tmnmt.training.memory import train_layers
from tmnmt.training.precision import precision_on
from tmnmt.training.retrieve import digest
from tmnmt.training.trainer import Trainer, greedy
from tmnmt.training.trainers import NETWORK_TRAINERS
from tmnmt.vocab import EOS, Vocabulary

log = logging.getLogger(__name__)

FEW_PAIRS = 50_000  # of which no base of use comes
SAMPLES, SHORT = 3, 40  # segments that are shown in the end, of so many subwords at most
RECORD = "run.json"  # what the run is made of, beside its checkpoints


def train(config: TrainConfig, resume: bool = False, device: str | None = None) -> Path:
    """Trains what the configuration says; returns the model's folder. Under torchrun every process
    calls this. device: as of `device_named`; of several processes each takes a GPU of its own.
    Raises UsageError for a device that is not there."""
    folder, place = Path(config.folder), place_of(device)
    has_checkpoint = (folder / "last.safetensors").exists()
    if has_checkpoint and not resume:
        raise UsageError(
            f"{folder}: holds a run already; go on with --resume, or name another folder"
        )
    if "RANK" in os.environ and not dist.is_initialized():
        dist.init_process_group("nccl" if place.startswith("cuda") else "gloo")
    make_folder(folder)
    first = not dist.is_initialized() or dist.get_rank() == 0
    with writing(folder, 0) if first else nullcontext():
        return _train(config, folder, has_checkpoint, resume, place)


def place_of(device: str | None) -> str:
    """The device of this process, a GPU by its number."""
    device_name = device_named(device)
    if device_name.startswith("cuda:") and int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise UsageError(
            f"device {device_name}: each process takes a GPU of its own; name cuda alone"
        )
    return f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if device_name == "cuda" else device_name


def _train(
    config: TrainConfig, folder: Path, has_checkpoint: bool, resume: bool, device: str
) -> Path:
    log.info("reading %s", ", ".join(path for c in config.data.corpus for path in c.files))
    corpora = load_corpora(config.data)
    if not corpora.train:
        raise DataError("nothing to train on: no segment is left by dev, test and `where`")
    if not corpora.dev:
        raise DataError(
            "nothing to validate on: no document is in a corpus's `dev` and not in its `test`"
        )
    if not config.start_from:
        _warn_of_few(sum(map(len, corpora.train)))
    made_of = record(config, corpora)
    if has_checkpoint:
        _expect_same(made_of, folder / RECORD)
        vocab = Vocabulary.load(folder / "spm.model")
    else:
        vocab = _vocabulary(config, corpora)
        _begin(folder, vocab, made_of)
    trainer = _trainer(config, corpora, vocab, folder, device)
    if has_checkpoint:
        trainer.restore()
        log.info("going on at update %d", trainer.progress.update)
    elif config.start_from:
        trainer.model.load_state_dict(_start(config).backbone.state_dict())

    def save_best() -> None:
        _remove_layers_of_another(folder, trainer.model)
        save_model(folder, trainer.model, vocab, model_config(config), half=True)

    trainer.on_best = save_best
    progress = trainer.run()
    log.info(
        "%s; best dev loss %.4f, BLEU %.2f", progress.stopped, progress.best, progress.best_bleu
    )
    if trainer.rank:
        return folder
    trainer.take_best()
    _save(folder, trainer, trainer.model, vocab, config)
    backbone = _with_network(trainer.model, corpora, vocab, folder, config, resume)
    if backbone is not trainer.model:
        _save(folder, trainer, backbone, vocab, config)
    if config.memory is not None:
        languages = config.data.src_lang, config.data.tgt_lang
        layers, _ = train_layers(
            backbone,
            vocab,
            corpora.train,
            corpora.dev,
            folder,
            config.memory,
            resume,
            languages,
        )
        if config.memory.end_to_end:
            _save(folder, trainer, backbone, vocab, config)
        layers.save(folder / "memory.safetensors")
    _show_samples(backbone, vocab, corpora)
    return folder


def _warn_of_few(pairs: int) -> None:
    """Warns where no base of use comes of so many pairs."""
    if pairs < FEW_PAIRS:
        log.warning(
            "%s pairs make no base that is of use; those that ship learned from 400,000. "
            "`tmnmt get-model` brings one, and `tmnmt start` tries it with these pairs as its "
            "memory",
            f"{pairs:,}",
        )


def _show_samples(backbone: Backbone, vocab: Vocabulary, corpora: Corpora) -> None:
    """Says what the model makes of some dev segments, evenly spaced, without memory."""
    segments = [s for d in corpora.dev for s in d if len(vocab.encode_source(s.src)) <= SHORT]
    device = next(backbone.parameters()).device
    for number in range(min(SAMPLES, len(segments))):
        segment = segments[(2 * number + 1) * len(segments) // (2 * SAMPLES)]
        ids = torch.tensor([[*vocab.encode_source(segment.src), EOS]], device=device)
        with torch.no_grad():
            (words,) = greedy(backbone, ids, torch.tensor([ids.shape[1]]))
        texts = segment.src, vocab.decode(words), segment.tgt
        log.info("source:     %s\n  model:      %s\n  reference:  %s", *texts)


def _with_network(
    model: Backbone,
    corpora: Corpora,
    vocab: Vocabulary,
    folder: Path,
    config: TrainConfig,
    resume: bool,
) -> Backbone:
    """The base with its reference network, where one is asked for; else the base itself."""
    if config.reference is None or not isinstance(model, Injectable):
        return model
    data = corpora.train, corpora.dev, folder, config.reference
    outcome = NETWORK_TRAINERS["reference"].train(model, vocab, *data, resume)
    figures = outcome.loss_before, outcome.loss_after
    log.info("reference: dev %.4f without, %.4f with, in nats a subword", *figures)
    return outcome.backbone


def _save(
    folder: Path, trainer: Trainer, backbone: Backbone, vocab: Vocabulary, config: TrainConfig
) -> None:
    """The base, which may have a reference network, into the model folder; memory parameters of
    another base go first, so that the two never disagree. Weights of the base are rounded to fp16,
    so that what follows learns with what is saved."""
    model = trainer.model.eval()
    model.load_state_dict({name: value.half() for name, value in model.state_dict().items()})
    _remove_layers_of_another(folder, backbone)
    low = low_score(backbone, trainer.dev.src, next(model.parameters()).device)
    save_model(folder, backbone, vocab, model_config(config) | {"low_score": low}, half=True)


def _remove_layers_of_another(folder: Path, backbone: Backbone) -> None:
    """Memory layers that were trained on another base than `backbone` go."""
    memory = folder / "memory.safetensors"
    if memory.exists() and not _is_base(folder, backbone):
        log.info("%s: of another base; removed until its parts are trained on this one", memory)
        memory.unlink()


def _is_base(folder: Path, backbone: Backbone) -> bool:
    """Does the folder hold the very weights of the base, and of the network beside it?"""
    stored = {name for name in network_files() if (folder / name).exists()}
    if not isinstance(backbone, Injected):
        return not stored and _holds(folder / "base.safetensors", backbone)
    name = network_file(backbone.name)
    matches = stored == {name} and _holds(folder / name, backbone.network)
    return matches and _holds(folder / "base.safetensors", backbone.base)


def _holds(path: Path, module: nn.Module) -> bool:
    """Does the file hold the module's very weights?"""
    try:
        saved = load_file(path)
    except (OSError, SafetensorError):
        return False
    weights = module.state_dict()
    return saved.keys() == weights.keys() and all(
        torch.equal(saved[name].float(), weights[name].cpu()) for name in saved
    )


def _trainer(
    config: TrainConfig, corpora: Corpora, vocab: Vocabulary, folder: Path, device: str
) -> Trainer:
    """The trainer, its data encoded."""
    counts: Counter[str] = Counter()
    pairs = encode_pairs((s for d in corpora.train for s in d), vocab, config.data, counts)
    for label, count in [*corpora.counts.items(), *counts.items(), ("training pairs", len(pairs))]:
        log.info("%s: %s", label, f"{count:,}")
    log.info("training target tokens: %s", f"{sum(map(len, pairs.tgt)):,}")
    precision = precision_on(device, config.training.precision)
    torch.manual_seed(config.training.seed)
    model = make(len(vocab), dataclasses.asdict(config.model)).to(device)
    log.info("model: %s parameters on %s", f"{parameters(model):,}", device)
    dev = dev_pairs(config, corpora, vocab)
    for name, sentences in (("train", pairs), ("validate", dev)):
        if not sentences:
            raise DataError(
                f"nothing to {name} on: max_subwords or max_ratio leaves every pair out"
            )
    training = dataclasses.replace(config.training, precision=precision)
    return Trainer(model, vocab, pairs, dev, training, folder)


def model_config(config: TrainConfig) -> dict[str, Any]:
    """What config.toml of the model folder says."""
    return {
        "src_lang": config.data.src_lang,
        "tgt_lang": config.data.tgt_lang,
        "seed": config.training.seed,
        "max_subwords": config.data.max_subwords,
        "model": dataclasses.asdict(config.model),
    }


def dev_pairs(config: TrainConfig, corpora: Corpora, vocab: Vocabulary) -> Pairs:
    """Evenly spaced segments of the dev documents that fit the model."""
    segments = [s for d in corpora.dev for s in d]
    pairs = encode_pairs(segments, vocab, None, Counter())
    fit = [
        i
        for i in range(len(pairs))
        if max(len(pairs.src[i]), len(pairs.tgt[i])) <= 2 * config.data.max_subwords
    ]
    selection = fit[:: max(len(fit) // config.data.dev_segments, 1)][: config.data.dev_segments]
    return Pairs([pairs.src[i] for i in selection], [pairs.tgt[i] for i in selection])


def _vocabulary(config: TrainConfig, corpora: Corpora) -> Vocabulary:
    if config.start_from:
        return _start(config).vocab
    segments = [s for d in corpora.train for s in d]
    sample = segments[:: max(len(segments) // config.vocabulary.sample, 1)]
    return Vocabulary.train(
        (text for s in sample for text in (s.src, s.tgt)), config.vocabulary.size
    )


def _start(config: TrainConfig) -> Model:
    """The model that `start_from` names; UsageError where its sizes are others than those of
    [model]."""
    model = load_model(Path(config.start_from))
    sizes = {"kind": "rnnsearch", **model.config["model"]}
    for name, size in dataclasses.asdict(config.model).items():
        if name != "dropout" and sizes.get(name) != size:
            raise UsageError(
                f"start_from: {config.start_from}: a model of {name} = {sizes.get(name)}; [model] "
                f"has {size}"
            )
    return model


def record(config: TrainConfig, corpora: Corpora) -> dict[str, Any]:
    """What a run is made of and may not change while it goes on; files may move, and how long it
    trains may change."""
    data, training = config.data, config.training
    made_of: dict[str, Any] = {
        "data: training pairs": digest(s for d in corpora.train for s in d),
        "data: dev pairs": digest(s for d in corpora.dev for s in d),
        "data: languages": [data.src_lang, data.tgt_lang],
        "training: seed": training.seed,
        "training: batch_tokens": training.batch_tokens,
        "training: accumulate": training.accumulate,
        "training: optimiser": training.optimiser,
        "training: growth": training.growth,
        "training: grown": training.grown,
    }
    made_of |= {
        f"data: {name}": getattr(data, name)
        for name in ("max_subwords", "max_ratio", "dev_segments")
    }
    made_of |= {
        f"vocabulary: {key}": value for key, value in dataclasses.asdict(config.vocabulary).items()
    }
    return made_of | {
        f"model: {key}": value for key, value in dataclasses.asdict(config.model).items()
    }


def _expect_same(made_of: dict[str, Any], path: Path) -> None:
    """UsageError where the run was made of something else. Runs of older versions keep no record:
    they go on."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError as error:
        raise DataError(f"{path}: damaged: {error}") from error
    for key, value in made_of.items():
        if saved.get(key, value) != value:
            raise UsageError(
                f"{path}: the run was made with {key} = {saved[key]}, now {value}; name another "
                "folder"
            )


def _begin(folder: Path, vocab: Vocabulary, made_of: dict[str, Any]) -> None:
    """A run begins: what one without a checkpoint left in the folder goes. Of several processes the
    first writes."""
    if dist.is_initialized() and dist.get_rank():
        return
    (folder / "train.jsonl").unlink(missing_ok=True)
    for name, content in (
        ("spm.model", vocab.model),
        (RECORD, json.dumps(made_of, indent=1).encode()),
    ):
        write(folder / name, content, alone=True)
