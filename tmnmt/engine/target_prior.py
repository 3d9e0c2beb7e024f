"""How likely words are behind others where no source is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

import torch

from tmnmt.models.base import Backbone
from tmnmt.vocab import BOS, EOS

Ids = tuple[int, ...]
KEPT = 1 << 16  # answers, at most


class TargetPrior:
    """A decoder that has read an empty source. What it was asked for is kept."""

    def __init__(self, backbone: Backbone) -> None:
        self._backbone = backbone
        self._known = dict[tuple[Ids, Ids], float]()

    def chances(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[float]:
        """log p of the second subwords of every pair behind the first."""
        if len(self._known) > KEPT:
            self._known.clear()
        if new := [one for one in dict.fromkeys(pairs) if one not in self._known]:
            self._known |= zip(new, self._read(new), strict=True)
        return [self._known[one] for one in pairs]

    @cached_property
    def _device(self) -> torch.device:
        return next(self._backbone.parameters()).device

    @cached_property
    def _nothing(self) -> Any:
        empty = torch.tensor([[EOS]], device=self._device), torch.tensor([1], device=self._device)
        return self._backbone.encode(*empty)

    def _read(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[float]:
        """All that begin alike go together."""
        asked = defaultdict[Ids, dict[int, float]](dict)  # log p of what may follow some subwords
        for first, second in pairs:
            for at, token in enumerate(second):
                asked[*first, *second[:at]][token] = 0.0
        begun = {ids[:size] for ids in asked for size in range(len(ids) + 1)}
        levels = [sorted(level) for _, level in groupby(sorted(begun, key=len), key=len)]
        state, parents = self._backbone.start(self._nothing), dict[Ids, int]({(): 0})
        for level in levels:
            rows = [parents[ids[:-1]] for ids in level]
            state = self._backbone.reordered(state, torch.tensor(rows, device=self._device))
            state = self._step(state, level, asked)
            parents = {ids: row for row, ids in enumerate(level)}
        return [
            sum(asked[*first, *second[:at]][token] for at, token in enumerate(second))
            for first, second in pairs
        ]

    def _step(self, state: Any, level: Sequence[Ids], asked: dict[Ids, dict[int, float]]) -> Any:
        """The state behind all of one length; what is asked of them is answered."""
        backbone, device = self._backbone, self._device
        prev = torch.tensor([ids[-1] if ids else BOS for ids in level], device=device)
        nothing = self._nothing
        if not backbone.shares_encoded:
            nothing = nothing.rows(torch.zeros_like(prev))
        state, context, hidden = backbone.step(prev, state, nothing)
        at = [row for row, ids in enumerate(level) if ids in asked]
        says = backbone.readout(prev[at], hidden[at], context[at]).float().log_softmax(-1)
        for row, own in zip(at, says, strict=True):
            tokens = asked[level[row]]
            tokens.update(zip(tokens, own[[*tokens]].tolist(), strict=True))
        return state
