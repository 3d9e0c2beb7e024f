"""What a Transformer or a student keeps of a batch: the encoded sources, what its decoder knows of
the words before, and the real positions beside padding.

    d: hidden size    H: heads    k: d / H    B, R: rows    S: source length
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from tmnmt.models.base import stacked

CAPACITY = 32  # positions of the self-attention's cache to begin with; it doubles when it is full
MOSTLY = 0.9  # of a batch's positions: where so many are real, padding costs little


class Source(NamedTuple):
    """What the cross-attention of every layer reads, in fp32."""

    keys: Sequence[Tensor]  # each (B, H, S, k)
    values: Sequence[Tensor]  # each (B, H, S, k), laid out alike
    lengths: Tensor  # (B,) int64
    addresses: Tensor  # (layers, 2) int64, of the keys and of the values


@dataclass(frozen=True)
class EncodedSource:
    """An encoded batch of sources: for every decoder layer what its cross-attention reads."""

    keys: tuple[Tensor, ...]  # each (B, H, S, k)
    values: tuple[Tensor, ...]  # each (B, H, S, k)
    mask: Tensor  # (B, S) bool, True on real positions

    @cached_property
    def bias(self) -> Tensor:
        """0 on real positions, -inf on padding: (B, 1, 1, S)."""
        return bias_of(self.mask, self.keys[0].dtype)

    @cached_property
    def source(self) -> Source:
        """The same for a compiled step. Raises ValueError where keys and values are not laid out
        alike, in the CPU's memory: compiled code takes that for granted."""
        keys, values = ([t.float() for t in part] for part in (self.keys, self.values))
        for each in (*keys, *values):
            alike = each.stride() == keys[0].stride() and each.shape == keys[0].shape
            if not alike or each.stride(-1) != 1 or not each.is_cpu:
                raise ValueError("keys and values are not laid out alike on the CPU")
        both = [[k.data_ptr(), v.data_ptr()] for k, v in zip(keys, values, strict=True)]
        return Source(keys, values, self.mask.sum(1), torch.tensor(both))

    def rows(self, index: Tensor) -> EncodedSource:
        """The rows `index` (R,), in that order."""
        keys, values = (
            tuple(t.index_select(0, index) for t in part) for part in (self.keys, self.values)
        )
        return EncodedSource(keys, values, self.mask.index_select(0, index))

    def cut(self, length: int) -> EncodedSource:
        """The first `length` positions."""
        keys, values = (tuple(t[:, :, :length] for t in part) for part in (self.keys, self.values))
        return EncodedSource(keys, values, self.mask[:, :length])

    def beside(self, others: Sequence[EncodedSource]) -> EncodedSource:
        """These rows, then those of `others`."""
        every = [self, *others]
        keys, values = (
            tuple(stacked(parts, 2) for parts in zip(*side, strict=True))
            for side in ([one.keys for one in every], [one.values for one in every])
        )
        return EncodedSource(keys, values, stacked([one.mask for one in every]))


@dataclass(frozen=True)
class DecoderState:
    """What the decoder's self-attention has seen: keys and values of `length` positions in every
    layer.

    `step` and `rows` write into the room of the state they are given: it is used up by them."""

    seen: Tensor  # (capacity, layers, B, 2 d): keys, then values
    spare: Tensor  # of the same shape: where the next rows are put
    length: int

    def rows(self, index: Tensor) -> DecoderState:
        """The rows `index` (R,), in that order."""
        room = self.spare
        if len(index) != room.shape[2]:
            room = room.new_empty(*room.shape[:2], len(index), room.shape[3])
        torch.index_select(self.seen[: self.length], 2, index, out=room[: self.length])
        spare = self.seen if self.seen.shape == room.shape else torch.empty_like(room)
        return DecoderState(room, spare, self.length)

    def roomy(self) -> DecoderState:
        """The same with room for one more position."""
        if self.length < len(self.seen):
            return self
        seen = torch.cat([self.seen, torch.empty_like(self.seen)])
        return DecoderState(seen, torch.empty_like(seen), self.length)


