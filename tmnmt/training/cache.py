"""Training of the session cache, gate {U, V, W} and what else its kind has, the base fixed (Tu et
al. 2018, eq. 10).

Documents in order, several side by side. OURS: the cache is filled from `forced` on the references
of the preceding sentences, or on what the base itself says of them, and emptied at a document's
start; and long documents are cut into stretches of at most 100 sentences (the setting `stretch`),
each of which begins with an empty cache, as if it were a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import NamedTuple

import torch
from torch import Tensor

from tmnmt.layers.contract import StepState
from tmnmt.models.base import Backbone, shift
from tmnmt.segments import Segment
from tmnmt.trained_layers.cache import CacheContents, SessionCache, collate_caches
from tmnmt.training.parts import Part, Unit
from tmnmt.training.teacher_forcing import (
    ForcedBatch,
    Remembered,
    force_references,
    gold_log_probs,
    merge_batches,
)
from tmnmt.vocab import BOS, Vocabulary

Stretch = Sequence[Segment]
FORCED_TOGETHER = 8  # sentences of each stretch that are forced at once
BEGINNING = 5  # sentences of each of some stretches, by which Q and K are begun
OTHER_DOCUMENT = "cache of another document"
DENSE_SLOWER = 8  # the rate of Q and K is so many times smaller than that of the other parameters


def stretches(
    documents: Sequence[Sequence[Segment]], longest: int, limit: int, seed: int
) -> list[Stretch]:
    """Consecutive segments of one document, at most `longest` each and at least two, about `limit`
    segments in all.

    Drawn at random over all documents; without a sentence before it nothing could be remembered."""
    cut = [
        document[start : start + longest]
        for document in documents
        for start in range(0, len(document), longest)
    ]
    cut = [stretch for stretch in cut if len(stretch) > 1]
    Random(f"stretches {seed}").shuffle(cut)
    selection: list[Stretch] = []
    total = 0
    for stretch in cut:
        if total >= limit:
            break
        selection.append(stretch)
        total += len(stretch)
    return selection


def elsewhere(documents: Sequence[str], distance: int) -> list[int] | None:
    """For each of these places, of the documents named, the first of another document from
    `distance` places on, round the end; None where there is but one document."""
    if len(set(documents)) < 2:
        return None
    ends = range(distance, distance + len(documents))
    return [
        next(
            index for step in ends if documents[index := (position + step) % len(documents)] != name
        )
        for position, name in enumerate(documents)
    ]


class SideBySide:
    """Stretches of similar length, gone through side by side, `together` at a time, each with a
    cache of its own."""

    def __init__(
        self, cache: SessionCache, backbone: Backbone, vocab: Vocabulary, together: int
    ) -> None:
        self.cache, self.backbone, self.vocab, self.together = cache, backbone, vocab, together
        self.device = cache.U.weight.device
        self.gradients = False  # does the base learn, too?

    def grouped(self, data: Sequence[Stretch], random: Random) -> list[Unit]:
        """The numbers of the stretches that go together; the last group may be smaller."""
        order = sorted(range(len(data)), key=lambda i: (len(data[i]), random.random()))
        return [
            order[start : start + self.together] for start in range(0, len(order), self.together)
        ]

    def empty(self) -> CacheContents:
        """The cache at the start of a stretch."""
        sizes = self.cache.kind.size, self.backbone.context_size, self.backbone.hidden_size
        return CacheContents(*sizes, self.cache.kind.overwrite, self.device)

    def steps(self, group: Sequence[Stretch]) -> Iterator[tuple[ForcedBatch, list[int]]]:
        """Step s: the references' s-th sentences, and which stretches of the group
        still have one. Where the base is fixed, several steps are forced ahead, sentences of like
        length together."""
        stride = 1 if self.gradients else FORCED_TOGETHER
        for start in range(0, max(map(len, group)), stride):
            steps = [
                (live, [group[i][s] for i in live])
                for s in range(start, start + stride)
                if (live := [i for i, stretch in enumerate(group) if len(stretch) > s])
            ]
            forced = self._forced([segment for _, segments in steps for segment in segments])
            for live, _ in steps:
                yield merge_batches([next(forced) for _ in live]), live

    def _forced(self, segments: Sequence[Segment]) -> Iterator[ForcedBatch]:
        """What the base says along the reference of every segment, by itself."""
        order = sorted(range(len(segments)), key=lambda i: len(segments[i].src + segments[i].tgt))
        batches: dict[int, ForcedBatch] = {}
        for start in range(0, len(order), self.together):
            rows = order[start : start + self.together]
            chunk = [segments[i] for i in rows]
            batch = force_references(self.backbone, self.vocab, chunk, self.device, self.gradients)
            batches |= zip(rows, batch.parted(), strict=True)
        return (batches[i] for i in range(len(segments)))

    def remembered(self, batch: ForcedBatch, contents: list[CacheContents]) -> Remembered | None:
        """What these caches say along the batch; None where all are empty."""
        slots = collate_caches(contents, self.device)
        if slots is None:
            return None
        real = batch.real
        query = StepState(shift(batch.tgt, BOS)[real], batch.hiddens[real], batch.contexts[real])
        ready = self.cache.laid_out(slots, self.backbone.embed)
        positions = ready.rows(real.nonzero()[:, 0])  # one row a position: (n,)
        hidden, reading = self.cache.fuse(query, query.hidden, positions)
        if reading.words is None:
            return Remembered(hidden)
        recalled = (reading.weights * (reading.words.ids == batch.tgt[real][:, None])).sum(-1)
        return Remembered(hidden, recalled, reading.words.logit)

    def write(self, batch: ForcedBatch, contents: list[CacheContents]) -> None:
        """The sentences into their caches."""
        for cache, context, hidden, ids in zip(
            contents, batch.contexts, batch.hiddens, batch.tgt, strict=True
        ):
            cache.write(context, hidden, ids)


class WrittenStretches(NamedTuple):
    """Stretches, and the same with the targets that are written to the cache: the references, or
    the base's own."""

    references: Sequence[Stretch]
    history: Sequence[Stretch]


