"""What a Transformer or a student keeps of a batch: the encoded sources, what its decoder knows of
the words before, and the real positions beside padding.

    d: hidden size    H: heads    k: d / H    B, R: rows    S: source length
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tmnmt.compiled.kernels import Sources, Spans
from tmnmt.models.base import stacked

CAPACITY = 32  # positions of the self-attention's cache to begin with; it doubles when it is full
MOSTLY = 0.9  # of a batch's positions: where so many are real, padding costs little


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
    def source(self) -> Sources:
        """The same for a compiled step. Raises ValueError where keys and values are not laid out
        alike, in the CPU's memory."""
        keys, values = ([t.float() for t in part] for part in (self.keys, self.values))
        return Sources(keys, values, self.mask.sum(1))

    def rows(self, index: Tensor) -> EncodedSource:
        """These rows, in their order.

        index: (R,) int64, the numbers of the rows."""
        keys, values = (
            tuple(t.index_select(0, index) for t in part) for part in (self.keys, self.values)
        )
        return EncodedSource(keys, values, self.mask.index_select(0, index))

    def cut(self, length: int) -> EncodedSource:
        """The beginning of every source.

        length: how many positions stay."""
        keys, values = (tuple(t[:, :, :length] for t in part) for part in (self.keys, self.values))
        return EncodedSource(keys, values, self.mask[:, :length])

    def concat(self, batches: Sequence[EncodedSource]) -> EncodedSource:
        """These rows, then those of other batches.

        batches: the other batches."""
        encoded = [self, *batches]
        keys, values = (
            tuple(stacked(parts, 2) for parts in zip(*side, strict=True))
            for side in ([batch.keys for batch in encoded], [batch.values for batch in encoded])
        )
        return EncodedSource(keys, values, stacked([batch.mask for batch in encoded]))


class Occupancy:
    """How many positions of memory that states share are written."""

    def __init__(self, positions: int) -> None:
        self.positions = positions

    def claim(self, length: int) -> bool:
        """Whether a position was free. It is not any more then.

        length: how many positions stand before it."""
        is_free = self.positions == length
        self.positions += is_free
        return is_free


@dataclass(frozen=True)
class DecoderState:
    """What the decoder's self-attention has seen: keys and values of `length` positions in every
    layer. States share memory, and none writes where another one reads."""

    kv_cache: Tensor  # (capacity, layers, B, 2 d): keys, then values
    length: int
    occupancy: Occupancy

    @classmethod
    def empty(cls, kv_cache: Tensor) -> DecoderState:
        """A state that has seen nothing.

        kv_cache: (capacity, layers, B, 2d), the memory for what it will see."""
        return cls(kv_cache, 0, Occupancy(0))

    def rows(self, index: Tensor) -> DecoderState:
        """These rows, in their order.

        index: (R,) int64, the numbers of the rows."""
        capacity, layers, _, numbers = self.kv_cache.shape
        kv_cache = self.kv_cache.new_empty(capacity, layers, index.shape[0], numbers)
        torch.index_select(self.kv_cache[: self.length], 2, index, out=kv_cache[: self.length])
        return DecoderState(kv_cache, self.length, Occupancy(self.length))

    def roomy(self) -> DecoderState:
        """The same with room for one more position."""
        if self.length < self.kv_cache.shape[0] and self.occupancy.claim(self.length):
            return self
        return DecoderState(
            with_room(self.kv_cache, self.length), self.length, Occupancy(self.length + 1)
        )

    def longer(self) -> DecoderState:
        """The state behind one more position."""
        return DecoderState(self.kv_cache, self.length + 1, self.occupancy)


