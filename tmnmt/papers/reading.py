"""What a network beside a base reads, measured along the references of dev.

A network that has learned nothing feeds the decoder a constant, and a decoder that gets a constant
may well be better than the base, since it has one bias more. So the loss with the network is
compared with three others, of the same weights:

    off        nothing is fed
    mean       every word is fed what the network feeds on average
    shuffled   every word is fed what the network feeds at another word of the batch

The network reads where it is better than its own mean and than its own shuffle, by intervals that
leave 0 out (`Reading.reads`). Either can go the other way: a network whose vectors do not fit their
words is worse than its mean.

    B: sentences    R: rows    T: longest target    U: what the update takes in    C: anchors
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from tmnmt.models.base import Backbone, Inject
from tmnmt.training.teacher_forcing import ForcedBatch, gold_log_probs

NORMAL_95 = 1.96  # standard errors on either side of a 95 % interval
SHUFFLE_SEED = 0


class Step(NamedTuple):
    """What a network makes at one word of every row.

    weights: (R, C) of its anchors, or of the words that it reads; None where it weighs nothing.
    word: (R, E) the embedding that it expects next; None where it expects none."""

    weights: Tensor | None = None
    word: Tensor | None = None


Keep = Callable[[Step], object]
Change = Callable[[Inject], Inject | None]  # what is fed in place of what a network feeds


def ignore(step: Step) -> None:
    """Keeps nothing of a step.

    step: the step."""


def unchanged(inject: Inject) -> Inject:
    """What a network feeds, as it is.

    inject: what it feeds."""
    return inject


class Reader(Protocol):
    """A base with a network, and dev."""

    @property
    def backbone(self) -> Backbone:
        """The base."""

    @property
    def dev_units(self) -> Sequence[Sequence[int]]:
        """The sentences of every batch, by their numbers."""

    def dev_forced(self, unit: Sequence[int], change: Change, keep: Keep) -> ForcedBatch:
        """Contexts and hidden states along the references of a batch.

        unit: the sentences of the batch.
        change: what is fed in place of what the network feeds; not called where that is nothing.
        keep: gets every step of the network."""

    def has_text(self, unit: Sequence[int]) -> Tensor:
        """Whether the network has anything to read at each sentence of a batch (B,).

        unit: the sentences of the batch."""


class Interval(NamedTuple):
    """A difference in nats a word with its 95 % interval."""

    value: float
    low: float
    high: float


class Reading(NamedTuple):
    """What a network reads on dev.

    loss: with the network, in nats a subword.
    off: where nothing is fed.
    mean: where every word is fed the mean.
    shuffled: where every word is fed what another word is fed.
    varying: the share of the squared length of what is fed that is not the mean's.
    entropy: of its weights in nats, the mean over words; None where it weighs nothing.
    over_mean: how much better the network is than its own mean.
    over_shuffle: how much better it is than its own shuffle."""

    loss: float
    off: float
    mean: float
    shuffled: float
    varying: float
    entropy: float | None
    over_mean: Interval
    over_shuffle: Interval

    @property
    def reads(self) -> bool:
        """Whether it is better than its own mean and than its own shuffle."""
        return self.over_mean.low > 0 and self.over_shuffle.low > 0

    @property
    def figures(self) -> dict[str, float]:
        """For the log of a training, by name."""
        entropy = {} if self.entropy is None else {"entropy": self.entropy}
        losses = {"off": self.off, "mean": self.mean, "shuffled": self.shuffled}
        return losses | {"varying": self.varying, "reads": float(self.reads)} | entropy


@torch.no_grad()
def reading_of(
    reader: Reader,
    also: Callable[[ForcedBatch, Sequence[Step]], object] = lambda batch, steps: None,
) -> Reading:
    """Measures what a network reads on dev.

    reader: the base with the network.
    also: gets every batch with the network, and its steps."""
    losses: dict[str, list[Tensor]] = {name: [] for name in ("loss", "off", "mean", "shuffled")}
    lengths: list[Tensor] = []
    fed = _Fed()
    generator = torch.Generator().manual_seed(SHUFFLE_SEED)
    for unit in reader.dev_units:
        steps: list[Step] = []
        updates: list[Tensor] = []
        batch = reader.dev_forced(unit, _recording(updates), steps.append)
        also(batch, steps)
        lengths.append(batch.real.sum(1))
        losses["loss"].append(_by_sentence(reader.backbone, batch))
        losses["off"].append(_changed(reader, unit, lambda inject: None))
        if updates:
            words = batch.real & reader.has_text(unit)[:, None].to(batch.tgt.device)
            update = torch.stack(updates, 1)  # (B, T, U)
            fed.add(update[words], [step.weights for step in steps], words)
            order = torch.randperm(int(words.sum()), generator=generator).to(words.device)
            update[words] = update[words][order]
            losses["shuffled"].append(_changed(reader, unit, _replaying(update.unbind(1))))
        else:
            losses["shuffled"].append(losses["loss"][-1])
    for unit in reader.dev_units:
        constant = reader.has_text(unit)[:, None].to(fed.mean) * fed.mean
        losses["mean"].append(_changed(reader, unit, _replaying(repeat(constant))))
    sums = {name: torch.cat(parts).double() for name, parts in losses.items()}
    counts = torch.cat(lengths).double()
    means = {name: float(values.sum() / counts.sum()) for name, values in sums.items()}
    return Reading(
        **means,
        varying=fed.varying,
        entropy=fed.entropy,
        over_mean=interval(sums["mean"] - sums["loss"], counts),
        over_shuffle=interval(sums["shuffled"] - sums["loss"], counts),
    )


def interval(differences: Tensor, counts: Tensor) -> Interval:
    """The difference a word, with the interval of sentences that are drawn whole: the words of one
    hang together.

    differences: summed over every sentence (N,), N at least 2.
    counts: the words of every sentence (N,)."""
    value = differences.sum() / counts.sum()
    residues = differences - value * counts
    error = NORMAL_95 * residues.std() * len(counts) ** 0.5 / counts.sum()
    return Interval(float(value), float(value - error), float(value + error))


class _Fed:
    """Sums of what is fed, and of the entropy of weights, over all words that get something."""

    def __init__(self) -> None:
        self.words = 0
        self.total = torch.zeros(())
        self.squares = 0.0
        self.entropies: list[Tensor] = []

    def add(self, update: Tensor, weights: Sequence[Tensor | None], words: Tensor) -> None:
        """Of a batch: what is fed (n, U), every step's weights, and which words get something
        (B, T)."""
        self.words += len(update)
        self.total = self.total.to(update) + update.sum(0)
        self.squares += float(update.double().square().sum())
        entropies = [torch.special.entr(row).sum(-1) for row in weights if row is not None]
        if entropies:
            self.entropies.append(torch.stack(entropies, 1)[words])

    @property
    def mean(self) -> Tensor:
        """(U,)"""
        return self.total / max(self.words, 1)

    @property
    def varying(self) -> float:
        """0 where nothing is fed."""
        constant = self.words * float(self.mean.double().square().sum())
        return max(1 - constant / self.squares, 0.0) if self.squares else 0.0

    @property
    def entropy(self) -> float | None:
        return float(torch.cat(self.entropies).mean()) if self.entropies else None


def _recording(updates: list[Tensor]) -> Change:
    def change(inject: Inject) -> Inject:
        def recorded(prev: Tensor, state: Tensor, context: Tensor) -> Tensor:
            updates.append(inject(prev, state, context))
            return updates[-1]

        return recorded

    return change


def _replaying(updates: Iterable[Tensor]) -> Change:
    """Feeds one after the other."""
    remaining: Iterator[Tensor] = iter(updates)
    return lambda inject: lambda prev, state, context: next(remaining)


def _changed(reader: Reader, unit: Sequence[int], change: Change) -> Tensor:
    """The loss of every sentence (B,) with something else fed."""
    return _by_sentence(reader.backbone, reader.dev_forced(unit, change, ignore))


def _by_sentence(backbone: Backbone, batch: ForcedBatch) -> Tensor:
    """The loss of every sentence, summed over its words (B,)."""
    log_p = gold_log_probs(backbone, batch, batch.hiddens[batch.real], batch.real)
    losses = torch.zeros(batch.tgt.shape, dtype=log_p.dtype, device=log_p.device)
    losses[batch.real] = -log_p
    return losses.sum(1)
