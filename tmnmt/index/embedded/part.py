"""A part of an index: postings, which of their segments are out of date, and where the others are
fetched from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.concordance import Phrase
from tmnmt.index.embedded.fragments import Runs, rare, select
from tmnmt.index.embedded.postings import Postings
from tmnmt.segments import Segment


class Subset(NamedTuple):
    """The segments of a part that may be found.

    of_ids: (ids,), by id whether the segment is one.
    by_rank: (segments,), the same by rank."""

    of_ids: NDArray[np.bool_]
    by_rank: NDArray[np.uint8]


class Dead(frozenset[int]):
    """Ids of segments that are found no more, or elsewhere."""

    @cached_property
    def ascending(self) -> NDArray[np.uint32]:
        """(ids,), as compiled code takes them."""
        return np.array(sorted(self), np.uint32)


NONE_DEAD = Dead()


class Part(NamedTuple):
    """A part of an index. It never changes: what a search has taken stays as it was, whatever is
    changed meanwhile.

    postings: the postings.
    fetch: gives segments by their ids.
    dead: ids that are found no more, or elsewhere.
    subset: the only segments that are found; None where all are."""

    postings: Postings
    fetch: Callable[[Sequence[int]], Mapping[int, Segment]]
    dead: Dead = NONE_DEAD
    subset: Subset | None = None

    def with_phrase(self, phrase: Phrase, k: int) -> Iterable[Segment]:
        """The newest segments that are not dead and have a phrase.

        phrase: the phrase.
        k: how many segments are given at most."""
        allowed_ids, size = None if self.subset is None else self.subset.of_ids, k
        while True:
            ids = self.postings.with_phrase(phrase, size, allowed_ids)
            alive = [number for number in ids if number not in self.dead][:k]
            if len(alive) == k or len(ids) < size:
                return self._fetched(alive)
            size *= 2

    def is_meant(self, number: int) -> bool:
        """Whether the segment of an id may be found.

        number: the id."""
        return number not in self.dead and (self.subset is None or bool(self.subset.of_ids[number]))

    def _fetched(self, ids: Sequence[int]) -> list[Segment]:
        segments = self.fetch(ids)  # others may be among them
        return [segments[number] for number in ids]


def covering(
    parts: Sequence[Part], words: Sequence[str], k: int, accepts: Callable[[int], bool]
) -> list[Segment]:
    """The segments of some parts that are not dead and together cover most of a text's rare
    phrases; of equal sources the newest of the last part that has any.

    parts: the parts.
    words: the match tokens of the text.
    k: how many segments are given at most.
    accepts: says of an id whether the segment may be taken."""

    if not parts:
        return []
    order = [*reversed(parts)]  # of equal candidates the first is taken
    starts = np.cumsum([0, *(part.postings.sources for part in order)])
    places = sum((part.postings.places(words) for part in parts), np.zeros(len(words), np.int64))
    is_rare = rare(places)
    of_parts = [part.postings.runs(words, is_rare) for part in order]
    shifted = [
        runs._replace(group=runs.group + start)
        for runs, start in zip(of_parts, starts[:-1].tolist(), strict=True)
    ]
    runs = Runs(*map(np.concatenate, zip(*shifted, strict=True)))

    def newest_of(group: int) -> tuple[int, int] | None:
        row = int(np.searchsorted(starts, group, "right")) - 1
        part = order[row]
        number = part.postings.newest_of(
            group - int(starts[row]), lambda number: part.is_meant(number) and accepts(number)
        )
        return None if number is None else (row, number)

    newest = select(runs, is_rare, int(starts[-1]), k, newest_of)
    return [order[row].fetch([number])[number] for row, number in newest]
