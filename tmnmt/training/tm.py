"""Training of the translation memory's parameters (M, lambda, mu, nu, kappa, eta, the gates), the base fixed.

Copy and fusion share all but the gates, but each has its own gate, its own coverage and its own loss, and the
losses are summed: each of the two is right when it is used alone, as `--mode copy` or `--mode fusion` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np
import torch
from torch import Tensor

from tmnmt.memories.base import TMState
from tmnmt.memories.tm import TranslationMemory, collate, mix_gold
from tmnmt.models.base import Backbone, shift
from tmnmt.pair_keys import PairKeyStore, padded
from tmnmt.segments import Segment
from tmnmt.training.parts import Part, Unit
from tmnmt.training.retrieve import Drawn, Found, Shares, draw, irrelevant, noisy, with_itself
from tmnmt.vocab import BOS, EOS, PAD, Vocabulary

SCALARS_FASTER = (
    10.0  # lambda, mu, nu, kappa, eta and trust must travel over several units while the weights move by hundredths
)
IRRELEVANT, EXACT, NOISY = " irrelevant", " exact", " noisy"  # kinds of dev figures
ROWS_READ_OUT = 1024  # positions read out at once: their logits stay in the processor's cache


@dataclass(frozen=True)
class ForcedBatch:
    """What the fixed base says along the references of B sentences."""

    tgt: Tensor  # (B, T) int64, padded
    contexts: Tensor  # (B, T, l)
    hiddens: Tensor  # (B, T, d)

    @property
    def real(self) -> Tensor:
        """(B, T) bool"""
        return self.tgt != PAD


def force_references(
    backbone: Backbone, vocab: Vocabulary, segments: Sequence[Segment], device: torch.device | str
) -> ForcedBatch:
    """Contexts and states along the references of `segments`, without gradients."""
    src = [[*vocab.encode(segment.src), EOS] for segment in segments]
    target = padded([[*vocab.encode(segment.tgt), EOS] for segment in segments], device)
    with torch.no_grad():
        encoded = backbone.encode(padded(src, device), torch.tensor([len(ids) for ids in src], device=device))
        return ForcedBatch(target, *backbone.forced(encoded, target))


def gold_log_probs(backbone: Backbone, batch: ForcedBatch, hiddens: Tensor, where: Tensor) -> Tensor:
    """log p_gen of the references' words at the positions `where` (B, T) bool, read out from `hiddens` (n, d): (n,)."""
    prev, gold, contexts = shift(batch.tgt, BOS)[where], batch.tgt[where], batch.contexts[where]
    found = []
    for at in range(0, len(gold), ROWS_READ_OUT):
        part = slice(at, at + ROWS_READ_OUT)
        logits = backbone.readout(prev[part], hiddens[part], contexts[part])
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        found.append(logits.gather(1, gold[part, None])[:, 0] - logits.logsumexp(1))
    return torch.cat(found)


def tm_log_probs(tm: TranslationMemory, backbone: Backbone, batch: ForcedBatch, state: TMState) -> dict[str, Tensor]:
    """log p of every reference word (n,), in order of (sentence, position): "plain", and for the gates that there are
    "copy" and "fusion". Equal to `Memories.step` repeated along the references; only the coverage runs over t."""
    real = batch.real
    with torch.no_grad():
        plain = gold_log_probs(backbone, batch, batch.hiddens[real], real)
    found, prev = {"plain": plain}, shift(batch.tgt, BOS)
    if tm.copy is not None:
        q, logits = tm.unroll(tm.copy, prev, batch.hiddens, batch.contexts, state)
        p_copy = (q * (state.ids[:, None] == batch.tgt[:, :, None])).sum(-1)[real]
        closed = ~state.mask.any(-1)[:, None]
        found["copy"] = mix_gold(plain, p_copy, logits[..., 0].masked_fill(closed, -torch.inf)[real])
    if tm.fusion is not None:
        q, logits = tm.unroll(tm.fusion, prev, batch.hiddens, batch.contexts, state)
        gate = (torch.sigmoid(logits) * state.mask.any(-1)[:, None, None])[real]
        said = tm.ready(state, backbone.embed).said
        assert said is not None
        fused = (1 - gate) * batch.hiddens[real] + gate * torch.bmm(q, said)[real]
        found["fusion"] = gold_log_probs(backbone, batch, fused, real)
    return found


@dataclass(frozen=True)
class PairedSentences:
    """Segments with what was found for each, and those of them that are used."""

    segments: Sequence[Segment]
    found: Sequence[Sequence[Found]]
    chosen: Sequence[int]
    pool: Sequence[Segment]  # where irrelevant pairs come from
    k: int
    shares: Shares
    max_subwords: int
    seed: int

    def draw(self, epoch: int) -> Drawn:
        return draw(self.segments, self.found, self.chosen, self.pool, self.k, self.shares, f"{self.seed} {epoch}")

    def strongest(self, i: int) -> list[Found]:
        """The pairs that decoding would give sentence i."""
        return [pair for pair in self.found[i] if pair.score >= self.shares.threshold][: self.k]

    def shown_on_dev(self, sentences: Sequence[int], foreign: Random, noise: Random) -> dict[str, list[list[Found]]]:
        """The pairs of these sentences by the kind of dev figure: what decoding would give, irrelevant ones, the pair
        itself before the others, and with noise."""
        relevant = [self.strongest(i) for i in sentences]
        own = [with_itself(self.segments[i], pairs) for i, pairs in zip(sentences, relevant, strict=True)]
        return {
            "": relevant,
            IRRELEVANT: [irrelevant(self.segments[i], self.pool, self.k, foreign) for i in sentences],
            EXACT: [pairs[: self.k] for pairs in own],
            NOISY: [[noisy(pair, self.pool, noise) for pair in pairs] for pairs in relevant],
        }

    def weights(self) -> dict[str, float]:
        """How much of training each kind is."""
        kinds = {IRRELEVANT: self.shares.irrelevant, EXACT: self.shares.exact, NOISY: self.shares.noise}
        return {"": 1 - sum(kinds.values()), **kinds}

    def size(self, i: int, vocab: Vocabulary) -> tuple[int, int]:
        """Subwords of source and target, </s> included."""
        return len(vocab.encode(self.segments[i].src)) + 1, len(vocab.encode(self.segments[i].tgt)) + 1


