"""The best way through two documents, and how likely each of its steps is, compiled.

A step takes a source sentences and b targets (MOVES), one sentence of one side alone, or two
sentences of each side that stand in the other order. Its score is

    (cos - ALIKE - LENGTH min(z^2, 25)) (a + b) / 2 - COSTS[step]

where cos is that of the sums of the vectors of both sides (as Thompson and Koehn 2019 have it for
embeddings), and z is how unlikely the two lengths are, in standard deviations (Gale and Church
1993). A sentence that is taken alone scores 0. The best path is found by dynamic programming; a
step's probability is its share in all paths, each weighted by exp(score / TEMPERATURE).

N: source sentences   M: targets   W: targets beside one source that are looked at"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.compiling import compiled

MOVES = np.array([(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1)], np.int64)
COSTS = np.array([0.0, 0.35, 0.35, 0.9, 0.9, 0.9])
CROSSED_COST = 0.3  # of two sentences in the other order
ALIKE = -0.3  # a likeness from which two sentences are rather a pair than not
LENGTH = 0.04
VARIANCE = 6.8  # of lengths, a character (Gale and Church 1993)
TEMPERATURE = 0.1
CROSSED, SOURCE_ALONE, TARGET_ALONE = len(MOVES), len(MOVES) + 1, len(MOVES) + 2
STEPS = len(MOVES) + 3
IMPOSSIBLE = -1e9  # the score of what cannot be

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


class Documents(NamedTuple):
    """Two documents as compiled code reads them.

    products: (N, W), the products of every source with some targets.
    starts: (N,), the first of these targets for every source.
    source_squares: (N,), the product of every source's vector with itself.
    target_squares: (M,), the same of the targets.
    source_previous: (N,), the product of every source's vector with the one before it.
    target_previous: (M,), the same of the targets.
    source_lengths: (N,), the lengths of the sources in characters.
    target_lengths: (M,), the lengths of the targets in characters.
    ratio: how many characters the target document has for one of the source document."""

    products: Float32
    starts: Int64
    source_squares: Float64
    target_squares: Float64
    source_previous: Float64
    target_previous: Float64
    source_lengths: Float64
    target_lengths: Float64
    ratio: float


@compiled
def _likeness(d: Documents, i: int, j: int, sources: int, targets: int) -> float:
    """The part of a step's score that its sentences give: of those before source i and target j."""
    product = of_sources = of_targets = source_length = target_length = 0.0
    for x in range(i - sources, i):
        of_sources += d.source_squares[x]
        source_length += d.source_lengths[x]
        if x > i - sources:
            of_sources += 2 * d.source_previous[x]
        for y in range(j - targets, j):
            column = y - d.starts[x]
            if 0 <= column < d.products.shape[1]:
                product += d.products[x, column]
    for y in range(j - targets, j):
        of_targets += d.target_squares[y]
        target_length += d.target_lengths[y]
        if y > j - targets:
            of_targets += 2 * d.target_previous[y]
    cosine = product / math.sqrt(of_sources * of_targets + 1e-9)
    expected = d.ratio * source_length
    deviation = (target_length - expected) ** 2 / ((expected + target_length) / 2 * VARIANCE + 1)
    return cosine - ALIKE - LENGTH * min(deviation, 25.0)


@compiled
def _score(d: Documents, i: int, j: int, step: int) -> float:
    """The score of a step that ends before source i and target j."""
    if step == SOURCE_ALONE:
        return 0.0 if i > 0 else IMPOSSIBLE
    if step == TARGET_ALONE:
        return 0.0 if j > 0 else IMPOSSIBLE
    if step == CROSSED:
        if i < 2 or j < 2:
            return IMPOSSIBLE
        return _likeness(d, i, j - 1, 1, 1) + _likeness(d, i - 1, j, 1, 1) - CROSSED_COST
    sources, targets = MOVES[step]
    if i < sources or j < targets:
        return IMPOSSIBLE
    cost = float(COSTS[step])
    score: float = _likeness(d, i, j, sources, targets) * (sources + targets) / 2 - cost
    return score


@compiled
def _counts(step: int) -> tuple[int, int]:
    """How many sources and targets a step takes."""
    if step == SOURCE_ALONE:
        return 1, 0
    if step == TARGET_ALONE:
        return 0, 1
    if step == CROSSED:
        return 2, 2
    return int(MOVES[step, 0]), int(MOVES[step, 1])


