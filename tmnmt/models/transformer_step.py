"""A step of a Transformer's or a student's decoder where all but the products with weights is
compiled (`tmnmt.compiled`): called as operations of torch, the small parts took longer than the
products.

    R: rows    B: sentences    d: hidden size    H: heads    k: d / H    S: source length
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from tmnmt.compiled import kernels
from tmnmt.compiled.kernels import Array, NormWeights, Sources, StepPlan
from tmnmt.models.int8 import Int8Product
from tmnmt.models.products import Product
from tmnmt.models.transformer_state import CellState, SeenState

LEVEL = 1e-12  # under the root of a mean square


KINDS = "self", "cell", "source", "feed-forward"  # numbered as `compiled/whole_step.py` has them
State = TypeVar("State", SeenState, CellState)


class Part(NamedTuple):
    """A part of a layer: its norm, and its products before and after what is compiled. A cell has
    none behind it."""

    kind: Literal["self", "cell", "source", "feed-forward"]
    norm: NormWeights
    first: Product
    last: Product | None


@dataclass(frozen=True)
class CompiledStep:
    """The decoder's layers. All is in fp32, but for the inside of products."""

    parts: Sequence[Part]  # of all layers, in order
    embedding: Array  # (V, d)
    scale: float  # of embeddings
    heads: int
    norms_first: bool  # before every part; False: after it
    final_norm: NormWeights  # of the read-out

    def step(
        self, prev: Tensor, position: Tensor, state: State, source: Sources
    ) -> tuple[State, Tensor, Tensor]:
        """Goes on by one position, and returns the state, what the last feed-forward part reads (R,
        d), and the sum behind it (R, d) at a mean square of 1. The rows of a sentence stand side by
        side.

        prev: (R,) int64, the words y_{t-1}.
        position: (d,), the vector of the position.
        state: the state before it.
        source: what is read of the sources.

        Raises ValueError for what is not of the types and sizes that compiled code takes for
        granted."""
        state = state.roomy()
        x = kernels.embed(prev.contiguous(), self.embedding, position, self.scale)
        inputs, added = x, None
        for number, part in enumerate(self.parts):
            if self.norms_first:
                inputs = part.norm(x, added, torch.empty_like(x))
            elif added is not None:
                inputs = self.parts[number - 1].norm(x, added, x)
            inner, layer = part.first(inputs), number // 3
            if isinstance(state, SeenState) and part.kind == "self":
                inner = kernels.look_back(
                    inner, state.kv_cache, state.origin, state.length, layer, self.heads
                )
            elif isinstance(state, CellState) and part.kind == "cell":
                inner = kernels.update_cell_(inner, state.cells[layer])
            elif part.kind == "source":
                inner = source.look_at(inner, layer, self.heads)
            added = part.last(inner) if part.last is not None else inner
        if added is None:
            raise ValueError("a decoder without layers")
        return state.longer(), inputs, kernels.level_of_sum_(x, added, LEVEL)


@dataclass(frozen=True)
class Int8Step:
    """The same where all products are in int8: one call of compiled code does a whole step."""

    plan: StepPlan
    final_norm: NormWeights

    @classmethod
    def build(cls, step: CompiledStep) -> Int8Step | None:
        """The same step in int8; None where a product is not in int8, or norms have different
        numbers under the root.

        step: the step."""
        plan = []
        for kind, norm, first, last in step.parts:
            if not isinstance(first, Int8Product) or norm.least != step.parts[0].norm.least:
                return None
            if last is not None and not isinstance(last, Int8Product):
                return None
            panels = last.panels if last is not None else None
            plan.append((KINDS.index(kind), norm, first.panels, first.relu, panels))
        whole = StepPlan(plan, step.embedding, step.scale, step.heads, step.norms_first)
        return cls(whole, step.final_norm)

    def step(
        self, prev: Tensor, position: Tensor, state: State, source: Sources
    ) -> tuple[State, Tensor, Tensor]:
        """Goes on by one position, as `CompiledStep.step` does.

        prev: (R,) int64, the words y_{t-1}.
        position: (d,), the vector of the position.
        state: the state before it.
        source: what is read of the sources."""
        state, prev = state.roomy(), prev.contiguous()
        moving, origin = (
            (state.kv_cache, state.origin) if isinstance(state, SeenState) else (state.cells, None)
        )
        last_inputs, level = self.plan.step(
            prev, position, moving, origin, state.length, source, LEVEL
        )
        return state.longer(), last_inputs, level
