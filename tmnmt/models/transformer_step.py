"""A step of a Transformer's or a student's decoder where all but the products with weights is
compiled (`tmnmt.compiled`): called as operations of torch, the small parts took longer than the
products.

    R: rows    B: sentences    d: hidden size    H: heads    k: d / H    S: source length
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from tmnmt.compiled import steps
from tmnmt.compiled.tensors import expect
from tmnmt.models.int8 import Int8Product, room_of_product
from tmnmt.models.products import Product
from tmnmt.models.transformer_state import CellState, SeenState, Source

LEVEL = 1e-12  # under the root of a mean square


KINDS = "self", "cell", "source", "feed-forward"  # numbered as `compiled/whole_step.py` has them
State = TypeVar("State", SeenState, CellState)


class Part(NamedTuple):
    """A part of a layer: its norm, and its products before and after what is compiled. A cell has
    none behind it."""

    kind: Literal["self", "cell", "source", "feed-forward"]
    norm: nn.LayerNorm
    first: Product
    last: Product | None


@dataclass(frozen=True)
class CompiledStep:
    """The decoder's layers. All is in fp32, but for the inside of products."""

    parts: Sequence[Part]  # of all layers, in order
    embedding: Tensor  # (V, d)
    scale: float  # of embeddings
    heads: int
    norms_first: bool  # before every part; False: after it

    def step(
        self, prev: Tensor, position: Tensor, state: State, source: Source
    ) -> tuple[State, Tensor, Tensor]:
        """After y_{t-1} (R,) at a `position` (d,) -> state, what the last feed-forward part reads
        (R, d), and the sum behind it (R, d) at a mean square of 1. The rows of a sentence stand
        side by side."""
        prev = prev.contiguous()
        rows, d = len(prev), self.embedding.shape[1]
        state, at = state.roomy(), state.length
        x = self.embedding.new_empty(rows, d)
        out = x.data_ptr()
        table = self.embedding.data_ptr()
        steps.embed(prev.data_ptr(), table, position.data_ptr(), self.scale, rows, d, out)
        read, added = x, None
        for number, part in enumerate(self.parts):
            if self.norms_first:
                read = _normed(x, added, part.norm, torch.empty_like(x))
            elif added is not None:
                read = _normed(x, added, self.parts[number - 1].norm, x)
            inner = part.first(read)
            if isinstance(state, SeenState) and part.kind == "self":
                inner = self._look_back(inner, state, number // 3)
            elif isinstance(state, CellState) and part.kind == "cell":
                inner = self._update_cell(inner, state, number // 3)
            elif part.kind == "source":
                inner = self._look_at(inner, source, number // 3)
            added = part.last(inner) if part.last is not None else inner
        level = torch.empty_like(x)
        if added is not None:
            steps.level_of_sum(out, added.data_ptr(), LEVEL, rows, d, level.data_ptr())
        return replace(state, length=at + 1), read, level

    def _look_back(self, qkv: Tensor, state: SeenState, layer: int) -> Tensor:
        """Self-attention of one position: (R, 3 d) -> (R, d)."""
        at, (_, layers, room, two) = state.length, state.seen.shape
        rows, d = len(qkv), two // 2
        out, energy, places = _room(qkv, rows, d, at + 1)
        steps.look_back(
            qkv.data_ptr(),
            state.seen.data_ptr(),
            state.origin.data_ptr(),
            at,
            layer,
            layers,
            room,
            rows,
            self.heads,
            d,
            energy.data_ptr(),
            places.data_ptr(),
            out.data_ptr(),
        )
        return out

    def _update_cell(self, candidate_gate: Tensor, state: CellState, layer: int) -> Tensor:
        """The cell after one more word, put into the state: (R, 2 d) -> its positive part
        (R, d)."""
        cell = state.cells[layer]
        out = torch.empty_like(cell)
        rows, d = cell.shape
        steps.update_cell(candidate_gate.data_ptr(), cell.data_ptr(), rows, d, out.data_ptr())
        return out

    def _look_at(self, q: Tensor, source: Source, layer: int) -> Tensor:
        """Attention over the source: (R, d) -> (R, d)."""
        keys, values = source.keys[layer], source.values[layer]
        (rows, d), (sentences, _, length, _) = q.shape, keys.shape
        of_sentence, of_head, of_position, _ = keys.stride()
        out, energy, places = _room(q, rows, d, length)
        steps.look_at_source(
            q.data_ptr(),
            keys.data_ptr(),
            values.data_ptr(),
            source.lengths.data_ptr(),
            of_sentence,
            of_head,
            of_position,
            sentences,
            rows,
            self.heads,
            d,
            energy.data_ptr(),
            places.data_ptr(),
            out.data_ptr(),
        )
        return out


@dataclass(frozen=True)
class Int8Step:
    """The same where all products are in int8: one call of compiled code does a whole step."""

    parts: Sequence[Part]  # what the plan has the addresses of
    plan: Tensor  # int64
    embedding: Tensor  # (V, d)
    scale: float  # of embeddings
    heads: int
    norms_first: bool
    widest: int  # outputs of a product

    @classmethod
    def of(cls, step: CompiledStep) -> Int8Step | None:
        """None where a product is not in int8, or norms have different numbers under the root."""
        plan, widest = [], 0
        for part in step.parts:
            if not isinstance(part.first, Int8Product) or part.norm.eps != step.parts[0].norm.eps:
                return None
            plan += [KINDS.index(part.kind), part.norm.weight.data_ptr(), part.norm.bias.data_ptr()]
            plan += part.first.plan
            if isinstance(part.last, Int8Product):
                plan += part.last.plan
            elif part.last is not None:
                return None
            else:
                plan += [0] * len(part.first.plan)
            widest = max(widest, part.first.outputs)
        return cls(
            step.parts,
            torch.tensor(plan),
            step.embedding,
            step.scale,
            step.heads,
            step.norms_first,
            widest,
        )

    def step(
        self, prev: Tensor, position: Tensor, state: State, source: Source
    ) -> tuple[State, Tensor, Tensor]:
        """As `CompiledStep.step`. Raises ValueError for what is not of the types and sizes that
        compiled code takes for granted."""
        rows, d, layers = len(prev), self.embedding.shape[1], len(self.parts) // 3
        state, prev = state.roomy(), prev.contiguous()
        keys: Sequence[Tensor] = source.keys
        lengths = source.lengths
        expect("words", prev, torch.int64, (rows,))
        expect("position", position, torch.float32, (d,))
        expect("lengths", lengths, torch.int64, keys[0].shape[:1])
        seats = origin_at = 0
        if isinstance(state, SeenState):
            seats, origin_at = state.seen.shape[2], state.origin.data_ptr()
            room = len(state.seen), layers, seats, 2 * d
            expect("what was seen", state.seen, torch.float32, room)
            expect("its origin", state.origin, torch.int64, (len(state.seen), rows))
            moving = state.seen
        else:
            expect("cells", state.cells, torch.float32, (layers, rows, d))
            moving = state.cells
        sentences, _, length, _ = keys[0].shape
        if sentences and rows % sentences:
            raise ValueError(f"{rows} rows for {sentences} sentences")
        longest = max(length, state.length + 1)
        size = 12 * longest + 4 * rows * (4 * d + 2 * self.widest)
        size += room_of_product(rows, self.widest)
        room_for_all = torch.empty(size, dtype=torch.uint8)
        read, level = torch.empty(2, rows, d).unbind()
        steps.decoder_step(
            self.plan.data_ptr(),
            len(self.parts),
            prev.data_ptr(),
            self.embedding.data_ptr(),
            position.data_ptr(),
            self.scale,
            self.parts[0].norm.eps,
            LEVEL,
            int(self.norms_first),
            moving.data_ptr(),
            origin_at,
            state.length,
            layers,
            seats,
            source.addresses.data_ptr(),
            lengths.data_ptr(),
            *keys[0].stride()[:3],
            sentences,
            longest,
            rows,
            self.heads,
            d,
            self.widest,
            room_for_all.data_ptr(),
            read.data_ptr(),
            level.data_ptr(),
        )
        return replace(state, length=state.length + 1), read, level


def _room(like: Tensor, rows: int, d: int, positions: int) -> tuple[Tensor, Tensor, Tensor]:
    """(R, d) for what is read; for energies and places of the positions that are looked at."""
    places = torch.empty(positions, dtype=torch.int64)
    return like.new_empty(rows, d), like.new_empty(positions), places


def _normed(x: Tensor, added: Tensor | None, norm: nn.LayerNorm, out: Tensor) -> Tensor:
    """x += added; their layer norm, in `out`."""
    rows, d = x.shape
    steps.norm_of_sum(
        x.data_ptr(),
        0 if added is None else added.data_ptr(),
        norm.weight.data_ptr(),
        norm.bias.data_ptr(),
        norm.eps,
        rows,
        d,
        out.data_ptr(),
    )
    return out
