"""Places for codes whose order is given: those of the least cost together, by dynamic
programming."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def keep_order(
    costs: Sequence[NDArray[np.float64]], stretches: Sequence[Sequence[tuple[int, int]]]
) -> list[tuple[int, int]]:
    """For every item a place (k, k), or one of its stretches (start, end); none begins before the
    one before it ends. As many stretches as can be are taken, then the sum of the costs, by k or by
    start, is the least.

    costs: for every item the cost of every place, none below 0.
    stretches: for every item the stretches that it may have."""
    if not costs:
        return []
    bonus = 1.0 + 2.0 * sum(float(cost.max()) for cost in costs)
    ways = list[list[tuple[int, int]]]()
    best = np.zeros(len(costs[0]))  # of everything that ends at or before a boundary
    for cost, of_item in zip(costs, stretches, strict=True):
        value, way = best + cost, [(k, k) for k in range(len(cost))]
        for start, end in of_item:
            if (new := best[start] + cost[start] - bonus) < value[end]:
                value[end], way[end] = new, (start, end)
        for k in range(1, len(value)):
            if value[k - 1] < value[k]:
                value[k], way[k] = value[k - 1], way[k - 1]
        best = value
        ways.append(way)
    path = list[tuple[int, int]]()
    end = len(best) - 1
    for way in reversed(ways):
        path.append(way[end])
        end = way[end][0]
    return path[::-1]
