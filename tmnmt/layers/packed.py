"""Nearest positions as compiled code reads them (`tmnmt.compiled.nearest`): what torch does in
twenty operations over all positions is one call a step.

R, N, P, d as in `nearest`; w: bytes of a direction; K: positions that a row reads"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tmnmt.compiled.kernels import PANEL, NearestArena, read_nearest, table_of_blocks
from tmnmt.keys import nibbles

ROOM = 8 * PANEL  # positions of a session's first panels


class PoolReading(NamedTuple):
    """What the rows read at a step; q is 0 of those that are fewer than K."""

    q: Tensor  # (R, K)
    words: Tensor  # (R, K) int64
    first: Tensor  # (R, K) int64: the first of them that holds the same word
    places: Tensor  # (R, K) int64: where they stand among the P
    logit: Tensor  # (R,) of the share; -inf: nothing is near


class Stretch(NamedTuple):
    """Positions in panels, from `first` to `end`: nothing of them changes any more."""

    arena: NearestArena
    first: int
    end: int
    has_places: bool


class Panels:
    """Positions as compiled code multiplies them; they are only added to, and the oldest go."""

    def __init__(self, size: int, room: int = ROOM, has_places: bool = False) -> None:
        """size: numbers d of a state, even. has_places: positions that a mask leaves out are left
        out of the panels, too, so that each notes its place."""
        self.has_places = has_places
        self.first = self.end = 0
        self._arena = NearestArena(size, room)

    def add(self, codes: Tensor, ids: Tensor, mask: Tensor | None = None) -> None:
        """Directions (n, w) and their words (n,); mask (n,): those that are positions. Raises
        ValueError for other types and sizes."""
        count = ids.shape[0]
        if self.end + count > self._arena.room:
            self._make_room(count)
        if mask is None:
            mask = torch.ones(count, dtype=torch.bool)
        given = codes.contiguous(), ids.contiguous(), mask.contiguous()
        self._arena.add(self.end, *given, *nibbles.whole_levels())
        self.end += count if not self.has_places else int(mask.sum())

    def keep_newest(self, count: int) -> None:
        """Leaves out all but so many."""
        self.first = max(self.first, self.end - count)

    @property
    def stretch(self) -> Stretch:
        """What is there now."""
        return Stretch(self._arena, self.first, self.end, self.has_places)

    def _make_room(self, count: int) -> None:
        """Takes what is kept to a new place that has room for so many more, and as many again."""
        begin = self.first // PANEL * PANEL
        former = self._arena
        self._arena = NearestArena(former.size, 2 * (self.end - begin + count))
        self._arena.take_over(former, begin, self.end)
        self.first, self.end = self.first - begin, self.end - begin


@dataclass(frozen=True)
class Packed:
    """The positions of N sentences, each in at most BLOCKS stretches."""

    blocks: Tensor  # a table of them
    kept: tuple[object, ...]  # what stands at the addresses in it
    positions: int  # P
    most: int  # that are multiplied of a sentence
    size: int  # d
    bias: Tensor  # zeros

    @classmethod
    def build(cls, sources: Sequence[tuple[Sequence[Stretch | None], Tensor]]) -> Packed:
        """sources: of every sentence the positions, None where it has none, and tau, T and penalty
        (N, P, 3) of every place, source after source."""
        sentences = len(sources[0][0])
        rows = [[tuple[int, ...]() for _ in sources] for _ in range(sentences)]
        base, size, multiplied = 0, 0, [0] * sentences
        for number, (stretches, numbers) in enumerate(sources):
            for sentence, stretch in enumerate(stretches):
                if stretch is not None and stretch.end > stretch.first:
                    arena, first, end, has_places = stretch
                    own = numbers[sentence]
                    rows[sentence][number] = arena.block(first, end, has_places, own, base)
                    multiplied[sentence] += stretch.end - stretch.first // PANEL * PANEL
                    size = arena.size
            base += numbers.shape[1]
        most = max(multiplied)
        return cls(table_of_blocks(rows), tuple(sources), base, most, size, torch.zeros(most))

    def read(self, hidden: Tensor, sentence: Tensor, coverage: Tensor) -> PoolReading:
        """By states (R, d) of rows of the sentences (R,). What was read is added to coverage (R,
        P), or (R, 0) where nothing is penalised. Raises ValueError for other types and sizes."""
        hidden, sentence = nibbles.even(hidden).contiguous(), sentence.contiguous()
        signs = nibbles.signs(self.size)
        read = read_nearest(
            self.blocks, self.positions, self.most, signs, self.bias, hidden, sentence, coverage
        )
        return PoolReading(*read)