class CachePart(Part):
    """The session cache on groups of stretches."""

    name = "cache"

    def __init__(
        self,
        documents: SideBySide,
        train: WrittenStretches,
        dev: WrittenStretches,
        seed: int,
        is_pretrained: bool = False,
    ) -> None:
        """is_pretrained: the cache has learned before, and goes on from there."""
        self.documents, self.module = documents, documents.cache
        self.train, self.dev, self.seed = train, dev, seed
        if train.references and not is_pretrained:
            self._begin()

    def _begin(self) -> None:
        """Where Q and K start from: the first sentences of some stretches."""
        first = self.train.references[: self.documents.together]
        batches = [batch for batch, _ in islice(self.documents.steps(first), BEGINNING)]
        contexts, hiddens = (
            torch.cat([tensor[batch.real] for batch, tensor in zip(batches, tensors, strict=True)])
            for tensors in zip(*((batch.contexts, batch.hiddens) for batch in batches), strict=True)
        )
        self.documents.cache.begin(contexts, hiddens)

    def groups(self, learning_rate: float) -> list[dict[str, object]]:
        """Q and K are dense: a step of the others' rate would be too long for them."""
        cache = self.documents.cache
        dense = [layer.weight for layer in (cache.Q, cache.K) if layer is not None]
        rest = [p for p in cache.parameters() if all(p is not weight for weight in dense)]
        return [
            {"params": rest, "peak": learning_rate},
            {"params": dense, "peak": learning_rate / DENSE_SLOWER},
        ]

    def units(self, epoch: int) -> Sequence[Unit]:
        random = Random(f"{self.seed} {epoch}")
        units = self.documents.grouped(self.train.references, random)
        random.shuffle(units)
        return units

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        contents = [self.documents.empty() for _ in unit]
        for batch, history, live in self._steps(self.train, unit):
            log_p = self.log_probs(batch, [contents[i] for i in live])
            if log_p is not None:
                yield -log_p.sum(), len(log_p)
            self.documents.write(history, [contents[i] for i in live])

    def _steps(
        self, documents: WrittenStretches, unit: Unit
    ) -> Iterator[tuple[ForcedBatch, ForcedBatch, list[int]]]:
        """As `SideBySide.steps`, with what is written beside it."""
        steps = self.documents.steps([documents.references[i] for i in unit])
        if documents.history is documents.references:
            yield from ((batch, batch, live) for batch, live in steps)
            return
        history_steps = self.documents.steps([documents.history[i] for i in unit])
        for (batch, live), (history, _) in zip(steps, history_steps, strict=True):
            yield batch, history, live

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Over the dev sentences with a filled cache: the plain model, with the cache, and with the
        cache of another document in its place, which shows what history itself is worth. The last
        over the groups that have two documents, if there are any."""
        totals = {"plain": 0.0, "cache": 0.0, OTHER_DOCUMENT: 0.0}
        tokens = Counter[str]()
        for unit in self.documents.grouped(self.dev.references, Random("dev")):
            contents = [self.documents.empty() for _ in unit]
            partners = elsewhere([self.dev.references[i][0].document for i in unit], distance=1)
            for batch, history, live in self._steps(self.dev, unit):
                live_contents = [contents[i] for i in live]
                log_p = {"cache": self.log_probs(batch, live_contents)}
                if partners is not None:
                    # it has as many sentences behind it, or ended a little earlier
                    log_p[OTHER_DOCUMENT] = self.log_probs(
                        batch, [contents[partners[i]] for i in live]
                    )
                hiddens = batch.hiddens[batch.real]
                if log_p["cache"] is not None:
                    log_p["plain"] = gold_log_probs(
                        self.documents.backbone, batch, hiddens, batch.real
                    )
                for name, log_probs in log_p.items():
                    if log_probs is not None:
                        totals[name] -= float(log_probs.sum())
                        tokens[name] += len(log_probs)
                self.documents.write(history, live_contents)
        losses = {name: totals[name] / tokens[name] for name in totals if tokens[name]}
        return losses | {"criterion": losses["cache"]}

    def log_probs(self, batch: ForcedBatch, contents: list[CacheContents]) -> Tensor | None:
        """log p of every reference word with the cache (n,); None where all caches are empty."""
        remembered = self.documents.remembered(batch, contents)
        if remembered is None:
            return None
        return remembered.mixed(
            gold_log_probs(self.documents.backbone, batch, remembered.hiddens, batch.real)
        )
