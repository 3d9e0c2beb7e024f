"""`tmnmt adapt`: memory parameters for a finished base, learned from a translation memory alone.

The base does not change. A part of the memory's documents is held out, by the sha256 of their ids; what makes these
worse than the plain model is refused.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from tmnmt.counted import counted
from tmnmt.errors import DataError, UsageError
from tmnmt.models.folder import Model
from tmnmt.segments import Segment
from tmnmt.text import normalise
from tmnmt.training.data import Document, split_of
from tmnmt.training.memory import train_memories
from tmnmt.training.memory_config import MemoryConfig

log = logging.getLogger(__name__)

FILES = ("config.toml", "base.safetensors", "spm.model", "memory.safetensors", "train.jsonl")


def adapt(
    model: Model, segments: Iterable[Segment], output: Path, config: MemoryConfig, dev_share: float,
    resume: bool = False,
) -> dict[str, tuple[float, float]]:  # fmt: skip
    """Trains what `config` asks for on `segments` and writes the model folder `output`, whole or not at all.

    Returns what dev says of every part that was trained: nats a subword without it and with it. The work goes on in
    OUTPUT.partial, where an interrupted run is taken up with `resume`. Raises UsageError where `output` or, without
    `resume`, OUTPUT.partial is there; DataError where there is nothing to learn from, or a part makes dev worse."""
    work = output.with_name(output.name + ".partial")
    if output.exists():
        raise UsageError(f"{output}: exists; name another folder")
    if work.exists() and not resume:
        raise UsageError(f"{work}: is there from an interrupted run; go on with --resume, or delete it")
    train, dev = split(segments, dev_share)
    shares = [counted(sum(map(len, some)), "segment") for some in (train, dev)]
    log.info("%s to learn from, %s of %s held out", shares[0], shares[1], counted(len(dev), "document"))
    if not train or not dev:
        raise DataError("the memory is too small: nothing is left to learn from, or nothing to hold out")
    work.mkdir(parents=True, exist_ok=True)
    languages = model.config["src_lang"], model.config["tgt_lang"]
    memories, reached = train_memories(model.backbone, model.vocab, train, dev, work, config, resume, languages)
    told = (
        f"{name} {with_it:.4f}, plain {plain:.4f}" for name, (plain, with_it) in reached.items() if with_it >= plain
    )
    if worse := "; ".join(told):
        raise DataError(
            f"nothing is saved, since dev is no better, in nats a subword: {worse}; more --sentences or "
            f"--epochs may help in a new run, or --resume without that part (--no-copy, --no-fusion, --no-cache)"
        )
    memories.save(work / "memory.safetensors")
    for name in FILES[:3]:
        shutil.copyfile(model.folder / name, work / name)
    for path in work.iterdir():
        if path.name not in FILES:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    work.rename(output)
    return reached


def split(segments: Iterable[Segment], dev_share: float) -> tuple[list[Document], list[Document]]:
    """Documents to learn from and held-out ones; a source that stands in both is left out of the first.

    A segment without a document is one by itself. The hash is salted: a memory may be a sample by the plain one."""
    train: list[Document] = []
    dev: list[Document] = []
    for name, document in groupby(segments, key=lambda s: s.document or s.src):
        (dev if split_of(f"adapt {name}", dev_share, 0) == "dev" else train).append(list(document))
    kept_out = {normalise(s.src) for document in dev for s in document}
    left = ([s for s in document if normalise(s.src) not in kept_out] for document in train)
    return [document for document in left if document], dev
