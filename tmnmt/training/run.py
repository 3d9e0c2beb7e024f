"""`tmnmt train`: configuration -> data -> vocabulary -> base model -> memories -> model folder."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections import Counter
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tmnmt.errors import DataError, UsageError
from tmnmt.models.folder import load_model, parameters, save_model
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.training.config import TrainConfig
from tmnmt.training.data import Corpora, Pairs, encode_pairs, load_corpora
from tmnmt.training.memory import train_memories
from tmnmt.training.trainer import Trainer
from tmnmt.vocab import Vocabulary

log = logging.getLogger(__name__)


def train(config: TrainConfig, resume: bool = False) -> Path:
    """Trains what the configuration says; returns the model's folder. Under torchrun every process calls this."""
    folder = Path(config.folder)
    if (folder / "last.safetensors").exists() and not resume:
        raise UsageError(f"{folder}: holds a run already; go on with --resume, or name another folder")
    if "RANK" in os.environ and not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    folder.mkdir(parents=True, exist_ok=True)
    corpora = load_corpora(config.data)
    if not corpora.train:
        raise DataError("nothing to train on: no segment is left by dev, test and `where`")
    if not corpora.dev:
        raise DataError("nothing to validate on: no document is in a corpus's `dev` and not in its `test`")
    vocab = _vocabulary(config, corpora, folder)
    trainer = _trainer(config, corpora, vocab, folder)
    progress = trainer.run()
    log.info("%s; best dev loss %.4f, BLEU %.2f", progress.stopped, progress.best, progress.best_bleu)
    if trainer.rank:
        return folder
    trainer.restore("best")
    save_model(folder, trainer.model, vocab, model_config(config))
    if config.memory is not None:
        languages = config.data.src_lang, config.data.tgt_lang
        train_memories(trainer.model, vocab, corpora.train, corpora.dev, folder, config.memory, resume, languages)
    return folder


def _trainer(config: TrainConfig, corpora: Corpora, vocab: Vocabulary, folder: Path) -> Trainer:
    """The trainer, its data encoded and its checkpoint, if there is one, taken up."""
    counts: Counter[str] = Counter()
    pairs = encode_pairs((s for d in corpora.train for s in d), vocab, config.data, counts)
    for what, count in [*corpora.counts.items(), *counts.items(), ("training pairs", len(pairs))]:
        log.info("%s: %s", what, f"{count:,}")
    log.info("training target tokens: %s", f"{sum(map(len, pairs.tgt)):,}")
    device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(config.training.seed)
    model = RNNsearch(len(vocab), **dataclasses.asdict(config.model)).to(device)
    log.info("model: %s parameters on %s", f"{parameters(model):,}", device)
    if config.start_from:
        model.load_state_dict(load_model(Path(config.start_from), device).backbone.state_dict())
    dev = dev_pairs(config, corpora, vocab)
    for name, some in (("train", pairs), ("validate", dev)):
        if not some:
            raise DataError(f"nothing to {name} on: max_subwords or max_ratio leaves every pair out")
    trainer = Trainer(model, vocab, pairs, dev, config.training, folder)
    if (folder / "last.safetensors").exists():
        trainer.restore()
        log.info("going on at update %d", trainer.progress.update)
    return trainer


def model_config(config: TrainConfig) -> dict[str, Any]:
    """What config.toml of the model folder says."""
    return {
        "src_lang": config.data.src_lang, "tgt_lang": config.data.tgt_lang, "seed": config.training.seed,
        "max_subwords": config.data.max_subwords, "model": dataclasses.asdict(config.model),
    }  # fmt: skip


def dev_pairs(config: TrainConfig, corpora: Corpora, vocab: Vocabulary) -> Pairs:
    """Evenly spaced segments of the dev documents that fit the model."""
    segments = [s for d in corpora.dev for s in d]
    pairs = encode_pairs(segments, vocab, None, Counter())
    fit = [i for i in range(len(pairs)) if max(len(pairs.src[i]), len(pairs.tgt[i])) <= 2 * config.data.max_subwords]
    chosen = fit[:: max(len(fit) // config.data.dev_segments, 1)][: config.data.dev_segments]
    return Pairs([pairs.src[i] for i in chosen], [pairs.tgt[i] for i in chosen])


def _vocabulary(config: TrainConfig, corpora: Corpora, folder: Path) -> Vocabulary:
    path = folder / "spm.model"
    if path.exists():
        return Vocabulary.load(path)
    if config.start_from:
        path.write_bytes(load_model(Path(config.start_from)).vocab.model)
        return Vocabulary.load(path)
    segments = [s for d in corpora.train for s in d]
    sample = segments[:: max(len(segments) // config.vocabulary.sample, 1)]
    vocab = Vocabulary.train((text for s in sample for text in (s.src, s.tgt)), config.vocabulary.size)
    partial = path.with_suffix(".partial")
    partial.write_bytes(vocab.model)
    partial.replace(path)
    return vocab
