"""The parts of a test set that are told apart: by best match, by near leaks, by position in the
document, by length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from tmnmt.segments import Match

EXACT, NONE = "exact", "none"
EDGES = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
BANDS = (*(f"{low:g}-{high:g}" for low, high in pairwise(EDGES)), EXACT)
MIDDLE = 0.5  # from here on a match is read, where nothing else is set
HALVES = (f"below {MIDDLE:g}", f"{MIDDLE:g} or better")
NEAR_LEAKS = ("near leaks", "all others")
POSITIONS = (1, 11, 21, 51, 101)  # the first segments of each part of a document
LENGTHS = (1, 11, 21, 31, 41, 61)  # source tokens


def band_of(match: Match | None) -> str:
    """The band of a best match: "0.5-0.6" holds 0.5 and not 0.6; "0-0.2" also what
    nothing is like."""
    return BANDS[bisect_right(EDGES, match.score + 1e-9) - 1] if match is not None else BANDS[0]


def half_of(band: str) -> str:
    """Whether the matches of a band are read where nothing else is set: one of HALVES; NONE without
    a memory."""
    if band == NONE:
        return NONE
    return HALVES[BANDS.index(band) >= EDGES.index(MIDDLE)]


def places(documents: Sequence[str]) -> list[int]:
    """The place of every segment in its document, counted from 1."""
    counts: dict[str, int] = {}
    numbers = []
    for document in documents:
        counts[document] = counts.get(document, 0) + 1
        numbers.append(counts[document])
    return numbers


def parts(values: Sequence[int], starts: Sequence[int]) -> list[tuple[int, int | None, list[int]]]:
    """(from, to, the segments whose value lies in it) for every part that is not empty; the last
    one ends nowhere."""
    members: list[list[int]] = [[] for _ in starts]
    for segment, value in enumerate(values):
        members[max(bisect_right(starts, value) - 1, 0)].append(segment)
    ends = [start - 1 for start in starts[1:]]
    return [
        (start, end, segments)
        for start, end, segments in zip(starts, [*ends, None], members, strict=True)
        if segments
    ]
