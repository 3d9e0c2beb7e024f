"""What one layer did at a step, kept where an explanation is asked for.

R: rows   V: vocabulary   C: candidates   P: positions or slots that a layer reads
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from torch import Tensor

from tmnmt.layers.collated import Pairs
from tmnmt.segments import ReadSource


@dataclass(frozen=True)
class Part:
    """What a layer gave: `p` (R, V), (C,) or (), and the `gate` in [0, 1] that let it in, (R,),
    (C,) or ()."""

    p: Tensor
    gate: Tensor

    def pick(self, rows: Tensor, words: Tensor) -> Part:
        """The same for the candidates alone.

        rows: (C,) int64, the rows that the candidates extend.
        words: (C,) int64, their words."""
        return Part(self.p[rows, words], self.gate[rows])

    def pick_candidate(self, candidate: int) -> Part:
        """The same for one candidate.

        candidate: its number."""
        return Part(self.p[candidate], self.gate[candidate])


@dataclass(frozen=True)
class LayerTrace:
    """What one layer did at a step."""

    weights: Tensor  # (R, P), or (P,) of one word: what it read
    fused: Part | None  # into the state: p is the read-out after it; None: nothing
    mixed: Part | None  # into the probabilities: p is that of its words; None: nothing
    # (R, k), or (k,): where the last k of the weights stand: neighbours in the datastore, or the
    # positions of a pool
    positions: Tensor | None

    def pick(self, rows: Tensor, words: Tensor) -> LayerTrace:
        """What the layer did for the candidates alone.

        rows: (C,) int64, the rows that the candidates extend.
        words: (C,) int64, their words."""
        fused = self.fused and self.fused.pick(rows, words)
        return replace(self, fused=fused, mixed=self.mixed and self.mixed.pick(rows, words))

    def pick_candidate(self, row: int, candidate: int) -> LayerTrace:
        """What the layer did for one candidate, with its weights on the CPU.

        row: the row that it extends.
        candidate: its number."""
        return LayerTrace(
            weights=self.weights[row].cpu(),
            fused=self.fused and self.fused.pick_candidate(candidate),
            mixed=self.mixed and self.mixed.pick_candidate(candidate),
            positions=self.positions[row].cpu() if self.positions is not None else None,
        )


class HeldWords(Protocol):
    """The words that documents have kept, side by side."""

    @property
    def ids(self) -> Tensor:
        """(N, C) int64"""

    @property
    def mask(self) -> Tensor:
        """(N, C) bool: which of them are there."""


@dataclass(frozen=True)
class TracedSource:
    """What a layer did at a step with what it read of one source. `mixing`, `blending`: what
    explanations call what it mixed into the probabilities, and blended into the state. `pairs`,
    `slots`: what the weights are of, but for the last, which have `positions` of the whole memory;
    None: of nothing that is shown."""

    mixing: str
    blending: str
    source: ReadSource
    trace: LayerTrace
    pairs: Pairs | None = None
    slots: HeldWords | None = None
