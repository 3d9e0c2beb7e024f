"""`tmnmt adapt-knn`: what the neighbours of a word are worth, learned for a finished base and
memories with their keys.

The base does not change (Zheng et al. 2021). The k nearest keys of every subword of the references
are looked up once, as if neither the document nor any pair with a source of it were in the
memories; then only the network is trained."""

from __future__ import annotations

import logging
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from random import Random
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from tmnmt.durable import make_folder, rename, replacing
from tmnmt.errors import DataError
from tmnmt.index.base import Index
from tmnmt.keys.compute import longest
from tmnmt.layers.mixing import mix_gold
from tmnmt.models.base import Backbone, shift
from tmnmt.models.folder import Model
from tmnmt.papers.knn import AdaptiveKNN, certainty, nearest, unsure
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.text import normalise
from tmnmt.trained_layers.datastore import Datastore, keys_state
from tmnmt.training.adapt import split, work_beside
from tmnmt.training.data import Document
from tmnmt.training.memory_data import fitting
from tmnmt.training.parts import Part, PartTrainer, Unit
from tmnmt.training.retrieve import digest
from tmnmt.training.teacher_forcing import ROWS_READ_OUT, force_references
from tmnmt.training.tm import evenly
from tmnmt.vocab import BOS

SUBWORDS = 256  # of an update
LEARNING_RATE = 1e-3
VALIDATE_EVERY = CHECKPOINT_EVERY = 100  # updates
TOGETHER = 16  # segments forced at once
KEPT_AT_ONCE = 50  # segments looked up between two files: what an interruption can lose

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KNNConfig:
    """`k` is a power of two, `temperature` that of the distances."""

    k: int = 16
    temperature: float = 5.0
    sentences: int = 2000  # that are learned from at most; of those held out a quarter as many
    epochs: int = 5
    dev_share: float = 0.2  # of the documents
    seed: int = 1


class Observations(NamedTuple):
    """What model and neighbours say of n subwords of references."""

    log_p: Tensor  # (n,) the model's
    same: Tensor  # (n, k) bool: whether the neighbour holds the reference's subword
    distances: Tensor  # (n, k)
    ids: Tensor  # (n, k)
    certain: Tensor  # (n, 2), see `certainty`


