"""Nearest positions as compiled code reads them (`tmnmt.compiled.nearest`): what torch does in
twenty operations over all positions is one call a step.

R, N, P, d as in `nearest`; w: bytes of a direction, which a byte
follows that says how likely the model found the word; K: positions that a row reads"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tmnmt.compiled.kernels import PANEL, Array, NearestArena, NearestRead, NearestTable
from tmnmt.keys import nibbles

ROOM = 8 * PANEL  # positions of a session's first panels


class Stretch(NamedTuple):
    """Positions in panels, from `first` to `end`: nothing of them changes any more."""

    arena: NearestArena
    first: int
    end: int
    has_places: bool


class Panels:
    """Positions as compiled code multiplies them; they are only added to, and the oldest go."""

    def __init__(self, size: int, room: int = ROOM, has_places: bool = False) -> None:
        """size: how many numbers a state has, d, an even number.
        room: for how many positions there is room at first.
        has_places: whether positions that a mask leaves out are left out of the panels, too, so
        that each notes its place."""
        self.has_places = has_places
        self.first = self.end = 0
        self._arena = NearestArena(size, room)

    def add(self, codes: Tensor, ids: Tensor, mask: Tensor | None = None) -> None:
        """Adds positions.

        codes: (n, w + 1) uint8, their codes.
        ids: (n,) int64, their words.
        mask: (n,) bool, which of them are positions; None where all are.

        Raises ValueError for other types and sizes."""
        count = ids.shape[0]
        if self.end + count > self._arena.room:
            self._make_room(count)
        if mask is None:
            mask = torch.ones(count, dtype=torch.bool)
        given = codes.contiguous(), ids.contiguous(), mask.contiguous()
        self._arena.add(self.end, *given, *nibbles.whole_levels())
        self.end += count if not self.has_places else int(mask.sum())

    def keep_newest(self, count: int) -> None:
        """Leaves out all positions but the newest.

        count: how many stay."""
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

    table: NearestTable
    kept: tuple[object, ...]  # what stands at the addresses in it

    @classmethod
    def build(cls, sources: Sequence[tuple[Sequence[Stretch | None], Tensor]]) -> Packed:
        """sources: of every sentence the positions, None where it has none, and tau, T, penalty
        and doubt (N, P, 4) of every place, source after source."""
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
        table = NearestTable(rows, base, max(multiplied), nibbles.signs(size))
        return cls(table, tuple(sources))

    def read(self, hidden: Tensor, sentence: Tensor, coverage: Tensor) -> NearestRead:
        """What rows read of their positions, where nothing is doubted.

        hidden: (R, d), the states of the step.
        sentence: (R,) int64, the sentences of the rows.
        coverage: (R, P), to which is added what is read; (R, 0) where nothing is penalised.

        Raises ValueError for other types and sizes."""
        return self.table.read(nibbles.even(hidden).contiguous(), sentence.contiguous(), coverage)

    def mix_(
        self,
        log_probs: Tensor,
        hidden: Tensor,
        sentence: Tensor,
        coverage: Tensor,
        columns: Array | None,
        sure: float,
        full: float,
    ) -> NearestRead:
        """What rows read of their positions. It is mixed into log p in its place.

        log_probs: (R, V), log p.
        hidden: (R, d), the states of the step.
        sentence: (R,) int64, the sentences of the rows.
        coverage: (R, P), what was read before, which is written over; (R, 0) where nothing is
        penalised.
        columns: the columns of log p for compiled code; None where every word has a column.
        sure: how much less is mixed in where the model is sure of a word.
        full: the share that is mixed in at most."""
        hidden, sentence = nibbles.even(hidden).contiguous(), sentence.contiguous()
        return self.table.mix_(log_probs, hidden, sentence, coverage, columns, sure, full)
