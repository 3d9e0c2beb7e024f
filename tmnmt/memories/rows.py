"""Rows of a beam read the keys of their sentence: one product a sentence, never a copy of its keys a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from tmnmt.memories.base import CacheState, MemoryState, TMState

State = TypeVar("State", TMState, CacheState)


@dataclass(frozen=True)
class Rows:
    """Where every row stands when the rows of a sentence are laid side by side: (sentence, slot) in (N, width)."""

    sentence: Tensor  # (R,) int64
    slot: Tensor  # (R,) int64
    sentences: int  # N
    width: int  # the most rows any sentence has

    @classmethod
    def of(cls, sentence: Tensor, sentences: int) -> Rows:
        """`sentence` (R,) in any order; a sentence may have no row at all."""
        if sentences == 1:
            return cls(sentence, torch.arange(len(sentence), device=sentence.device), 1, len(sentence))
        counts = torch.bincount(sentence, minlength=sentences)
        ordered, order = sentence.sort(stable=True)
        slot = torch.empty_like(sentence)
        slot[order] = torch.arange(len(sentence), device=sentence.device) - (counts.cumsum(0) - counts)[ordered]
        return cls(sentence, slot, sentences, int(counts.max()))

    def dot(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Inner products of every row's query (R, l) with its sentence's keys (N, P, l): (R, P)."""
        return self._gather(torch.bmm(self._spread(queries), keys.transpose(1, 2)))

    def blend(self, weights: Tensor, values: Tensor) -> Tensor:
        """Sums of the sentence's values (N, P, d) by every row's weights (R, P): (R, d)."""
        return self._gather(torch.bmm(self._spread(weights), values))

    def _spread(self, rows: Tensor) -> Tensor:
        if self.sentences == 1:
            return rows[None]
        side_by_side = rows.new_zeros(self.sentences, self.width, rows.shape[1])
        return side_by_side.index_put((self.sentence, self.slot), rows)

    def _gather(self, side_by_side: Tensor) -> Tensor:
        return side_by_side[0] if self.sentences == 1 else side_by_side[self.sentence, self.slot]


def compact(state: MemoryState) -> MemoryState:
    """The same state without the sentences that no row reads any more, once they are half of the batch.

    Finished sentences leave the beam but their keys would still be multiplied; dropping them every time would
    copy the rest too often."""
    return replace(
        state,
        tm=_compact(state.tm) if state.tm is not None else None,
        cache=_compact(state.cache) if state.cache is not None else None,
    )


def _compact(state: State) -> State:
    if len(state.keys) == 1:
        return state
    read = torch.unique(state.sentence)
    if 2 * len(read) > len(state.keys):
        return state
    shared = ("keys", "values", "mask", "ids", "before", "pair", "position", "marks", "said", "worth", "projected")
    held = {name: getattr(state, name, None) for name in shared}
    kept = {name: value.index_select(0, read) for name, value in held.items() if value is not None}
    return replace(state, **kept, sentence=torch.searchsorted(read, state.sentence))