def adapt_knn(
    model: Model,
    indexes: Sequence[Index],
    segments: Sequence[Segment],
    output: Path,
    config: KNNConfig,
    resume: bool = False,
    unlike: Sequence[Index] = (),
) -> tuple[float, float]:
    """Trains on `segments`, documents in order, and writes the file `output`, whole or not at all.
    Where there are memories `unlike` the segments, half of what is learned is that those are worth
    nothing: all segments are looked up in them, too.

    Returns what dev says of `indexes`, in nats a subword, without and with it. The work goes on in
    the folder OUTPUT.partial, where an interrupted run is taken up with `resume`. Raises UsageError
    where `output` or, without `resume`, OUTPUT.partial is there; MemoryIndexError where a memory
    has no keys; DataError where there is nothing to learn from, or dev is no better with it."""
    work = work_beside(output, resume, "file")
    memories = {"": indexes, "-unlike": unlike} if unlike else {"": indexes}
    datastores = {
        name: Datastore.open(group, model.states_hash, torch.get_num_threads())
        for name, group in memories.items()
    }
    parts = [
        fitting(part, model.vocab, longest(model)) for part in split(segments, config.dev_share)
    ]
    if not all(parts):
        raise DataError("too few segments: nothing is left to learn from, or nothing to hold out")
    make_folder(work)
    bound = digest_of(model, [*indexes, *unlike], segments, config)
    identity = f"{bound} {config.temperature} {config.epochs} {config.seed}"
    limits = config.sentences, -(-config.sentences // 4)
    train, dev = (
        [
            NeighbourLookup(datastore, model, config.k, work / f"{name}{suffix}", bound)(
                documents, count
            )
            for suffix, datastore in datastores.items()
        ]
        for name, documents, count in zip(("train", "dev"), parts, limits, strict=True)
    )
    torch.manual_seed(config.seed)
    knn = AdaptiveKNN(config.k, config.temperature)
    part = KNNPart(knn, concatenate(train), dev, config.seed)
    plain, reached = _train(part, work, config, identity)
    if reached >= plain:
        raise DataError(
            f"nothing is saved, since dev is no better: {reached:.4f}, plain {plain:.4f} nats "
            "a subword; what was searched is kept, so --resume with other --epochs or another "
            "--knn-temperature begins to learn at once"
        )
    knn.save(work / output.name, model.hash)
    rename(work / output.name, output)
    shutil.rmtree(work)
    return plain, reached


def digest_of(
    model: Model, indexes: Sequence[Index], segments: Sequence[Segment], config: KNNConfig
) -> str:
    """What the neighbours that are looked up depend on."""
    keys = [keys_state(index, model.states_hash) for index in indexes]
    return " ".join(
        map(
            str, (model.hash, *keys, digest(segments), config.k, config.sentences, config.dev_share)
        )
    )


def _train(part: KNNPart, work: Path, config: KNNConfig, begun_from: str) -> tuple[float, float]:
    """Trains to the end; dev's loss before, which is the plain model's, and after."""
    trainer = PartTrainer(
        part, work, config.epochs, LEARNING_RATE, VALIDATE_EVERY, CHECKPOINT_EVERY, begun_from
    )
    trainer.run_from(True, "neighbours that were learned")  # `adapt_knn` has asked for --resume
    shares = zip((0, *part.module.counts), part.shares(), strict=True)
    log.info(
        "neighbours that are read, on average: %s",
        ", ".join(f"{r}: {100 * p:.1f} %" for r, p in shares),
    )
    return trainer.standing.at_best["plain"], trainer.standing.at_best["knn"]


class KNNPart(Part):
    """Batches of subwords, whatever sentence they are of; the same in a run that was resumed."""

    name = "knn"
    module: AdaptiveKNN

    def __init__(
        self, module: AdaptiveKNN, train: Observations, dev: Sequence[Observations], seed: int
    ) -> None:
        """`dev`: of the memories; behind it, where there are any, of those that are unlike."""
        self.module, self.train, self.seed = module, train, seed
        self.dev, self.unlike = dev[0], dev[1:]

    def units(self, epoch: int) -> Sequence[Unit]:
        random, order = Random(f"{self.seed} {epoch}"), list(range(len(self.train.log_p)))
        random.shuffle(order)  # a unit begins with the seed of its dropout
        return [
            [random.getrandbits(32), *order[start : start + SUBWORDS]]
            for start in range(0, len(order), SUBWORDS)
        ]

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        seed, *numbers = unit
        torch.manual_seed(seed)
        yield (
            -mixed(self.module.train(), Observations(*(x[numbers] for x in self.train))).sum(),
            len(numbers),
        )

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        losses = [-float(mixed(self.module.eval(), dev).mean()) for dev in (self.dev, *self.unlike)]
        figures = {"plain": -float(self.dev.log_p.mean()), "knn": losses[0]}
        if self.unlike:
            figures["unlike"] = losses[1]
        return figures | {"criterion": sum(losses) / len(losses)}

    @torch.no_grad()
    def shares(self) -> list[float]:
        """The mean p(r) over the dev subwords, for r = 0, 1, 2, 4, ..., k."""
        means: list[float] = (
            self.module.eval()
            .choose(self.dev.distances, self.dev.ids, self.dev.certain)
            .softmax(-1)
            .mean(0)
            .tolist()
        )
        return means


def concatenate(parts: Sequence[Observations]) -> Observations:
    """All of them, one behind the other."""
    return Observations(*map(torch.cat, zip(*parts, strict=True)))


def mixed(knn: AdaptiveKNN, looked_up: Observations) -> Tensor:
    """log p (n,) of the references' subwords."""
    weights, logit = knn(looked_up.distances, looked_up.ids, looked_up.certain)
    return mix_gold(looked_up.log_p, (weights * looked_up.same).sum(-1), logit)


@dataclass(frozen=True)
class NeighbourLookup:
    """Looks up what neighbours the subwords of documents have; what is done is kept in files
    NAME-0, NAME-1, ..."""

    datastore: Datastore
    model: Model
    k: int
    name: Path
    bound: str  # what a file that is read again must say

    def __call__(self, documents: Sequence[Document], limit: int) -> Observations:
        """Of at most `limit` segments, evenly spaced over all documents."""
        candidates = [
            (number, segment) for number, document in enumerate(documents) for segment in document
        ]
        selection = [candidates[i] for i in evenly(len(candidates), limit)]
        excluded_ids, parts = own_pairs(self.datastore, documents), []
        with Progress(f"searching for {self.name.name}", "segments", len(selection)) as progress:
            for start in range(0, len(selection), KEPT_AT_ONCE):
                block = selection[start : start + KEPT_AT_ONCE]
                path = self.name.with_name(f"{self.name.name}-{start // KEPT_AT_ONCE}.safetensors")
                parts.append(self._read(path) or self._look_up(path, block, excluded_ids))
                progress.advance(len(block))
        return concatenate(parts)

    def _read(self, path: Path) -> Observations | None:
        """What is kept there; None where there is nothing, or something else."""
        try:
            with safe_open(path, "pt") as file:
                if (file.metadata() or {}).get("bound") == self.bound:
                    return Observations(*(file.get_tensor(name) for name in Observations._fields))
        except (OSError, SafetensorError):
            return None
        return None

    def _look_up(
        self, path: Path, selection: Sequence[tuple[int, Segment]], excluded_ids: Sequence[set[int]]
    ) -> Observations:
        parts = []
        for number, group in groupby(selection, key=lambda pair: pair[0]):
            self.datastore.forget(excluded_ids[number])
            segments = [segment for _, segment in group]
            parts += [
                self._observed(segments[start : start + TOGETHER])
                for start in range(0, len(segments), TOGETHER)
            ]
        looked_up = concatenate(parts)
        with replacing(path, alone=True) as new:
            save_file(looked_up._asdict(), new, {"bound": self.bound})
        return looked_up

    @torch.no_grad()
    def _observed(self, segments: Sequence[Segment]) -> Observations:
        backbone = self.model.backbone
        batch = force_references(
            backbone, self.model.vocab, segments, next(backbone.parameters()).device
        )
        real = batch.real
        hidden, context, gold = batch.hiddens[real], batch.contexts[real], batch.tgt[real]
        log_p, certain = score_gold(backbone, shift(batch.tgt, BOS)[real], hidden, context, gold)
        neighbours = nearest(self.datastore, self.k, hidden, context, unsure(certain))
        matches = (neighbours.ids == gold[:, None]) & (neighbours.positions >= 0)
        return Observations(
            *(x.cpu() for x in (log_p, matches, neighbours.distances, neighbours.ids, certain))
        )


def score_gold(
    backbone: Backbone, prev: Tensor, hidden: Tensor, context: Tensor, gold: Tensor
) -> tuple[Tensor, Tensor]:
    """What the model says at n positions: log p of the words `gold` (n,), and its certainty
    (n, 2)."""
    parts = []
    for start in range(0, len(gold), ROWS_READ_OUT):
        rows = slice(start, start + ROWS_READ_OUT)
        logits = backbone.readout(prev[rows], hidden[rows], context[rows])
        log_probs = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
        parts.append((log_probs.gather(1, gold[rows, None])[:, 0], certainty(log_probs)))
    log_p, certain = zip(*parts, strict=True)
    return torch.cat(log_p), torch.cat(certain)


def own_pairs(datastore: Datastore, documents: Sequence[Document]) -> list[set[int]]:
    """For every document the numbers of the pairs in the memories that lie in it, or have a source
    of it."""
    of_document, of_source = defaultdict[str, set[int]](set), defaultdict[str, set[int]](set)
    names = {segment.document for document in documents for segment in document} - {""}
    sources = {normalise(segment.src) for document in documents for segment in document}
    for segment in (
        segment for search in datastore.searches for segment in search.index.segments()
    ):
        source = normalise(segment.src)
        if segment.document in names or source in sources:
            numbers = datastore.pair_of(segment.src, segment.tgt)
            of_source[source].update(numbers)
            if segment.document:
                of_document[segment.document].update(numbers)
    return [
        set[int]().union(*(of_document[s.document] | of_source[normalise(s.src)] for s in document))
        for document in documents
    ]