class TMPart(Part):
    """Sentences with the pairs that were found for them, leave-one-out; dev with pairs from the same memory."""

    name = "tm"

    def __init__(
        self, tm: TranslationMemory, backbone: Backbone, vocab: Vocabulary, train: PairedSentences,
        dev: PairedSentences, batch_tokens: int,
    ) -> None:  # fmt: skip
        self.module = self.tm = tm
        self.backbone, self.vocab, self.train, self.dev, self.batch_tokens = backbone, vocab, train, dev, batch_tokens
        self.device = tm.log_eta.device
        # nothing is kept: in another batch a key has other rounding, and a resumed run is to equal an unbroken one
        self.keys = PairKeyStore(backbone, vocab, 2 * train.max_subwords, positions_kept=0, device=self.device)
        self._drawn = lru_cache(maxsize=2)(self._draw)
        self._lengths = {i: train.size(i, vocab) for i in train.chosen}
        self._dev_units = batches({i: dev.size(i, vocab) for i in dev.chosen}, batch_tokens, "dev")

    def groups(self, learning_rate: float) -> list[dict[str, object]]:
        tm = self.tm
        trusts = [gate.trust for gate in (tm.copy, tm.fusion) if gate is not None]
        scalars = [p for p in (tm.coverage.weight, tm.preferences, tm.log_eta, *trusts) if p is not None]
        others = [p for p in tm.parameters() if all(p is not scalar for scalar in scalars)]
        return [{"params": others, "peak": learning_rate}, {"params": scalars, "peak": SCALARS_FASTER * learning_rate}]

    def units(self, epoch: int) -> Sequence[Unit]:
        # the sizes of batches do not depend on the epoch, their order and what is shown with them does
        made = batches(self._lengths, self.batch_tokens, f"{self.train.seed}")
        Random(f"{self.train.seed} {epoch}").shuffle(made)
        return [[epoch, *unit] for unit in made]

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        epoch, *sentences = unit
        drawn = self._drawn(epoch)
        found = self._log_probs(self.train, sentences, [drawn[i] for i in sentences])
        losses = [-log_p.sum() for name, log_p in found.items() if name != "plain"]
        yield torch.stack(losses).sum(), len(found["plain"])

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Over the dev sentences that have pairs: the plain model, with their pairs, with irrelevant ones instead, with
        the pair itself before the others, and with noisy ones. The criterion weighs these as training does."""
        totals: dict[str, float] = {}
        tokens = 0
        foreign, noise = Random("dev"), Random("dev noise")
        for unit in self._dev_units:
            for kind, pairs in self.dev.shown_on_dev(unit, foreign, noise).items():
                for name, log_p in self._log_probs(self.dev, unit, pairs).items():
                    if name != "plain" or not kind:
                        totals[name + kind] = totals.get(name + kind, 0.0) - float(log_p.sum())
            tokens += int(sum(self.dev.size(i, self.vocab)[1] for i in unit))
        losses = {name: total / tokens for name, total in totals.items()}
        modes, weights = [name for name in losses if name in ("copy", "fusion")], self.train.weights()
        losses["criterion"] = sum(weight * losses[mode + kind] for mode in modes for kind, weight in weights.items())
        return losses

    def _log_probs(self, data: PairedSentences, sentences: list[int], pairs: list[list[Found]]) -> dict[str, Tensor]:
        batch = force_references(self.backbone, self.vocab, [data.segments[i] for i in sentences], self.device)
        keys = self.keys.keys_of([(pair.src, pair.tgt) for pair in shown] for shown in pairs)
        state = collate(keys, [[pair.score for pair in shown] for shown in pairs], 1, self.device)
        assert state is not None  # every chosen sentence is shown at least one pair
        return tm_log_probs(self.tm, self.backbone, batch, state)

    def _draw(self, epoch: int) -> dict[int, list[Found]]:
        drawn: Drawn = self.train.draw(epoch)
        return dict(zip(drawn.sentences, drawn.pairs, strict=True))


def batches(sizes: dict[int, tuple[int, int]], batch_tokens: int, seed: str) -> list[list[int]]:
    """Sentences of similar lengths together, at most `batch_tokens` padded tokens on the longer side, in random order.

    sizes: number of a sentence -> its subwords on either side."""
    random = Random(seed)
    order = sorted(sizes, key=lambda i: (sizes[i][1] + 2 * random.random(), sizes[i][0]))
    made: list[list[int]] = []
    longest = 0
    for i in order:
        longest = max(longest, *sizes[i])
        if not made or longest * (len(made[-1]) + 1) > batch_tokens:
            made.append([])
            longest = max(sizes[i])
        made[-1].append(i)
    random.shuffle(made)
    return made


def evenly(count: int, most: int) -> list[int]:
    """At most `most` of the numbers below `count`, evenly spaced, in order."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int)).tolist() if count else []
