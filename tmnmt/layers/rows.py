"""Rows of a beam read the keys of their sentence: one product a sentence, never a copy of its keys
a row."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Rows:
    """Where every row stands when the rows of a sentence are laid side by side: a place in (N,
    width)."""

    place: Tensor | None  # (R,) int64, sentence * width + slot; None: row r stands at place r
    sentences: int  # N
    width: int  # the most rows any sentence has

    @classmethod
    def of(cls, sentence: Tensor, sentences: int) -> Rows:
        """`sentence` (R,) in any order; a sentence may have no row at all."""
        if sentences == 1:
            return cls(None, 1, len(sentence))
        counts = torch.bincount(sentence, minlength=sentences)
        width = int(counts.max())
        ordered, order = sentence.sort(stable=True)
        number = torch.arange(len(sentence), device=sentence.device)
        place = torch.empty_like(sentence)
        place[order] = ordered * width + number - (counts.cumsum(0) - counts)[ordered]
        full = len(sentence) == sentences * width and torch.equal(place, number)
        return cls(None if full else place, sentences, width)

    def dot(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Inner products of every row's query (R, l) with its sentence's keys (N, P, l): (R, P)."""
        return self._gather(torch.bmm(self._spread(queries), keys.transpose(1, 2)))

    def blend(self, weights: Tensor, values: Tensor) -> Tensor:
        """Sums of the sentence's values (N, P, d) by every row's weights (R, P): (R, d)."""
        return self._gather(torch.bmm(self._spread(weights), values))

    def _spread(self, rows: Tensor) -> Tensor:
        if self.place is not None:
            rows = rows.new_zeros(self.sentences * self.width, rows.shape[1]).index_copy(
                0, self.place, rows
            )
        return rows.view(self.sentences, self.width, rows.shape[1])

    def _gather(self, side_by_side: Tensor) -> Tensor:
        rows = side_by_side.flatten(0, 1)
        return rows if self.place is None else rows.index_select(0, self.place)
