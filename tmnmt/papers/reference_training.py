"""Training of reference networks in the steps of Fu et al. 2019: a finished base, then anchors,
then the network with what the paper fixes fixed.

    anchors      localisation of mean-pooled encoder states, the base fixed     eq. 13
    monolingual  max log p over network and decoder; anchors, encoder fixed     eq. 24
    bilingual    max log p - lambda L_M over the network; the base fixed        eq. 25
                 L_M = sum_t ||e(y_t) - f_s(q_t)||^2 + lambda_M sum_j ||W_j||^2 eq. 23

One embedding serves encoder and decoder here, so it is fixed with the encoder (OURS)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from tmnmt.durable import make_folder
from tmnmt.errors import DataError
from tmnmt.keys.pair_keys import padded
from tmnmt.models.base import Injectable
from tmnmt.models.injected import Network
from tmnmt.papers.local_coding import LocalCoding, spread
from tmnmt.papers.network_config import ReferenceConfig
from tmnmt.papers.network_training import InjectedPart, expect_two, run_part, sample_of
from tmnmt.papers.reading import Change, Keep, Step, reading_of, unchanged
from tmnmt.papers.reference_network import (
    Monolingual,
    ReferenceNetwork,
    Referring,
    Regression,
    network_of,
)
from tmnmt.segments import Segment
from tmnmt.training.checkpoint import digest_of
from tmnmt.training.memory_data import Documents, fitting
from tmnmt.training.parts import Flat, Part, Standing, Unit
from tmnmt.training.teacher_forcing import ForcedBatch, gold_log_probs
from tmnmt.training.trainers import NetworkOutcome
from tmnmt.vocab import EOS, Vocabulary

log = logging.getLogger(__name__)

POOLED_AT_ONCE = 64  # sentences
HELD_OUT = 20  # one in so many mean states says how well anchors do
TRAINED_NETWORK = "a trained reference network"


def train_reference(
    backbone: Injectable,
    vocab: Vocabulary,
    documents: Documents,
    dev_documents: Documents,
    folder: Path,
    config: ReferenceConfig,
    resume: bool = False,
    start: Network | None = None,
) -> NetworkOutcome:
    """Trains a network for a finished base; checkpoints and log go to `folder`. The caller saves
    it, and with it the base, whose decoder may have learned (`config.tunes_decoder`). `start`: a
    network of the same kind that learns on, with the anchors that it has.

    Afterwards `backbone` is in evaluation mode and asks for no gradients. Raises UsageError where a
    run is there and `resume` is not given, DataError where there is nothing to learn from."""
    train, dev = (
        short_enough(part, vocab, config.max_subwords) for part in (documents, dev_documents)
    )
    if not train or not dev:
        raise DataError(
            "reference: nothing to learn from, or nothing held out, that is not too long"
        )
    make_folder(folder)
    backbone.eval().requires_grad_(False)
    torch.manual_seed(config.seed)
    network = start if isinstance(start, ReferenceNetwork) else network_of(config.kind(), backbone)
    network = network.to(next(backbone.parameters()).device)
    if isinstance(network, Monolingual) and start is None:
        find_anchors(network, backbone, vocab, train, folder, config, resume)
    part = ReferencePart(
        network,
        backbone,
        vocab,
        sample_of(train, config.sentences),
        sample_of(dev, config.dev_segments),
        config,
    )
    begun_from = f"{digest_of(backbone, network)} {json.dumps(asdict(config.kind()))}"
    rate = config.learning_rate
    standing = run_part(
        part, folder, config.epochs, rate, config, resume, begun_from, TRAINED_NETWORK
    )
    backbone.eval().requires_grad_(False)
    network.eval().requires_grad_(False)
    losses = standing.at_start["criterion"], standing.best
    return NetworkOutcome(Referring(backbone, network), *losses)


def short_enough(documents: Documents, vocab: Vocabulary, max_subwords: int) -> list[Segment]:
    """The segments of documents, without those that are too long."""
    return [segment for document in fitting(documents, vocab, max_subwords) for segment in document]


def find_anchors(
    network: Monolingual,
    backbone: Injectable,
    vocab: Vocabulary,
    segments: Sequence[Segment],
    folder: Path,
    config: ReferenceConfig,
    resume: bool = False,
) -> Standing:
    """Gives a network anchors (C, e) of the mean states of about `anchor_sentences` sources,
    without their mean, and says how well they do."""
    make_folder(folder)
    points = pooled(backbone, vocab, sample_of(segments, config.anchor_sentences))
    kind = config.kind()
    if len(points) <= kind.anchors:
        raise DataError(f"reference: {len(points)} sentences, fewer than {kind.anchors + 1}")
    part = AnchorPart(points, config)
    begun_from = f"{digest_of(backbone)} {kind.anchors} {kind.hidden} {len(points)}"
    standing = run_part(
        part,
        folder,
        config.anchor_epochs,
        config.anchor_learning_rate,
        config,
        resume,
        begun_from,
        TRAINED_NETWORK,
        Flat(config.anchor_gain, config.anchor_flat_epochs),
    )
    network.anchors.copy_(without_mean(part.module.anchors.detach()))
    return standing


def without_mean(anchors: Tensor) -> Tensor:
    """Anchors (C, k) without the mean that they have in common, sqrt(k) long on average (OURS).

    A constant that is added to all anchors is what a bias can stand for, so this changes how a
    network learns, and hardly what it can say. With their mean, anchors of real sentences are so
    alike that all weight goes to one of them before anything is learned."""
    points = anchors - anchors.mean(0)
    unit: Tensor = points.norm(dim=-1).mean() / points.shape[1] ** 0.5
    return points / unit


@torch.no_grad()
def pooled(backbone: Injectable, vocab: Vocabulary, segments: Sequence[Segment]) -> Tensor:
    """The mean over the encoder's states of every source, h^M (N, e)."""
    device = next(backbone.parameters()).device
    sources = [[*vocab.encode_source(segment.src), EOS] for segment in segments]
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    means = torch.empty(len(sources), backbone.annotation_size, device=device)
    for start in range(0, len(order), POOLED_AT_ONCE):
        batch = order[start : start + POOLED_AT_ONCE]
        lengths = torch.tensor([len(sources[i]) for i in batch], device=device)
        encoded = backbone.encode(padded([sources[i] for i in batch], device), lengths)
        means[batch] = backbone.annotations(encoded).sum(1) / lengths[:, None]
    return means


