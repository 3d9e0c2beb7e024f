"""What rows read of positions, as compiled code does it (`tmnmt.compiled.reading`): what the layers
do by torch in some seventy operations, each of which takes longer to be called than to be done.

R, N, P as in `view`; l, d as in models/base; D: numbers of a position that are blended."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from tmnmt.compiled import kernels
from tmnmt.layers.contract import StepState
from tmnmt.layers.view import Positions

MATCH, AGREEMENT, FOLLOWS, MAXIMUM, LEVEL, FACTS = range(6)  # as `compiled.reading` has them


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


def read_positions(
    positions: Positions,
    step: StepState,
    query: Tensor,
    energies: Energies,
    last: Tensor | None = None,
    coverage: Tensor | None = None,
    state_size: int = 0,
) -> Compiled:
    """By queries (R, l'), keys (N, P, l'), what was read of the pairs at the step before (R, P')
    and all that was read before (R, P, 1). What is blended begins with a state of `state_size`
    numbers, or with none."""
    _, length, numbers = positions.values.shape
    parts = query, step.prev, step.hidden, step.context
    query, prev, hidden, context = (x.contiguous() for x in parts)
    read = kernels.read_positions(
        positions.table,
        (length, numbers),
        query,
        prev,
        None if last is None or not last.shape[1] else last.contiguous(),
        coverage,
        hidden,
        context,
        state_size,
        energies,
    )
    return Compiled(*read)


def blend(positions: Positions, q: Tensor, values: Tensor) -> Tensor:
    """The sums (R, d) of the sentences' values (N, P, d) by q (R, P)."""
    return kernels.blend_positions(positions.sentence.contiguous(), q, values.contiguous())
