"""`tmnmt adapt-reference`: a reference network for a finished base, put into a model folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import torch

from tmnmt.durable import rename, sync_tree
from tmnmt.errors import DataError, UsageError
from tmnmt.models.base import Injectable
from tmnmt.models.folder import SHORTLIST_FILE, Model, save_model, stamp
from tmnmt.models.reference import Referring
from tmnmt.segments import Segment
from tmnmt.training.adapt import MEMORY_FILE, split
from tmnmt.training.log import LOG_FILE
from tmnmt.training.reference import Learned, train_reference
from tmnmt.training.reference_config import ReferenceConfig


def adapt_reference(
    model: Model,
    segments: Iterable[Segment],
    output: Path,
    config: ReferenceConfig,
    dev_share: float,
    resume: bool = False,
) -> tuple[float, float]:
    """Trains a network on `segments` and writes the model folder `output`, whole or not at all.

    Returns dev's loss without and with it, in nats a subword. The work goes on in OUTPUT.partial,
    where an interrupted run is taken up with `resume`. Raises UsageError where `output` or, without
    `resume`, OUTPUT.partial is there, or the base takes no network or has one; DataError where
    there is nothing to learn from, or dev is no better."""
    work = output.with_name(output.name + ".partial")
    if output.exists():
        raise UsageError(f"{output}: exists; name another folder")
    if work.exists() and not resume:
        raise UsageError(
            f"{work}: is there from an interrupted run; go on with --resume, or delete it"
        )
    backbone = model.backbone
    if isinstance(backbone, Referring):
        raise UsageError(f"{model.folder}: this model has a reference network already")
    if not isinstance(backbone, Injectable):
        raise UsageError(
            f"{model.folder}: this base takes no reference network; a recurrent one (rnnsearch, "
            "deeplau) does"
        )
    parts = split(segments, dev_share)
    learned = train_reference(backbone, model.vocab, *parts, work, config, resume)
    if learned.after >= learned.before:
        raise DataError(
            f"nothing is saved, since dev is no better: {learned.after:.4f}, without "
            f"{learned.before:.4f} nats a subword; more --sentences or --epochs may help, with "
            f"another -o (or {work} deleted)"
        )
    _put_out(model, learned, config, work, output)
    return learned.before, learned.after


def _put_out(
    model: Model, learned: Learned, config: ReferenceConfig, work: Path, output: Path
) -> None:
    """The model folder, from what lies in `work`, which is there until the whole folder is on disk.
    A base that is of fp16 stays so: its decoder, where it learned, is rounded."""
    base = learned.backbone.base
    fixed = [p for name, p in base.named_parameters() if name.startswith(base.encoder_reads)]
    half = all(torch.equal(p, p.half().float()) for p in fixed)
    made = work / "made"
    shutil.rmtree(made, ignore_errors=True)  # what a killed run left
    made.mkdir()
    save_model(made, learned.backbone, model.vocab, model.config, half)
    kept = [SHORTLIST_FILE] if config.tunes_decoder else [SHORTLIST_FILE, MEMORY_FILE]
    for path in (model.folder / name for name in kept):
        if path.exists():
            shutil.copyfile(path, made / path.name)
    stamp(made)
    shutil.copyfile(work / LOG_FILE, made / LOG_FILE)
    sync_tree(made)
    rename(made, output)
    shutil.rmtree(work)
