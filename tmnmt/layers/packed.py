"""The pool of nearest positions as compiled code reads it (`tmnmt.compiled.nearest`): what torch
does in twenty operations over all positions is one call a step.

R, N, P, d as in `nearest`; K: positions that a row reads"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tmnmt.compiled import steps
from tmnmt.compiled.tensors import expect
from tmnmt.keys import nibbles
from tmnmt.layers.view import Table
from tmnmt.models.int8 import FOUR, PANEL, room_of_product

NEAREST = 8  # K, as `compiled/nearest.py` has it


class Near(NamedTuple):
    """What the rows read at a step; q is 0 of those that are fewer than K."""

    q: Tensor  # (R, K)
    words: Tensor  # (R, K) int64
    first: Tensor  # (R, K) int64: the first of them that holds the same word
    places: Tensor  # (R, K) int64: where they stand among the P
    logit: Tensor  # (R,) of the share; -inf: nothing is near


@dataclass(frozen=True)
class Packed:
    """The positions of N sentences, each sentence's in panels of its own."""

    table: Table
    sentences: int
    positions: int  # P
    size: int  # d

    @classmethod
    def of(cls, codes: Tensor, ids: Tensor, mask: Tensor, numbers: Tensor) -> Packed:
        """codes (N, P, w) uint8, ids and mask (N, P), tau, T and penalty (N, P, 3)."""
        sentences, positions = ids.shape
        size = 2 * codes.shape[-1]
        whole, unit = nibbles.whole_levels()
        given = (
            expect("codes", codes, torch.uint8, (sentences, positions, codes.shape[-1])),
            expect("mask", mask, torch.bool, (sentences, positions)),
            expect("numbers", numbers, torch.float32, (sentences, positions, 3)),
            expect("words", ids, torch.int64, (sentences, positions)),
            whole,
        )
        counts = mask.sum(1)
        ends = ((counts + (PANEL - 1)) // PANEL * PANEL).cumsum(0)
        starts = torch.cat([ends.new_zeros(1), ends])
        every, stride = int(starts[-1]), -(-size // FOUR) * FOUR
        table = Table.of(
            (size, positions),
            (
                starts,
                counts,
                torch.zeros(every * stride, dtype=torch.int8),
                torch.zeros(every, dtype=torch.int32),
                torch.zeros(every),
                torch.zeros(int(counts.max()) if len(counts) else 0),
                torch.empty(every, 3),
                torch.empty(every, dtype=torch.int64),
                torch.empty(every, dtype=torch.int64),
                nibbles.signs(size),
            ),
        )
        addresses = (array.data_ptr() for array in given)
        steps.pack_nearest(sentences, positions, size, *addresses, unit, table.numbers.data_ptr())
        return cls(table, sentences, positions, size)

    def read(self, hidden: Tensor, sentence: Tensor, coverage: Tensor) -> Near:
        """By states (R, d) of rows of the sentences (R,). What was read is added to coverage (R,
        P), or (R, 0) where nothing is penalised. Raises ValueError for other types and sizes."""
        rows = len(hidden)
        hidden, sentence = nibbles.even(hidden).contiguous(), sentence.contiguous()
        expect("states", hidden, torch.float32, (rows, self.size))
        expect("rows", sentence, torch.int64, (rows,))
        covered = coverage.shape[1] if coverage.dim() == 2 else -1
        expect("coverage", coverage, torch.float32, (rows, self.positions if covered else 0))
        q, logit = torch.empty(rows, NEAREST), torch.empty(rows)
        words, first, places = torch.empty(3, rows, NEAREST, dtype=torch.int64).unbind()
        size = 4 * rows * (self.size + self.positions) + room_of_product(rows, self.size)
        room = torch.empty(size, dtype=torch.uint8)
        steps.read_nearest(
            rows,
            self.table.numbers.data_ptr(),
            hidden.data_ptr(),
            sentence.data_ptr(),
            coverage.data_ptr() if covered else 0,
            *(array.data_ptr() for array in (room, q, words, first, places, logit)),
        )
        return Near(q, words, first, places, logit)
