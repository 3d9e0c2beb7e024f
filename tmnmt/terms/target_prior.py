"""Says how likely words are behind others where no source is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from tmnmt.models.base import Backbone
from tmnmt.vocab import BOS, EOS

Ids = tuple[int, ...]
CACHE_SIZE = 1 << 16  # answers, at most


class TargetPrior:
    """A decoder that has read an empty source. It keeps its answers."""

    def __init__(self, backbone: Backbone) -> None:
        """backbone: the model that decodes."""
        self.backbone = backbone
        self._cache = dict[tuple[Ids, Ids], float]()

    def chances(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[float]:
        """The log probabilities, in nats, of the second subwords of every pair behind the first.

        pairs: the subwords that come before, and those that follow."""
        if len(self._cache) > CACHE_SIZE:
            self._cache.clear()
        if new := [pair for pair in dict.fromkeys(pairs) if pair not in self._cache]:
            self._cache |= zip(new, self._read(new), strict=True)
        return [self._cache[pair] for pair in pairs]

    def steps(self, rows: int) -> PriorSteps:
        """The decoder at the beginning of some rows, which goes on with what is written in them.

        rows: how many."""
        prev = torch.full((rows,), BOS, device=self._device)
        state = self.backbone.start(self._rows_of_empty_source(rows))
        return PriorSteps(self, prev, state)

    @cached_property
    def _device(self) -> torch.device:
        return next(self.backbone.parameters()).device

    @cached_property
    def _empty_source(self) -> Any:
        empty = torch.tensor([[EOS]], device=self._device), torch.tensor([1], device=self._device)
        return self.backbone.encode(*empty)

    def _rows_of_empty_source(self, rows: int) -> Any:
        return self._empty_source.rows(torch.zeros(rows, dtype=torch.long, device=self._device))

    def _read(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[float]:
        """The log probabilities of new pairs. All that begin alike go together."""
        log_probs = defaultdict[Ids, dict[int, float]](
            dict
        )  # log p of what may follow some subwords
        for first, second in pairs:
            for position, token in enumerate(second):
                log_probs[*first, *second[:position]][token] = 0.0
        prefixes = {ids[:size] for ids in log_probs for size in range(len(ids) + 1)}
        levels = [sorted(level) for _, level in groupby(sorted(prefixes, key=len), key=len)]
        state, parents = self.backbone.start(self._empty_source), dict[Ids, int]({(): 0})
        for level in levels:
            rows = [parents[ids[:-1]] for ids in level]
            state = self.backbone.reordered(state, torch.tensor(rows, device=self._device))
            state = self._step(state, level, log_probs)
            parents = {ids: row for row, ids in enumerate(level)}
        return [
            sum(
                log_probs[*first, *second[:position]][token]
                for position, token in enumerate(second)
            )
            for first, second in pairs
        ]

    def step(self, prev: Tensor, state: Any) -> tuple[Any, Tensor, Tensor]:
        """A step of some rows, as `Backbone.step` gives it.

        prev: (R,) the subwords that were written last.
        state: the state of R rows."""
        empty_source = self._empty_source
        if not self.backbone.shares_encoded:
            empty_source = self._rows_of_empty_source(len(prev))
        return self.backbone.step(prev, state, empty_source)

    def _step(
        self, state: Any, level: Sequence[Ids], log_probs: dict[Ids, dict[int, float]]
    ) -> Any:
        """The state behind all pairs of one length. What is asked about them is answered on the
        way."""
        backbone, device = self.backbone, self._device
        prev = torch.tensor([ids[-1] if ids else BOS for ids in level], device=device)
        state, context, hidden = self.step(prev, state)
        rows = [row for row, ids in enumerate(level) if ids in log_probs]
        says = backbone.readout(prev[rows], hidden[rows], context[rows]).float().log_softmax(-1)
        for row, row_log_probs in zip(rows, says, strict=True):
            tokens = log_probs[level[row]]
            tokens.update(zip(tokens, row_log_probs[[*tokens]].tolist(), strict=True))
        return state


class PriorSteps:
    """A decoder that has read an empty source and goes along with what another one writes."""

    def __init__(self, prior: TargetPrior, prev: Tensor, state: Any) -> None:
        """prior: the decoder.
        prev: (R,) the subwords that it reads first.
        state: its state before these, of R rows."""
        self._prior, self._prev, self._state = prior, prev, state

    def log_probs(self, rows: Tensor) -> Tensor:
        """Reads the subwords that were written last. Returns log p (N, V) of what may follow.

        rows: (N,) the rows that are asked about."""
        prev, backbone = self._prev, self._prior.backbone
        self._state, context, hidden = self._prior.step(prev, self._state)
        logits = backbone.readout(prev[rows], hidden[rows], context[rows])
        return logits.float().log_softmax(-1)

    def follow(self, rows: Sequence[int], prev: Sequence[int]) -> PriorSteps:
        """Goes on with some of the rows. Returns itself.

        rows: which row each of the next rows was.
        prev: the subword that was written in each."""
        index, last = (torch.tensor(values, device=self._prev.device) for values in (rows, prev))
        self._state, self._prev = self._prior.backbone.reordered(self._state, index), last
        return self
