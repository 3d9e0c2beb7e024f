"""Training of the translation memory's parameters: M, lambda, mu, nu, kappa, rho, eta, the gates;
the base is fixed.

Copy and fusion share all but the gates, but each has its own gate, its own coverage and its own
loss, and the losses are summed: each of the two is right when it is used alone, as `--mode copy` or
`--mode fusion` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np
import torch
from torch import Tensor, nn

from tmnmt.keys.pair_keys import PairKeyStore
from tmnmt.layers.collated import Pairs, collate
from tmnmt.layers.mixing import mix_gold
from tmnmt.models.base import Backbone, shift
from tmnmt.segments import Segment
from tmnmt.trained_layers.tm import TranslationMemory
from tmnmt.training.parts import Part, Unit
from tmnmt.training.retrieve import (
    PairAssignment,
    RetrievedPair,
    Shares,
    draw,
    irrelevant,
    noisy,
    with_itself,
)
from tmnmt.training.teacher_forcing import ForcedBatch, Remembered, force_references, gold_log_probs
from tmnmt.vocab import BOS, Vocabulary

# lambda, mu, nu, kappa, rho, eta, trust must travel over several units while the weights move by
# hundredths
SCALARS_FASTER = 10.0
IRRELEVANT, EXACT, NOISY = " irrelevant", " exact", " noisy"  # kinds of dev figures
MODES = ("copy", "fusion")


def tm_log_probs(
    tm: TranslationMemory,
    backbone: Backbone,
    batch: ForcedBatch,
    pairs: Pairs | None,
    remembered: Remembered | None = None,
) -> dict[str, Tensor]:
    """log p of every reference word (n,), in order of (sentence, position): "plain", that is
    without pairs, and for the gates that there are "copy" and "fusion"; with `remembered`, all
    after the session cache. Equal to `MemoryLayers.step` repeated along the references; only the
    coverage runs over t."""
    real = batch.real
    remembered = remembered or Remembered(batch.hiddens[real])
    plain = remembered.mixed(gold_log_probs(backbone, batch, remembered.hiddens, real))
    if pairs is None:
        return {"plain": plain} | {mode: plain for mode in MODES if getattr(tm, mode) is not None}
    log_probs, prev = {"plain": plain}, shift(batch.tgt, BOS)
    if tm.copy is not None:
        q, logits = tm.unroll(tm.copy, prev, batch.hiddens, batch.contexts, pairs)
        p_copy = (q * (pairs.ids[:, None] == batch.tgt[:, :, None])).sum(-1)[real]
        is_empty = ~pairs.mask.any(-1)[:, None]
        log_probs["copy"] = mix_gold(
            plain, p_copy, logits[..., 0].masked_fill(is_empty, -torch.inf)[real]
        )
    if tm.fusion is not None:
        q, logits = tm.unroll(tm.fusion, prev, batch.hiddens, batch.contexts, pairs)
        gate = (torch.sigmoid(logits) * pairs.mask.any(-1)[:, None, None])[real]
        values = tm.fusion_values(pairs, backbone.embed)
        fused = (1 - gate) * remembered.hiddens + gate * torch.bmm(q, values)[real]
        log_probs["fusion"] = remembered.mixed(gold_log_probs(backbone, batch, fused, real))
    return log_probs


def fresh_keys(
    backbone: Backbone,
    vocab: Vocabulary,
    max_subwords: int,
    device: torch.device,
    gradients: bool = False,
) -> PairKeyStore:
    """Computes keys every time: in another batch a key has other rounding, and a resumed run is to
    equal an unbroken one; and where the base changes, so do they. A pair may be twice as long as a
    sentence."""
    return PairKeyStore(
        backbone, vocab, 2 * max_subwords, positions_kept=0, device=device, gradients=gradients
    )


def pairs_of(keys: PairKeyStore, pairs: Sequence[Sequence[RetrievedPair]]) -> Pairs | None:
    """What B sentences read of these pairs; None if none has any."""
    of_pairs = keys.keys_of([(pair.src, pair.tgt) for pair in retrieved] for retrieved in pairs)
    return collate(
        of_pairs, [[pair.score for pair in retrieved] for retrieved in pairs], keys.device
    )


def by_speed(
    module: nn.Module, scalars: Sequence[Tensor], learning_rate: float
) -> list[dict[str, object]]:
    """Adam's groups of a module's parameters: those `scalars` among them, and the others."""
    rest = [p for p in module.parameters() if all(p is not scalar for scalar in scalars)]
    return [
        {"params": rest, "peak": learning_rate},
        {"params": list(scalars), "peak": SCALARS_FASTER * learning_rate},
    ]


@dataclass(frozen=True)
class PairedSentences:
    """Segments with what was found for each, and those of them that are used."""

    segments: Sequence[Segment]
    candidates: Sequence[Sequence[RetrievedPair]]
    sentences: Sequence[int]
    pool: Sequence[Segment]  # where irrelevant pairs come from
    k: int
    shares: Shares
    max_subwords: int
    seed: int

    def draw(self, epoch: int) -> PairAssignment:
        return draw(
            self.segments,
            self.candidates,
            self.sentences,
            self.pool,
            self.k,
            self.shares,
            f"{self.seed} {epoch}",
        )

    def strongest(self, i: int) -> list[RetrievedPair]:
        """The pairs that decoding would give sentence i."""
        return [pair for pair in self.candidates[i] if pair.score >= self.shares.threshold][
            : self.k
        ]

    def shown_on_dev(
        self, sentences: Sequence[int], foreign: Random, noise: Random
    ) -> dict[str, list[list[RetrievedPair]]]:
        """The pairs of these sentences by the kind of dev figure: what decoding would give,
        irrelevant ones, the pair itself before the others, and with noise."""
        relevant = [self.strongest(i) for i in sentences]
        exact = [
            with_itself(self.segments[i], pairs)
            for i, pairs in zip(sentences, relevant, strict=True)
        ]
        return {
            "": relevant,
            IRRELEVANT: [
                irrelevant(self.segments[i], self.pool, self.k, foreign) for i in sentences
            ],
            EXACT: [pairs[: self.k] for pairs in exact],
            NOISY: [[noisy(pair, self.pool, noise) for pair in pairs] for pairs in relevant],
        }

    def weights(self) -> dict[str, float]:
        """How much of training each kind is; no pair at all is none of them."""
        kinds = {
            IRRELEVANT: self.shares.irrelevant,
            EXACT: self.shares.exact,
            NOISY: self.shares.noise,
        }
        return {"": 1 - self.shares.no_pair - sum(kinds.values()), **kinds}

    def size(self, i: int, vocab: Vocabulary) -> tuple[int, int]:
        """Subwords of source and target, </s> included."""
        return len(vocab.encode_source(self.segments[i].src)) + 1, len(
            vocab.encode(self.segments[i].tgt)
        ) + 1


class TMPart(Part):
    """Sentences with the pairs that were found for them, leave-one-out; dev with pairs from the
    same memory."""

    name = "tm"
    gradients = False  # does the base learn, too?

    def __init__(
        self,
        tm: TranslationMemory,
        backbone: Backbone,
        vocab: Vocabulary,
        train: PairedSentences,
        dev: PairedSentences,
        batch_tokens: int,
    ) -> None:
        self.tm, self.module = tm, tm
        self.backbone = backbone
        self.vocab = vocab
        self.train = train
        self.dev = dev
        self.batch_tokens = batch_tokens
        self.device = tm.log_eta.device
        self.keys = fresh_keys(backbone, vocab, train.max_subwords, self.device, self.gradients)
        self._epoch_pairs = lru_cache(maxsize=2)(self._draw)
        self._lengths = {i: train.size(i, vocab) for i in train.sentences}
        self._dev_units = batches(
            {i: dev.size(i, vocab) for i in dev.sentences}, batch_tokens, "dev"
        )

    def groups(self, learning_rate: float) -> list[dict[str, object]]:
        tm = self.tm
        scalars = [
            p
            for p in (tm.coverage.weight, tm.preferences, tm.pointer, tm.log_eta, *tm.trusts)
            if p is not None
        ]
        return by_speed(tm, scalars, learning_rate)

    def units(self, epoch: int) -> Sequence[Unit]:
        # the sizes of batches do not depend on the epoch, their order and what is shown with them
        # does
        units = batches(self._lengths, self.batch_tokens, f"{self.train.seed}")
        Random(f"{self.train.seed} {epoch}").shuffle(units)
        return [[epoch, *unit] for unit in units]

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        epoch, *sentences = unit
        pairs = self._epoch_pairs(epoch)
        log_probs = self._log_probs(self.train, sentences, [pairs[i] for i in sentences])
        yield (
            -torch.stack([log_probs[mode].sum() for mode in MODES if mode in log_probs]).sum(),
            len(log_probs["plain"]),
        )

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Over the dev sentences that have pairs: the plain model, with their pairs, with
        irrelevant ones instead, with the pair itself before the others, and with noisy ones. The
        criterion weighs these as training does."""
        losses = self.dev_losses()
        return losses | {"criterion": self.criterion(losses)}

    def dev_losses(self) -> dict[str, float]:
        """All figures but the criterion."""
        totals: dict[str, float] = {}
        tokens = 0
        foreign, noise = Random("dev"), Random("dev noise")
        for unit in self._dev_units:
            for kind, pairs in self.dev.shown_on_dev(unit, foreign, noise).items():
                for name, log_p in self._log_probs(self.dev, unit, pairs).items():
                    if name != "plain" or not kind:
                        totals[name + kind] = totals.get(name + kind, 0.0) - float(log_p.sum())
            tokens += int(sum(self.dev.size(i, self.vocab)[1] for i in unit))
        return {name: total / tokens for name, total in totals.items()}

    def criterion(self, losses: dict[str, float]) -> float:
        """The sum over copy and fusion of what is to fall."""
        weights, modes = self.train.weights(), [mode for mode in MODES if mode in losses]
        return sum(
            weight * losses[mode + kind] for mode in modes for kind, weight in weights.items()
        )

    def _log_probs(
        self, data: PairedSentences, sentences: list[int], pairs: list[list[RetrievedPair]]
    ) -> dict[str, Tensor]:
        segments = [data.segments[i] for i in sentences]
        batch = force_references(self.backbone, self.vocab, segments, self.device, self.gradients)
        return tm_log_probs(self.tm, self.backbone, batch, pairs_of(self.keys, pairs))

    def _draw(self, epoch: int) -> dict[int, list[RetrievedPair]]:
        sample: PairAssignment = self.train.draw(epoch)
        return dict(zip(sample.sentences, sample.pairs, strict=True))


def batches(sizes: dict[int, tuple[int, int]], batch_tokens: int, seed: str) -> list[list[int]]:
    """Sentences of similar lengths together, at most `batch_tokens` padded tokens on the longer
    side, in random order.

    sizes: number of a sentence -> its subwords on either side."""
    random = Random(seed)
    order = sorted(sizes, key=lambda i: (sizes[i][1] + 2 * random.random(), sizes[i][0]))
    groups: list[list[int]] = []
    longest = 0
    for i in order:
        longest = max(longest, *sizes[i])
        if not groups or longest * (len(groups[-1]) + 1) > batch_tokens:
            groups.append([])
            longest = max(sizes[i])
        groups[-1].append(i)
    random.shuffle(groups)
    return groups


def evenly(count: int, limit: int) -> list[int]:
    """At most `limit` of the numbers below `count`, evenly spaced, in order."""
    return (
        np.unique(np.linspace(0, count - 1, min(count, limit)).astype(int)).tolist()
        if count
        else []
    )