class AnchorPart(Part):
    """Anchors of points, one in `HELD_OUT` of which is held out. They begin as centres of k-means,
    and are found in units of the points' mean distance from their middle (OURS), so that `far` and
    `near` mean the same for every base."""

    name = "anchors"
    module: LocalCoding

    def __init__(self, points: Tensor, config: ReferenceConfig) -> None:
        kind, size = config.kind(), points.shape[1]
        self.config = config
        self.unit = (points - points.mean(0)).norm(dim=-1).mean()
        torch.manual_seed(config.seed)
        self.module = LocalCoding(kind.anchors, size, size, kind.hidden).to(points.device)
        held_out = torch.arange(len(points), device=points.device) % HELD_OUT == HELD_OUT - 1
        self.train, self.dev = points[~held_out], points[held_out]
        with torch.no_grad():
            self.module.anchors.copy_(spread(self.train, kind.anchors, config.seed))

    def units(self, epoch: int) -> Sequence[Unit]:
        order, size = list(range(len(self.train))), self.config.anchor_batch
        Random(f"anchors {self.config.seed} {epoch}").shuffle(order)
        return [order[start : start + size] for start in range(0, len(order), size)]

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        yield self._loss(self.train[unit]), len(unit)

    def _loss(self, points: Tensor) -> Tensor:
        """Eq. 13 in those units: distances by the unit, their squares by its square."""
        far, locality = self.config.far / self.unit, self.config.near / self.unit**2
        return self.module.localisation(points, float(far), float(locality))

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """A point's mean loss, and its mean distance from what the anchors say."""
        losses = torch.stack([self._loss(part) for part in torch.split(self.dev, 256)])
        reconstructions = torch.cat(
            [
                self.module.coding()(part, part) @ self.module.anchors
                for part in torch.split(self.dev, 256)
            ]
        )
        distance = (self.dev - reconstructions).norm(dim=-1).mean() / self.unit
        return {"distance": float(distance), "criterion": float(losses.sum()) / len(self.dev)}


class ReferencePart(InjectedPart[Segment]):
    """The network on sentences of everywhere; of a monolingual one the decoder, too."""

    name = "reference"
    network: ReferenceNetwork
    config: ReferenceConfig

    def loss(self, segments: Sequence[Segment]) -> tuple[Tensor, int]:
        steps: list[Step] = []
        batch = self._forced(segments, unchanged, steps.append)
        log_p = gold_log_probs(self.backbone, batch, batch.hiddens[batch.real], batch.real)
        loss = -log_p.sum()
        if isinstance(self.network, Regression):
            weights = self.network.weight.square().sum()
            wrong = self._wrong(batch, steps).sum() + self.config.decay * len(segments) * weights
            loss = loss + self.config.regression * wrong
        return loss, len(log_p)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Dev's loss with the network, and what it reads; of one that expects the next word, too,
        the mean squared distance of f_s from its embedding."""
        self.backbone.eval()
        wrong: list[Tensor] = []

        def also(batch: ForcedBatch, steps: Sequence[Step]) -> None:
            if isinstance(self.network, Regression):
                wrong.append(self._wrong(batch, steps))

        reading = reading_of(self, also)
        regression = {"regression": float(torch.cat(wrong).mean())} if wrong else {}
        return reading.figures | regression | {"criterion": reading.loss}

    def dev_forced(self, unit: Sequence[int], change: Change, keep: Keep) -> ForcedBatch:
        return self._forced([self.dev[i] for i in unit], change, keep)

    def has_text(self, unit: Sequence[int]) -> Tensor:
        return torch.ones(len(unit), dtype=torch.bool)

    def _forced(self, segments: Sequence[Segment], change: Change, keep: Keep) -> ForcedBatch:
        """Contexts and hidden states along the references, with what is fed in place of what the
        network feeds."""
        src, lengths, tgt = self.coded(segments)
        inject = change(self.network.injector(self.backbone.embed, keep))
        encoded = self.backbone.encode(src, lengths)
        return ForcedBatch(tgt, *self.backbone.forced(encoded, tgt, inject))

    def _wrong(self, batch: ForcedBatch, steps: Sequence[Step]) -> Tensor:
        """||e(y_t) - f_s(q_t)||^2 of every reference word (n,)."""
        words = self.backbone.embed(batch.tgt[batch.real])
        expected = torch.stack([step.word for step in steps if step.word is not None], 1)
        return (words - expected[batch.real]).square().sum(-1)


def reference_reader(
    model: Referring, vocab: Vocabulary, documents: Documents, config: ReferenceConfig
) -> ReferencePart:
    """A base with its network, and about `config.dev_segments` segments along which it is measured
    what the network reads."""
    segments = short_enough(documents, vocab, config.max_subwords)
    dev = sample_of(expect_two(segments), config.dev_segments)
    return ReferencePart(model.network, model.base, vocab, [], dev, config)


class ReferenceTrainer:
    """Trains the network that the table [reference] describes, for `tmnmt train`."""

    config = ReferenceConfig
    pointwise = (AnchorPart.name,)
    train = staticmethod(train_reference)
