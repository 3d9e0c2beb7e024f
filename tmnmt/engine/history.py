"""The confirmed pairs of a document that are there before it is translated, as its session learns
them: those that stand nearest to the segment at work, before it and behind it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from tmnmt.partial_document import ConfirmedNeighbour

STRETCH = 16  # segments that are translated with the same pairs
MOST_PAIRS = 256  # of a stretch: about what the positions of a session hold


class History:
    """The pairs of one document, in its order. Its segments are cut into stretches, each with a
    session of its own."""

    def __init__(self, pairs: Sequence[ConfirmedNeighbour]) -> None:
        """pairs: the pairs of the document, in its order."""
        self.pairs = pairs

    def stretch_of(self, place: int) -> int:
        """The stretch of a segment.

        place: how many segments to be translated stand before it."""
        return place // STRETCH

    def nearest(self, stretch: int) -> list[ConfirmedNeighbour]:
        """The pairs that a stretch is translated with, the nearest last.

        stretch: its number."""
        middle = (stretch + 0.5) * STRETCH
        centre = bisect_left(self.pairs, middle, key=lambda pair: pair.place)
        candidates = self.pairs[max(0, centre - MOST_PAIRS) : centre + MOST_PAIRS]
        ordered = sorted(candidates, key=lambda pair: -abs(pair.place - middle))
        return ordered[-MOST_PAIRS:]
