"""What every memory keeps for the rows of a batch while they are decoded, and what a step reports
of it.

R: rows (sentences x beam)   N: sentences   P: positions of all pairs of a sentence   C: cache slots
l, d: as in models/base
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch import Tensor

from tmnmt.layers.rows import Rows

if TYPE_CHECKING:
    from tmnmt.layers.neighbours import NeighbourState

Embed = Callable[[Tensor], Tensor]  # words (...) int64 -> their embeddings (..., word_size)


@dataclass(frozen=True)
class View:
    """What every row sees of its sentence's positions or slots (P): laid out once, until rows come
    or go.

    R': the rows that see any"""

    some: Tensor | None  # (R',) int64 which rows these are; None: all
    rows: Rows  # where the R' stand
    ids: Tensor  # (R, P)
    first: Tensor  # (R, P)
    mask: Tensor | None  # (R', P); None where all are real
    before: Tensor | None = None  # (R', P)
    worth: Tensor | None = None  # (R', P), of pairs

    def pick(self, x: Tensor) -> Tensor:
        """The rows of x (R, ...) that see any: (R', ...)."""
        return x if self.some is None else x.index_select(0, self.some)

    def put(self, part: Tensor, other: float | Tensor = 0.0) -> Tensor:
        """(R, ...) of what those rows have (R', ...) and of `other`, a number or (R, ...), for the
        rest."""
        if self.some is None:
            return part
        if not isinstance(other, Tensor):
            other = part.new_full((len(self.ids), *part.shape[1:]), other)
        return other.index_copy(0, self.some, part)


@dataclass(frozen=True)
class TMState:
    """The retrieved pairs of every sentence. Keys are shared by a sentence's beam, coverage belongs
    to a row."""

    keys: Tensor  # (N, P, l)
    values: Tensor  # (N, P, d)
    ids: Tensor  # (N, P) int64
    before: Tensor  # (N, P) int64: the word before it in its pair, <s> before the first
    mask: Tensor  # (N, P) bool
    pair: Tensor  # (N, P) int64: index of the pair in the sentence's list
    position: Tensor  # (N, P) int64: subword position in that pair's target
    # (N, P, 2) f and e: fuzzy score of that pair with the sentence, in [0, 1]; 1 where it is 1,
    # else 0
    marks: Tensor
    sentence: Tensor  # (R,) int64: which of the N each row belongs to
    coverage: Tensor  # (R, P, W) what was read so far, see `Coverage`; W is 0 before the first step
    said: Tensor | None = (
        None  # (N, P, d) what fusion blends of every position, once the state was made ready
    )
    worth: Tensor | None = None  # (N, P) mu f + nu e, likewise
    read: Tensor | None = (
        None  # (N, P, d + ...) z', W z' of every gate, f and e side by side, likewise;
    )
    # z', f and e where W is multiplied with in the step
    first: Tensor | None = (
        None  # (N, P) int64: the first position that holds the same word, likewise
    )
    last: Tensor | None = None  # (R, P) q of the step before; None before the first
    view: View | None = None  # once a step has seen these rows

    def rows(self, index: Tensor) -> TMState:
        """The rows `index` (R',) in that order."""
        return replace(
            self.reordered(index), sentence=self.sentence.index_select(0, index), view=None
        )

    def reordered(self, index: Tensor) -> TMState:
        """The same, of an `index` (R,) where every row takes the place of one of its
        own sentence."""
        last = self.last.index_select(0, index) if self.last is not None else None
        return replace(self, coverage=self.coverage.index_select(0, index), last=last)


@dataclass(frozen=True)
class CacheState:
    """A snapshot of every sentence's session cache; does not change while a sentence is decoded."""

    keys: (
        Tensor  # (N, C, l), values (N, C, d); or, where the cache has K, (N, C, rank) and (N, C, 0)
    )
    values: Tensor
    ids: Tensor  # (N, C) int64: the word of every slot
    before: (
        Tensor  # (N, C) int64: the word before it where it was written last, <s> before the first
    )
    mask: Tensor  # (N, C) bool
    sentence: Tensor  # (R,) int64
    read: Tensor | None = (
        # (N, C, 2 d) what is blended of every slot and W of it, once the state was made ready;
        None
    )
    # (N, C, d + 1) where the gate is one number, (N, C, d) where W is multiplied with in the step;
    # of a shallow cache W alone, (N, C, 1), and with an empty slot the keys at length 1 behind it,
    # (N, C, 1 + their size)
    first: Tensor | None = None  # (N, C) int64: the first slot that holds the same word, likewise
    view: View | None = None  # once a step has seen these rows

    def rows(self, index: Tensor) -> CacheState:
        """The rows `index` (R',) in that order."""
        return replace(self, sentence=self.sentence.index_select(0, index), view=None)


@dataclass(frozen=True)
class MemoryState:
    """All that the memories keep for the rows of a batch; None: that memory is off."""

    tm: TMState | None = None
    cache: CacheState | None = None
    neighbours: NeighbourState | None = None

    @property
    def reads_pairs(self) -> bool:
        """Whether there is anything of the translation memory to be read."""
        return self.tm is not None or self.neighbours is not None

    def rows(self, index: Tensor) -> MemoryState:
        return MemoryState(
            self.tm.rows(index) if self.tm is not None else None,
            self.cache.rows(index) if self.cache is not None else None,
            self.neighbours.rows(index) if self.neighbours is not None else None,
        )

    def reordered(self, index: Tensor) -> MemoryState:
        """The same, of an `index` (R,) where every row takes the place of one of its
        own sentence."""
        return replace(
            self,
            tm=self.tm.reordered(index) if self.tm is not None else None,
            neighbours=self.neighbours.rows(index) if self.neighbours is not None else None,
        )


@dataclass(frozen=True)
class Trace:
    """What one step can say of where each word comes from; kept only when an explanation is asked
    for."""

    q: (
        Tensor | None
        # (R, P) attention over the memory's positions, those of neighbours last; or the weights
        # of kNN
    )
    copy_gate: Tensor | None  # (R,) or the weight of kNN
    fusion_gate: Tensor | None  # (R,) mean over elements
    cache_gate: Tensor | None  # (R,) mean over elements
    recall_gate: Tensor | None  # (R,) of a shallow cache
    p_copy: Tensor | None  # (R, V)
    p_recall: Tensor | None  # (R, V) of a shallow cache
    p_plain: Tensor  # (R, V) read-out of the raw state
    p_cache: Tensor  # (R, V) + cache effect (p_plain where the cache is empty or off)
    p_gen: Tensor  # (R, V) + fusion effect
    slots: Tensor | None = None  # (R, C) P_m over the slots of the session cache
    found: Tensor | None = (
        None  # (R, k) where the neighbours stand in the datastore: the last k of q
    )