@compiled
def _first(d: Documents, i: int) -> int:
    """The first target that stands beside what is before source i."""
    return int(d.starts[min(i, len(d.starts) - 1)])


@compiled
def _value(table: Float32, d: Documents, i: int, j: int) -> float:
    column = j - _first(d, i)
    return float(table[i, column]) if 0 <= column < table.shape[1] else IMPOSSIBLE


@compiled
def _added(first: float, second: float) -> float:
    """log(e^first + e^second)"""
    high, low = max(first, second), min(first, second)
    return high if low <= IMPOSSIBLE / 2 else high + math.log1p(math.exp(low - high))


@compiled
def forward(d: Documents, targets: int) -> tuple[Float32, NDArray[np.int8], Float32]:
    """For every place (N + 1, W + 1) the best score of a path to it, the step that it ends with,
    and the logarithm of the sum of all paths.

    d: the two documents.
    targets: how many targets there are, M."""
    sources = len(d.starts)
    shape = sources + 1, d.products.shape[1] + 1
    best, total = np.full(shape, IMPOSSIBLE, np.float32), np.full(shape, IMPOSSIBLE, np.float32)
    steps = np.full(shape, -1, np.int8)
    for i in range(sources + 1):
        first = _first(d, i)
        for j in range(first, min(targets, first + shape[1] - 1) + 1):
            if i == 0 and j == 0:
                best[0, 0] = total[0, 0] = 0.0
                continue
            for step in range(STEPS):
                score = _score(d, i, j, step)
                if score <= IMPOSSIBLE / 2:
                    continue
                a, b = _counts(step)
                score_to = _value(best, d, i - a, j - b)
                if score_to + score > best[i, j - first]:
                    best[i, j - first], steps[i, j - first] = score_to + score, step
                sum_to = _value(total, d, i - a, j - b)
                if sum_to > IMPOSSIBLE / 2:
                    total[i, j - first] = _added(total[i, j - first], sum_to + score / TEMPERATURE)
    return best, steps, total


@compiled
def backward(d: Documents, targets: int) -> Float32:
    """For every place (N + 1, W + 1) the logarithm of the sum of all paths from it to the end.

    d: the two documents.
    targets: how many targets there are, M."""
    sources = len(d.starts)
    shape = sources + 1, d.products.shape[1] + 1
    total = np.full(shape, IMPOSSIBLE, np.float32)
    for i in range(sources, -1, -1):
        first = _first(d, i)
        for j in range(min(targets, first + shape[1] - 1), first - 1, -1):
            if i == sources and j == targets:
                total[i, j - first] = 0.0
                continue
            for step in range(STEPS):
                a, b = _counts(step)
                if i + a > sources or j + b > targets:
                    continue
                sum_from = _value(total, d, i + a, j + b)
                if sum_from <= IMPOSSIBLE / 2:
                    continue
                score = _score(d, i + a, j + b, step)
                if score > IMPOSSIBLE / 2:
                    total[i, j - first] = _added(
                        total[i, j - first], sum_from + score / TEMPERATURE
                    )
    return total


@compiled
def best_path(
    d: Documents, targets: int, steps: NDArray[np.int8], sums_to: Float32, sums_from: Float32
) -> list[tuple[int, int, int, float]]:
    """The steps of the best path, the last first: each with the places where it ends and its
    probability.

    d: the two documents.
    targets: how many targets there are, M.
    steps: (N + 1, W + 1), the steps that `forward` gave.
    sums_to: (N + 1, W + 1), the sums that `forward` gave.
    sums_from: (N + 1, W + 1), the sums that `backward` gave."""
    path = []
    i, j = len(d.starts), targets
    whole = _value(sums_to, d, i, j)
    while i > 0 or j > 0:
        step = steps[i, j - _first(d, i)]
        a, b = _counts(step)
        logarithm = (
            _value(sums_to, d, i - a, j - b)
            + _score(d, i, j, step) / TEMPERATURE
            + _value(sums_from, d, i, j)
            - whole
        )
        path.append((i, j, int(step), math.exp(min(logarithm, 0.0))))
        i -= a
        j -= b
    return path
