"""Nearest positions as compiled code reads them (`tmnmt.compiled.nearest`): what torch does in
twenty operations over all positions is one call a step.

R, N, P, d as in `nearest`; w: bytes of a direction; K: positions that a row reads"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from tmnmt.compiled import steps
from tmnmt.compiled.tensors import expect
from tmnmt.keys import nibbles
from tmnmt.models.int8 import FOUR, PANEL, room_of_product

NEAREST = 8  # K, as `compiled/nearest.py` has it
BLOCKS, OF_BLOCK = 2, 10  # likewise
ROOM = 8 * PANEL  # positions of a session's first panels


class Near(NamedTuple):
    """What the rows read at a step; q is 0 of those that are fewer than K."""

    q: Tensor  # (R, K)
    words: Tensor  # (R, K) int64
    first: Tensor  # (R, K) int64: the first of them that holds the same word
    places: Tensor  # (R, K) int64: where they stand among the P
    logit: Tensor  # (R,) of the share; -inf: nothing is near


class Stretch(NamedTuple):
    """Positions in panels, from `first` to `end`: nothing of them changes any more."""

    arena: Tensor  # uint8: all arrays one behind another, of `room` positions each
    room: int
    size: int  # d
    first: int
    end: int
    has_places: bool

    def block(self, numbers: Tensor, base: int) -> tuple[int, ...]:
        """As compiled code reads it; numbers (P, 3) of every position; base: where the first one
        stands among all positions of the sentence."""
        expect("numbers", numbers[:1], torch.float32, (min(len(numbers), 1), 3))
        begin = self.first // PANEL * PANEL
        panels, begins, scales, words, places = arrays_of(self.arena, self.room, self.size)
        return (
            panels + begin * _stride(self.size),
            begins + 4 * begin,
            scales + 4 * begin,
            words + 8 * begin,
            places if self.has_places else 0,
            numbers.data_ptr(),
            numbers.stride(0),
            self.first - begin,
            self.end - self.first,
            base,
        )


class Panels:
    """Positions as compiled code multiplies them; they are only added to, and the oldest go."""

    def __init__(self, size: int, room: int = ROOM, has_places: bool = False) -> None:
        """size: numbers d of a state, even. has_places: positions that a mask leaves out are left
        out of the panels, too, so that each notes its place."""
        self.size, self.has_places = size, has_places
        self.first = self.end = 0
        self._room = _whole(room)
        self._arena = self._new_arena()

    def add(self, codes: Tensor, ids: Tensor, mask: Tensor | None = None) -> None:
        """Directions (n, w) and their words (n,); mask (n,): those that are positions. Raises
        ValueError for other types and sizes."""
        count = len(ids)
        mask = torch.ones(count, dtype=torch.bool) if mask is None else mask.contiguous()
        codes, ids = codes.contiguous(), ids.contiguous()
        expect("codes", codes, torch.uint8, (count, self.size // 2))
        expect("words", ids, torch.int64, (count,))
        expect("mask", mask, torch.bool, (count,))
        if self.end + count > self._room:
            self._make_room(count)
        whole, unit = nibbles.whole_levels()
        steps.pack_nearest(
            count,
            self.size,
            codes.data_ptr(),
            mask.data_ptr(),
            ids.data_ptr(),
            whole.data_ptr(),
            unit,
            self.end,
            *arrays_of(self._arena, self._room, self.size),
        )
        self.end += count if not self.has_places else int(mask.sum())

    def keep_newest(self, count: int) -> None:
        """Leaves out all but so many."""
        self.first = max(self.first, self.end - count)

    @property
    def stretch(self) -> Stretch:
        """What is there now."""
        return Stretch(self._arena, self._room, self.size, self.first, self.end, self.has_places)

    def _new_arena(self) -> Tensor:
        return torch.empty(self._room * _bytes(self.size), dtype=torch.uint8)

    def _make_room(self, count: int) -> None:
        """Takes what is kept to a new place that has room for so many more, and as many again."""
        begin = self.first // PANEL * PANEL
        former = _parts(self._arena, self._room, self.size)
        living = _whole(self.end - begin)
        self._room = _whole(2 * (self.end - begin + count))
        self._arena = self._new_arena()
        for old, new, width in zip(
            former,
            _parts(self._arena, self._room, self.size),
            _widths(self.size),
            strict=True,
        ):
            new[: living * width] = old[begin * width : (begin + living) * width]
        self.first, self.end = self.first - begin, self.end - begin


@dataclass(frozen=True)
class Packed:
    """The positions of N sentences, each in at most BLOCKS stretches."""

    blocks: Tensor  # (N, BLOCKS, OF_BLOCK) int64
    kept: tuple[object, ...]  # what stands at the addresses in it
    positions: int  # P
    most: int  # that are multiplied of a sentence
    size: int  # d
    bias: Tensor  # zeros

    @classmethod
    def of(cls, sources: Sequence[tuple[Sequence[Stretch | None], Tensor]]) -> Packed:
        """sources: of every sentence the positions, None where it has none, and tau, T and penalty
        (N, P, 3) of every place, source after source."""
        sentences = len(sources[0][0])
        rows = [[list[int]() for _ in range(BLOCKS)] for _ in range(sentences)]
        base, size, multiplied = 0, 0, [0] * sentences
        for block, (stretches, numbers) in enumerate(sources):
            for sentence, stretch in enumerate(stretches):
                if stretch is not None and stretch.end > stretch.first:
                    rows[sentence][block] = [*stretch.block(numbers[sentence], base)]
                    multiplied[sentence] += stretch.end - stretch.first // PANEL * PANEL
                    size = stretch.size
            base += numbers.shape[1]
        nothing = [0] * OF_BLOCK
        table = torch.tensor([[own or nothing for own in row] for row in rows])
        most = max(multiplied)
        return cls(table, tuple(sources), base, most, size, torch.zeros(most))

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
        size = 4 * rows * (self.size + self.most) + 4 * NEAREST + room_of_product(rows, self.size)
        room = torch.empty(size, dtype=torch.uint8)
        steps.read_nearest(
            rows,
            self.blocks.data_ptr(),
            self.size,
            self.positions,
            self.most,
            nibbles.signs(self.size).data_ptr(),
            self.bias.data_ptr(),
            hidden.data_ptr(),
            sentence.data_ptr(),
            coverage.data_ptr() if covered else 0,
            *(array.data_ptr() for array in (room, q, words, first, places, logit)),
        )
        return Near(q, words, first, places, logit)


def _whole(positions: int) -> int:
    """So many, rounded up to whole panels."""
    return -(-positions // PANEL) * PANEL


def _stride(size: int) -> int:
    return -(-size // FOUR) * FOUR


def _widths(size: int) -> tuple[int, ...]:
    """Bytes of a position in each array: weights, what sums begin with, scales, words, places."""
    return _stride(size), 4, 4, 8, 8


def _bytes(size: int) -> int:
    return sum(_widths(size))


def _parts(arena: Tensor, room: int, size: int) -> tuple[Tensor, ...]:
    """The arrays of an arena."""
    ends = [*accumulate(room * width for width in _widths(size))]
    return tuple(arena[begin:end] for begin, end in pairwise([0, *ends]))


def arrays_of(arena: Tensor, room: int, size: int) -> list[int]:
    """Their addresses."""
    addresses, at = [], arena.data_ptr()
    for width in _widths(size):
        addresses.append(at)
        at += room * width
    return addresses