@dataclass(frozen=True)
class SeenState:
    """What the decoder's self-attention has seen: keys and values of `length` positions in every
    layer. Where rows are put in another order, numbers of rows move, and nothing of what they saw.
    States share memory, and none writes where another one reads."""

    kv_cache: Tensor  # (capacity, layers, room, 2 d) fp32: keys, then values
    origin: Tensor  # (capacity, R) int64: which of the room's rows a row saw at a position
    length: int
    occupancy: Occupancy

    @classmethod
    def empty(cls, rows: int, layers: int, d: int) -> SeenState:
        """A state that has seen nothing.

        rows: how many rows it has.
        layers: how many layers the decoder has.
        d: the hidden size."""
        kv_cache = torch.empty(CAPACITY, layers, rows, 2 * d)
        return cls(kv_cache, torch.empty(CAPACITY, rows, dtype=torch.int64), 0, Occupancy(0))

    def rows(self, index: Tensor) -> SeenState:
        """These rows, in their order.

        index: (R',) int64, the numbers of the rows."""
        origin = self.origin.new_empty(self.origin.shape[0], index.shape[0])
        torch.index_select(self.origin[: self.length], 1, index, out=origin[: self.length])
        state = SeenState(self.kv_cache, origin, self.length, self.occupancy)
        return state if index.shape[0] <= self.kv_cache.shape[2] else state._separate()

    def _separate(self) -> SeenState:
        """With room of its own for every row."""
        capacity, layers, _, numbers = self.kv_cache.shape
        rows = self.origin.shape[1]
        kv_cache = self.kv_cache.new_empty(capacity, layers, rows, numbers)
        for position in range(self.length):
            torch.index_select(
                self.kv_cache[position], 1, self.origin[position], out=kv_cache[position]
            )
        origin = torch.arange(rows).repeat(capacity, 1)
        return SeenState(kv_cache, origin, self.length, Occupancy(self.length))

    def roomy(self) -> SeenState:
        """With room for one more position."""
        if self.length < self.kv_cache.shape[0] and self.occupancy.claim(self.length):
            return self
        kv_cache, origin = (with_room(x, self.length) for x in (self.kv_cache, self.origin))
        return SeenState(kv_cache, origin, self.length, Occupancy(self.length + 1))

    def longer(self) -> SeenState:
        """The state behind one more position."""
        return SeenState(self.kv_cache, self.origin, self.length + 1, self.occupancy)


@dataclass(frozen=True)
class CellState:
    """The cells of a student's decoder after `length` words."""

    cells: Tensor  # (layers, R, d)
    length: int

    def rows(self, index: Tensor) -> CellState:
        """These rows, in their order.

        index: (R',) int64, the numbers of the rows."""
        return CellState(self.cells.index_select(1, index), self.length)

    def roomy(self) -> CellState:
        """The same in memory of its own, where the next word may be put."""
        return CellState(self.cells.clone(), self.length)

    def longer(self) -> CellState:
        """The state behind one more word, which stands in these cells."""
        return CellState(self.cells, self.length + 1)


def with_room(x: Tensor, length: int) -> Tensor:
    """Memory of its own with the first positions of another one, and room for more.

    x: (positions, ...), the other memory.
    length: how many positions are taken over."""
    capacity = x.shape[0] if length < x.shape[0] else 2 * x.shape[0]
    memory = x.new_empty(capacity, *x.shape[1:])
    memory[:length] = x[:length]
    return memory


def bias_of(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """0 on real positions, -inf on padding: (B, 1, 1, S).

    mask: (B, S) bool, True on real positions.
    dtype: the type of the result."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, -torch.inf)[:, None, None]


class Padded:
    """Positions of sentences (B, S, ...) as they are."""

    def unpad(self, x: Tensor) -> Tensor:
        """Positions as they are.

        x: (B, S, ...), the positions."""
        return x

    def pad(self, x: Tensor) -> Tensor:
        """Positions as they are.

        x: (B, S, ...), the positions."""
        return x

    def spans(self, mask: Tensor) -> Spans:
        """Where the real positions stand.

        mask: (B, S) bool, True on real positions."""
        return Spans.of_rows(mask.shape[0], mask.shape[1], mask.sum(1))


@dataclass(frozen=True)
class Unpadded:
    """The real positions of all sentences side by side, (M, ...): products are made of them
    alone."""

    real: Tensor  # (M,) int64: which of the B S positions
    sentences: int  # B
    length: int  # S

    @classmethod
    def where_it_pays(cls, mask: Tensor) -> Padded | Unpadded:
        """How the positions of a batch are laid out; where few of them are padding, they stay as
        they are.

        mask: (B, S) bool, True on real positions."""
        real = mask.flatten().nonzero()[:, 0]
        if len(real) > MOSTLY * mask.numel():
            return PADDED
        return cls(real, *mask.shape)

    def unpad(self, x: Tensor) -> Tensor:
        """The real positions alone, (M, ...).

        x: (B, S, ...), all positions."""
        return x.flatten(0, 1).index_select(0, self.real)

    def pad(self, x: Tensor) -> Tensor:
        """All positions, (B, S, ...), 0 on padding.

        x: (M, ...), the real positions."""
        padded = x.new_zeros(self.sentences * self.length, *x.shape[1:])
        return padded.index_copy_(0, self.real, x).view(self.sentences, self.length, *x.shape[1:])

    def spans(self, mask: Tensor) -> Spans:
        """Where the real positions stand.

        mask: (B, S) bool, True on real positions."""
        return Spans.of_lengths(mask.sum(1), self.length)


PADDED = Padded()
