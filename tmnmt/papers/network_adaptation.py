"""A network beside a finished base, put into a model folder: `tmnmt adapt-reference` and
`tmnmt adapt-context`."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from tmnmt.durable import rename, sync_tree
from tmnmt.errors import DataError, ModelError, UsageError
from tmnmt.models.base import Injectable
from tmnmt.models.folder import (
    NETWORK_SIZE,
    SHORTLIST_FILE,
    UNREADABLE,
    Model,
    most_bytes,
    read_regular,
    reason_of,
    save_model,
    stamp,
)
from tmnmt.models.injected import NETWORKS, Injected, Network, with_stored_network
from tmnmt.papers.context_network import InDocument
from tmnmt.papers.context_training import context_reader, train_context
from tmnmt.papers.network_config import Config, ContextConfig, ReferenceConfig
from tmnmt.papers.reading import Reader, Reading, reading_of
from tmnmt.papers.reference_network import Referring
from tmnmt.papers.reference_training import reference_reader, train_reference
from tmnmt.segments import Segment
from tmnmt.training.adapt import MEMORY_FILE, split, work_beside
from tmnmt.training.log import LOG_FILE
from tmnmt.training.memory_data import Documents
from tmnmt.training.trainers import NetworkOutcome


def adapt_injected(
    model: Model,
    segments: Iterable[Segment],
    output: Path,
    config: Config,
    dev_share: float,
    resume: bool = False,
) -> tuple[float, float]:
    """Trains a network on `segments` and writes the model folder `output`, whole or not at all.

    Returns dev's loss without and with it, in nats a subword. The work goes on in OUTPUT.partial,
    where an interrupted run is taken up with `resume`. Raises UsageError where `output` or, without
    `resume`, OUTPUT.partial is there, or the base takes no network or has one; DataError where
    there is nothing to learn from, or dev is no better."""
    work = work_beside(output, resume)
    backbone, kind = model.backbone, network_kind(config)
    if isinstance(backbone, Injected):
        has = "reference" if isinstance(backbone, Referring) else "context"
        raise UsageError(f"{model.folder}: this model has a {has} network already")
    if not isinstance(backbone, Injectable):
        raise UsageError(
            f"{model.folder}: this base takes no {kind} network; a recurrent one (rnnsearch, "
            "deeplau) does"
        )
    outcome = train_network(backbone, model, *split(segments, dev_share), work, config, resume)
    if outcome.loss_after >= outcome.loss_before:
        raise DataError(
            f"nothing is saved, since dev is no better: {outcome.loss_after:.4f}, without "
            f"{outcome.loss_before:.4f} nats a subword; more --sentences or --epochs may help, "
            f"with another -o (or {work} deleted)"
        )
    _put_out(model, outcome, config, work, output)
    return outcome.loss_before, outcome.loss_after


def train_network(
    backbone: Injectable,
    model: Model,
    train: Documents,
    dev: Documents,
    folder: Path,
    config: Config,
    resume: bool,
    start: Network | None = None,
) -> NetworkOutcome:
    """Trains the network that `config` is of, for the base of `model`; from `start`, where one is
    given."""
    parts = backbone, model.vocab, train, dev, folder
    if isinstance(config, ContextConfig):
        return train_context(*parts, config, resume, start)
    return train_reference(*parts, config, resume, start)


def stored_network(path: Path, model: Model, config: Config) -> Network:
    """A network that learns on, from the file that a model folder has of it. Raises ModelError
    where it is none that `config` is of, or has learned with another base than that of `model`."""
    kind = network_kind(config)
    if not isinstance(model.backbone, Injectable):
        raise ModelError(f"{model.folder}: this base takes no {kind} network")
    limit = NETWORK_SIZE * most_bytes(model.backbone)
    content = read_regular(path, limit, f"no {kind} network of this base is")
    binding = NETWORKS[kind]
    try:
        network = with_stored_network(content, binding, model.backbone, model.base_hash).network
    except UNREADABLE as error:
        raise ModelError(
            f"{path}: no {kind} network of {model.folder}: {reason_of(error)}"
        ) from error
    if network.kind != config.kind():
        raise ModelError(f"{path}: it is {network.kind}, and what learns is {config.kind()}")
    return network


def reading_of_model(model: Model, documents: Documents, most: int) -> Reading:
    """What the network of a model reads along the references of about `most` segments. Raises
    UsageError where the model has none, DataError where fewer than two segments are short
    enough."""
    backbone = model.backbone
    with TemporaryDirectory() as folder:
        if isinstance(backbone, Referring):
            reference = ReferenceConfig(decoder=False, dev_segments=most)
            reader: Reader = reference_reader(backbone, model.vocab, documents, reference)
        elif isinstance(backbone, InDocument):
            context = ContextConfig(decoder=False, dev_segments=most)
            path = Path(folder) / "said.jsonl.gz"
            reader = context_reader(backbone, model.vocab, documents, context, path)
        else:
            raise UsageError(f"{model.folder}: this model has no network beside its base")
        return reading_of(reader)


def network_kind(config: Config) -> str:
    """What kind of network it is of, in a word."""
    return "context" if isinstance(config, ContextConfig) else "reference"


def _put_out(
    model: Model, outcome: NetworkOutcome, config: Config, work: Path, output: Path
) -> None:
    """The model folder, from what lies in `work`, which is there until the whole folder is on disk.
    A base that is of fp16 stays so: its decoder, where it learned, is rounded."""
    base = outcome.backbone.base
    fixed = [p for name, p in base.named_parameters() if name.startswith(base.encoder_reads)]
    half = all(torch.equal(p, p.half().float()) for p in fixed)
    folder = work / "made"
    shutil.rmtree(folder, ignore_errors=True)  # what a killed run left
    folder.mkdir()
    save_model(folder, outcome.backbone, model.vocab, model.config, half)
    names = [SHORTLIST_FILE] if config.tunes_decoder else [SHORTLIST_FILE, MEMORY_FILE]
    for path in (model.folder / name for name in names):
        if path.exists():
            shutil.copyfile(path, folder / path.name)
    stamp(folder)
    shutil.copyfile(work / LOG_FILE, folder / LOG_FILE)
    sync_tree(folder)
    rename(folder, output)
    shutil.rmtree(work)
