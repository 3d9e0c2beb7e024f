"""What rows read of positions, as compiled code does it (`tmnmt.compiled.reading`): what the layers
do by torch in some seventy operations, each of which takes longer to be called than to be done.

R, N, P as in `view`; l, d as in models/base; D: numbers of a position that are blended."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tmnmt.compiled import steps
from tmnmt.layers.contract import At
from tmnmt.layers.view import Positions

MATCH, AGREEMENT, FOLLOWS, MOST, LEVEL, FACTS = range(6)  # as `compiled.reading` has them


class Energies(NamedTuple):
    """What is added to a match, and the sharpness of the softmax over it all."""

    follows: float = 0.0  # kappa: of positions behind the word just written
    pointer: float = 0.0  # rho: of those of them whose predecessor was just read
    covered: float = 0.0  # lambda: taken off by what was read before
    sharpness: float = 1.0  # 1 / eta


class Compiled(NamedTuple):
    """What the rows have read; zeros of a row that has nothing to read."""

    q: Tensor  # (R, P)
    blended: Tensor  # (R, D)
    # (R, 5) sum q match / |c|^2, h blended / |h|^2, sum q g, the largest q, log sum exp of the
    # energies / |c|^2
    facts: Tensor


def can_be_compiled(x: Tensor) -> bool:
    """Whether compiled code can do what is done with x: in fp32 on a CPU, without gradients."""
    return x.is_cpu and x.dtype == torch.float32 and not torch.is_grad_enabled()


def read_positions(
    positions: Positions,
    at: At,
    query: Tensor,
    energies: Energies,
    last: Tensor | None = None,
    coverage: Tensor | None = None,
    state_size: int = 0,
) -> Compiled:
    """By queries (R, l'), keys (N, P, l'), what was read of the pairs at the step before (R, P')
    and all that was read before (R, P, 1). What is blended begins with a state of `state_size`
    numbers, or with none."""
    rows, (_, length, numbers) = len(query), positions.read.shape
    query, prev, hidden, context = (x.contiguous() for x in (query, *at))
    q, blended = query.new_empty(rows, length), query.new_empty(rows, numbers)
    facts, room = query.new_empty(rows, FACTS), query.new_empty(rows + 3, length)
    last = None if last is None or not last.shape[1] else last.contiguous()
    steps.read_positions(
        rows,
        positions.table.numbers.data_ptr(),
        state_size,
        context.shape[1],
        query.data_ptr(),
        prev.data_ptr(),
        0 if last is None else last.data_ptr(),
        0 if last is None else last.shape[1],
        0 if coverage is None else coverage.data_ptr(),
        hidden.data_ptr(),
        context.data_ptr(),
        *energies,
        room.data_ptr(),
        q.data_ptr(),
        blended.data_ptr(),
        facts.data_ptr(),
    )
    return Compiled(q, blended, facts)


def blend(positions: Positions, q: Tensor, values: Tensor) -> Tensor:
    """The sums (R, d) of the sentences' values (N, P, d) by q (R, P)."""
    values, sentence = values.contiguous(), positions.sentence.contiguous()
    rows, (_, length, size) = len(q), values.shape
    blended = q.new_empty(rows, size)
    room = torch.empty(length, dtype=torch.int64)
    given = (x.data_ptr() for x in (sentence, q, values, room, blended))
    steps.blend_positions(rows, length, size, *given)
    return blended


def cover(coverage: Tensor, logits: Tensor, q: Tensor) -> Tensor:
    """coverage (R, P, 1) + sigmoid(logits (R,)) q (R, P)"""
    covered = torch.empty_like(coverage)
    at = logits.data_ptr(), q.data_ptr(), coverage.data_ptr(), covered.data_ptr()
    steps.cover(*q.shape, *at)
    return covered