@dataclass(frozen=True)
class SeenState:
    """What the decoder's self-attention has seen: keys and values of `length` positions in every
    layer. Where rows are put in another order, numbers of rows move, and nothing of what they saw.

    `step` writes into the state it is given: it is used up."""

    seen: Tensor  # (capacity, layers, room, 2 d) fp32: keys, then values
    origin: Tensor  # (capacity, R) int64: which of the room's rows a row saw at a position
    length: int

    @classmethod
    def empty(cls, rows: int, layers: int, d: int) -> SeenState:
        seen = torch.empty(CAPACITY, layers, rows, 2 * d)
        return cls(seen, torch.empty(CAPACITY, rows, dtype=torch.int64), 0)

    def rows(self, index: Tensor) -> SeenState:
        """The rows `index` (R',), in that order."""
        origin = self.origin.new_empty(len(self.origin), len(index))
        torch.index_select(self.origin[: self.length], 1, index, out=origin[: self.length])
        moved = SeenState(self.seen, origin, self.length)
        return moved if len(index) <= self.seen.shape[2] else moved._apart()

    def _apart(self) -> SeenState:
        """With room of its own for every row."""
        capacity, layers, _, numbers = self.seen.shape
        rows = self.origin.shape[1]
        seen = self.seen.new_empty(capacity, layers, rows, numbers)
        for at in range(self.length):
            torch.index_select(self.seen[at], 1, self.origin[at], out=seen[at])
        return SeenState(seen, torch.arange(rows).repeat(capacity, 1), self.length)

    def roomy(self) -> SeenState:
        """With room for one more position."""
        if self.length < len(self.seen):
            return self
        seen, origin = (torch.cat([x, torch.empty_like(x)]) for x in (self.seen, self.origin))
        return SeenState(seen, origin, self.length)


@dataclass(frozen=True)
class CellState:
    """The cells of a student's decoder after `length` words. Neither `step` nor `rows` changes
    it."""

    cells: Tensor  # (layers, R, d)
    length: int

    def rows(self, index: Tensor) -> CellState:
        """The rows `index` (R',), in that order."""
        return CellState(self.cells.index_select(1, index), self.length)

    def roomy(self) -> CellState:
        """The same in memory of its own, where the next word may be put."""
        return CellState(self.cells.clone(), self.length)


def bias_of(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """0 on real positions, -inf on padding: (B, 1, 1, S)."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, -torch.inf)[:, None, None]


class Padded:
    """Positions of sentences (B, S, ...) as they are."""

    def away(self, x: Tensor) -> Tensor:
        return x

    def back(self, x: Tensor) -> Tensor:
        return x


@dataclass(frozen=True)
class Unpadded:
    """The real positions of all sentences side by side, (M, ...): products are made of them
    alone."""

    real: Tensor  # (M,) int64: which of the B S positions
    sentences: int  # B
    length: int  # S

    @classmethod
    def where_it_pays(cls, mask: Tensor) -> Padded | Unpadded:
        """Of a mask (B, S); where few of them are padding, positions stay as they are."""
        real = mask.flatten().nonzero()[:, 0]
        if len(real) > MOSTLY * mask.numel():
            return PADDED
        return cls(real, *mask.shape)

    def away(self, x: Tensor) -> Tensor:
        """(B, S, ...) -> (M, ...)"""
        return x.flatten(0, 1).index_select(0, self.real)

    def back(self, x: Tensor) -> Tensor:
        """(M, ...) -> (B, S, ...), 0 on padding."""
        every = x.new_zeros(self.sentences * self.length, *x.shape[1:])
        return every.index_copy_(0, self.real, x).view(self.sentences, self.length, *x.shape[1:])


PADDED = Padded()
