"""The gates of translation memory and session cache tuned together, everything else fixed.

OURS: each was trained without the other, so both may claim the same word. Documents go in order
with both layers on, as in `training/cache.py`. A sentence's own document is left out where its
pairs are retrieved: at work it is not in the memory while it is translated, but in the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, islice
from random import Random

import torch
from torch import Tensor, nn

from tmnmt.layers.collated import Pairs
from tmnmt.trained_layers.cache import CacheContents, SessionCache
from tmnmt.trained_layers.tm import TranslationMemory
from tmnmt.training.cache import SideBySide, Stretch
from tmnmt.training.memory_data import MemoryData
from tmnmt.training.parts import Part, Unit
from tmnmt.training.retrieve import RetrievedPair
from tmnmt.training.teacher_forcing import ForcedBatch
from tmnmt.training.tm import MODES, PairedSentences, by_speed, fresh_keys, pairs_of, tm_log_probs

WITH_CACHE = " and cache"


class Gates(nn.Module):
    """The gates of both layers alone, as one module."""

    def __init__(self, tm: TranslationMemory, cache: SessionCache) -> None:
        super().__init__()
        self.copy, self.fusion = tm.copy, tm.fusion
        self.U = cache.U
        self.V = cache.V
        self.W = cache.W
        self.signs = cache.signs
        self.empty = cache.empty


class PairedStretches:
    """Stretches of documents, and the pairs of all their sentences one after the other."""

    def __init__(self, stretches: Sequence[Stretch], pairs: PairedSentences) -> None:
        self.stretches, self.pairs = stretches, pairs
        self._begin = [0, *accumulate(map(len, stretches))]
        self.drawn = lru_cache(maxsize=2)(self._draw)

    def numbers(self, stretches: Sequence[int], step: int) -> list[int]:
        """The numbers of the sentences that stand at `step` in these stretches."""
        return [self._begin[i] + step for i in stretches]

    def _draw(self, time: int) -> dict[int, list[RetrievedPair]]:
        """What is shown; nothing, as at work, where nothing was found."""
        sample = self.pairs.draw(time)
        entries = zip(sample.sentences, sample.pairs, strict=True)
        return {i: pairs if self.pairs.candidates[i] else [] for i, pairs in entries}


def gates_part(tm: TranslationMemory, documents: SideBySide, data: MemoryData) -> GatesPart:
    """The part that goes on with the gates of both, as [memory] says."""
    config = data.config
    limit = min(config.cache_pairs, config.tune_gates * config.documents_together)
    train, dev = (
        _paired(data, name, stretches)
        for name, stretches in zip(("gates", "gates-dev"), data.stretches(limit), strict=True)
    )
    return GatesPart(tm, documents, train, dev, config.tune_gates, config.seed)


def _paired(data: MemoryData, name: str, stretches: Sequence[Stretch]) -> PairedStretches:
    segments = [segment for stretch in stretches for segment in stretch]
    return PairedStretches(stretches, data.all_paired(name, segments))


class GatesPart(Part):
    """`updates` updates of the gates; a unit is a group of stretches, which is gone through as
    often as it takes.

    There are fewer where all the sentences of a step are without pairs and with an empty cache: no
    gate is asked."""

    name = "gates"

    def __init__(
        self,
        tm: TranslationMemory,
        documents: SideBySide,
        train: PairedStretches,
        dev: PairedStretches,
        updates: int,
        seed: int,
    ) -> None:
        for memory in (tm, documents.cache):
            memory.requires_grad_(False)
        self.module = Gates(tm, documents.cache).requires_grad_(True)
        self.tm = tm
        self.documents = documents
        self.train, self.dev, self.updates, self.seed = train, dev, updates, seed
        self.keys = fresh_keys(
            documents.backbone, documents.vocab, train.pairs.max_subwords, documents.device
        )

    def groups(self, learning_rate: float) -> list[dict[str, object]]:
        return by_speed(self.module, self.tm.trusts, learning_rate)

    def units(self, epoch: int) -> Sequence[Unit]:
        """Each is the number of the time that all are gone through, how many updates it has, and
        the stretches."""
        units: list[Unit] = []
        remaining, time = self.updates, 0
        while remaining:
            random = Random(f"{self.seed} {epoch} {time}")
            groups = self.documents.grouped(self.train.stretches, random)
            random.shuffle(groups)
            for group in groups:
                updates = min(remaining, max(len(self.train.stretches[i]) for i in group))
                remaining -= updates
                if updates:
                    units.append([time, updates, *group])
            time += 1
        return units

    def losses(self, unit: Unit) -> Iterator[tuple[Tensor, int]]:
        time, updates, *group = unit
        pairs = self.train.drawn(time)
        for batch, numbers, contents in islice(self._steps(self.train, group), updates):
            log_probs = self._log_probs(
                batch, pairs_of(self.keys, [pairs[i] for i in numbers]), contents
            )
            loss = -torch.stack(
                [log_probs[mode].sum() for mode in MODES if mode in log_probs]
            ).sum()
            if loss.requires_grad:
                yield loss, len(log_probs["plain"])

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Over the dev sentences in their documents: the plain model, each memory alone, and both.
        The criterion is of both, and weighs the kinds of pairs as training does."""
        totals: dict[str, float] = {}
        tokens = 0
        foreign, noise = Random("dev"), Random("dev noise")
        for group in self.documents.grouped(self.dev.stretches, Random("dev")):
            for batch, numbers, contents in self._steps(self.dev, group):
                for name, log_p in self._on_dev(batch, numbers, contents, foreign, noise):
                    totals[name] = totals.get(name, 0.0) - float(log_p.sum())
                tokens += int(batch.real.sum())
        losses = {name: total / tokens for name, total in totals.items()}
        weights, modes = self.train.pairs.weights(), [mode for mode in MODES if mode in losses]
        terms = (
            weight * losses[mode + WITH_CACHE + kind]
            for mode in modes
            for kind, weight in weights.items()
        )
        return losses | {"criterion": sum(terms)}

    def _on_dev(
        self,
        batch: ForcedBatch,
        numbers: Sequence[int],
        contents: list[CacheContents],
        foreign: Random,
        noise: Random,
    ) -> Iterator[tuple[str, Tensor]]:
        for kind, pairs in self.dev.pairs.shown_on_dev(numbers, foreign, noise).items():
            collated = pairs_of(self.keys, pairs)
            log_probs = self._log_probs(batch, collated, contents)
            if not kind:
                yield "cache", log_probs["plain"]
                yield from self._log_probs(batch, collated, []).items()
            yield from (
                (name + WITH_CACHE + kind, log_p)
                for name, log_p in log_probs.items()
                if name != "plain"
            )

    def _steps(
        self, data: PairedStretches, group: Sequence[int]
    ) -> Iterator[tuple[ForcedBatch, list[int], list[CacheContents]]]:
        """Step by step the references of the sentences, their numbers, and the caches that they
        find."""
        stretches = [data.stretches[i] for i in group]
        contents = [self.documents.empty() for _ in group]
        for step, (batch, live) in enumerate(self.documents.steps(stretches)):
            live_contents = [contents[i] for i in live]
            yield batch, data.numbers([group[i] for i in live], step), live_contents
            self.documents.write(batch, live_contents)

    def _log_probs(
        self, batch: ForcedBatch, pairs: Pairs | None, contents: list[CacheContents]
    ) -> dict[str, Tensor]:
        """log p of every reference word; "plain": without pairs. No contents: without the cache."""
        remembered = self.documents.remembered(batch, contents)
        return tm_log_probs(self.tm, self.documents.backbone, batch, pairs, remembered)
