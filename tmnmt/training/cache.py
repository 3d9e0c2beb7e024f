"""Training of the session cache's gate {U, V, W}, the base fixed (Tu et al. 2018, eq. 10).

Documents in order, several side by side. OURS: the cache is filled from `forced` on the references of the preceding
sentences, and emptied at a document's start. Long documents are cut into stretches, each with a cache of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import torch
from torch import Tensor

from tmnmt.memories.cache import CacheContents, SessionCache, collate_caches
from tmnmt.memories.tm import mix_gold
from tmnmt.memories.view import seen, view_of
from tmnmt.models.base import Backbone
from tmnmt.segments import Segment
from tmnmt.training.parts import Part, Unit
from tmnmt.training.tm import ForcedBatch, force_references, gold_log_probs
from tmnmt.vocab import Vocabulary

Stretch = Sequence[Segment]


def stretches(documents: Sequence[Sequence[Segment]], longest: int, most: int, seed: int) -> list[Stretch]:
    """Consecutive segments of one document, at most `longest` each and at least two, about `most` segments in all.

    Drawn at random over all documents; without a sentence before it nothing could be remembered."""
    cut = [document[at : at + longest] for document in documents for at in range(0, len(document), longest)]
    cut = [stretch for stretch in cut if len(stretch) > 1]
    Random(f"stretches {seed}").shuffle(cut)
    chosen: list[Stretch] = []
    total = 0
    for stretch in cut:
        if total >= most:
            break
        chosen.append(stretch)
        total += len(stretch)
    return chosen


class CachePart(Part):
    """Groups of stretches of similar length, which are gone through side by side."""

    name = "cache"

    def __init__(
        self, cache: SessionCache, backbone: Backbone, vocab: Vocabulary, train: Sequence[Stretch],
        dev: Sequence[Stretch], size: int, together: int, seed: int,
    ) -> None:  # fmt: skip
        self.module = self.cache = cache
        self.backbone, self.vocab, self.train, self.dev = backbone, vocab, train, dev
        self.size, self.together, self.seed = size, together, seed
        self.device = cache.U.weight.device

    def units(self, epoch: int) -> Sequence[Unit]:
        random = Random(f"{self.seed} {epoch}")
        made = self._groups(self.train, random)
        random.shuffle(made)
        return made

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        contents = [self._new() for _ in unit]
        for batch, live in self._side_by_side([self.train[i] for i in unit]):
            log_p = self._log_probs(batch, [contents[i] for i in live])
            if log_p is not None:
                yield -log_p.sum(), len(log_p)
            self._write(batch, [contents[i] for i in live])

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Over the dev sentences with a filled cache: the plain model, with the cache, and with the cache of another
        document in its place, which shows what history itself is worth."""
        totals = {"plain": 0.0, "cache": 0.0, "cache of another document": 0.0}
        tokens = 0
        for unit in self._groups(self.dev, Random("dev")):
            contents = [self._new() for _ in unit]
            for batch, live in self._side_by_side([self.dev[i] for i in unit]):
                own = [contents[i] for i in live]
                log_p = self._log_probs(batch, own)
                # the neighbour's has as many sentences behind it, or ended a little earlier
                other = self._log_probs(batch, [contents[(i + 1) % len(contents)] for i in live])
                if log_p is not None and other is not None:
                    plain = gold_log_probs(self.backbone, batch, batch.hiddens[batch.real], batch.real)
                    for name, found in zip(totals, (plain, log_p, other), strict=True):
                        totals[name] -= float(found.sum())
                    tokens += len(plain)
                self._write(batch, own)
        losses = {name: total / tokens for name, total in totals.items()}
        return losses | {"criterion": losses["cache"]}

    def _groups(self, data: Sequence[Stretch], random: Random) -> list[Unit]:
        order = sorted(range(len(data)), key=lambda i: (len(data[i]), random.random()))
        return [order[at : at + self.together] for at in range(0, len(order), self.together)]

    def _new(self) -> CacheContents:
        return CacheContents(self.size, self.backbone.context_size, self.backbone.hidden_size, device=self.device)

    def _side_by_side(self, group: Sequence[Stretch]) -> Iterator[tuple[ForcedBatch, list[int]]]:
        """Step s: the references' s-th sentences, and which stretches of the group still have one."""
        for s in range(max(map(len, group))):
            live = [i for i, stretch in enumerate(group) if len(stretch) > s]
            segments = [group[i][s] for i in live]
            yield force_references(self.backbone, self.vocab, segments, self.device), live

    def _log_probs(self, batch: ForcedBatch, contents: list[CacheContents]) -> Tensor | None:
        """log p of every reference word with the cache (n,); None where all caches are empty."""
        state = collate_caches(contents, 1, self.device)
        if state is None:
            return None
        real = batch.real
        hidden, context = batch.hiddens[real], batch.contexts[real]
        ready = self.cache.ready(state, self.backbone.embed)
        positions = seen(ready.rows(real.nonzero()[:, 0]))  # one row a position: (n,)
        if self.cache.kind.fusion == "deep":
            fused, _ = self.cache.fuse(hidden, context, positions)
            return gold_log_probs(self.backbone, batch, fused, real)
        weights, logit = self.cache.recall(hidden, context, positions)
        recalled = (weights * (view_of(positions).ids == batch.tgt[real][:, None])).sum(-1)
        return mix_gold(gold_log_probs(self.backbone, batch, hidden, real), recalled, logit)

    def _write(self, batch: ForcedBatch, contents: list[CacheContents]) -> None:
        for cache, context, hidden, ids in zip(contents, batch.contexts, batch.hiddens, batch.tgt, strict=True):
            cache.write(context, hidden, ids)
