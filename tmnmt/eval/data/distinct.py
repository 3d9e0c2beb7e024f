"""Which segments of a test set are the same one again: the same source with the same references.

Their outputs are the same, or nearly, so they are no independent evidence: 155 of the 157 segments
of one law test document are "[Repealed, 2002, c. 7, s. 282]". All of them are one unit. The score
of a test set is of every segment, as others report it. Its interval is of resamples in which a unit
is drawn with all its segments (`together`). In tests of significance, and in a part of the test set
such as a match band, a unit counts once (`once`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tmnmt.eval.measures.metrics import Counts

# (segments,): the number of every segment's unit, from 0 in the order of the first
Units = NDArray[np.int64]


def units_of(sources: Sequence[str], references: Sequence[Sequence[str]]) -> Units:
    """The units of a test set; `references`: R lists. Without sources, segments of equal references
    are one unit."""
    numbers: dict[tuple[str, ...], int] = {}
    keys = zip(*([sources] if sources else []), *references, strict=True)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def together(counts: Counts, units: Units) -> Counts:
    """The counts (n, k) of all segments of a unit added up, (units, k): their score is that of the
    segments."""
    numbers, rows = np.unique(units, return_inverse=True)
    sums = np.zeros((len(numbers), counts.shape[1]))
    np.add.at(sums, rows, counts)
    return sums


def unit_means(counts: Counts, units: Units) -> Counts:
    """The mean counts of a unit's segments, (units, k): each counts as one segment, whatever was
    made of the others."""
    times = np.unique(units, return_counts=True)[1]
    means: Counts = together(counts, units) / times[:, None]
    return means
