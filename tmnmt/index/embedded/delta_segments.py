"""Additions that came together since the index was built, with postings of their own.

A search compares the few latest ones one by one (`Delta`); when they are many, they are sealed:
inverted as a build inverts all of them. Parts double in size as in a log-structured merge tree
(O'Neil et al. 1996), so that there are few, and every segment is inverted few times. They live as
long as the process; what makes them durable is the journal."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from tmnmt.index.embedded.build import in_runs
from tmnmt.index.embedded.inversion import BothSides
from tmnmt.index.embedded.part import Dead, Part
from tmnmt.index.embedded.postings import Postings
from tmnmt.index.filter import Filter
from tmnmt.segments import Segment

LOOSE = 512  # segments that are compared one by one; some 0.1 ms a query
MOST_MERGED = 1 << 15  # segments of a part that is still merged: half a second


@dataclass(frozen=True)
class Sealed:
    """Segments that were inverted together.

    segments: the segments by their ids, those that are `dead` included.
    part: the part that finds those that are not."""

    segments: Mapping[int, Segment]
    part: Part

    def exclude(self, numbers: set[int]) -> Sealed:
        """The same segments, of which more are dead.

        numbers: the ids of those that are dead from now on; ids of other segments do not matter."""
        removed = numbers & self.segments.keys()
        return (
            replace(self, part=self.part._replace(dead=Dead(self.part.dead | removed)))
            if removed
            else self
        )

    def ids(self, conditions: Filter) -> list[int]:
        """The ids of the segments that meet some conditions.

        conditions: the conditions."""
        return [number for number, segment in self.segments.items() if conditions.keeps(segment)]

    def alive(self) -> Iterable[Segment]:
        return (
            segment for number, segment in self.segments.items() if number not in self.part.dead
        )


def seal(segments: Iterable[Segment], earlier: tuple[Sealed, ...]) -> tuple[Sealed, ...]:
    """The parts after more segments were sealed. The new part is merged with the latest parts while
    these are no larger.

    segments: the segments that are sealed.
    earlier: the parts that there are."""
    together = {segment.id: segment for segment in segments}
    while earlier and len(earlier[-1].segments) <= min(len(together), MOST_MERGED):
        *rest, last = earlier
        together |= {segment.id: segment for segment in last.alive()}
        earlier = tuple(rest)
    return (
        *earlier,
        Sealed(together, Part(inverted(together.values()), lambda _: together)),
    )


def inverted(segments: Iterable[Segment]) -> Postings:
    """Postings of segments, in files that are gone as soon as they are mapped.

    segments: the segments."""
    with (
        tempfile.TemporaryDirectory(prefix="tmnmt-") as folder,
        closing(BothSides(Path(folder))) as sides,
    ):
        for run in in_runs(segments):
            sides.add([segment.id for segment in run], run)
        postings = Path(folder) / "postings"
        sides.write(postings)
        return Postings.open(postings)
