"""One generation of an index, open: what was built, which never changes, and over it what was changed since."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tmnmt.errors import DataError
from tmnmt.index.delta import Delta
from tmnmt.index.filter import EVERYTHING, Filter
from tmnmt.index.journal import Change, Journal
from tmnmt.index.manifest import Manifest, check_files
from tmnmt.index.postings import Hit, Postings, Wanted
from tmnmt.index.store import Store
from tmnmt.segments import Segment


class UnknownIdError(DataError):
    """No segment of the memory has this id."""


class Generation:
    """`delta` finds what was added or corrected; the postings' hits with an id in `dead` are out of date. Only
    `refresh` changes anything: it wants a lock, and whoever searches takes `delta`'s answer and `dead` under it."""

    def __init__(self, manifest: Manifest, index_dir: Path) -> None:
        check_files(manifest, index_dir)
        self.manifest = manifest
        self.postings = Postings.open(manifest.postings_dir(index_dir))
        self.store = Store.read(manifest.store_path(index_dir))
        self.journal = Journal(manifest.journal_path(index_dir))
        self.delta = Delta()
        self.dead: frozenset[int] = frozenset()
        self.last_id = manifest.last_id  # the greatest id ever given
        self._changed: dict[int, Segment | None] = {}  # every id in the journal, as it is now
        self.refresh()

    def __len__(self) -> int:
        alive = sum(segment is not None for segment in self._changed.values())
        return self.manifest.segments - len(self.dead) + alive

    def refresh(self) -> None:
        """Takes over the changes that were acknowledged since the last time."""
        if changes := self.journal.read():
            self._apply(changes)

    def append(self, changes: Sequence[Change]) -> None:
        """Makes changes durable, and takes them over. Only under the index's lock, and refreshed."""
        self.journal.append(changes)
        self.refresh()

    def by_ids(self, ids: Iterable[int]) -> dict[int, Segment]:
        """The segments with these ids as they are now. Raises UnknownIdError where one is not or no more there."""
        found: dict[int, Segment] = {}
        for number in ids:
            segment = self._changed[number] if number in self._changed else self._built(number)
            if segment is None:
                raise UnknownIdError(f"{self.store.path.parent.parent}: there is no segment {number}")
            found[number] = segment
        return found

    def found(self, ids: Iterable[int]) -> dict[int, Segment]:
        """Those of the segments with these ids that there are, as they are now."""
        wanted = list(dict.fromkeys(ids))
        found = self.store.found([number for number in wanted if number not in self._changed])
        changed = {number: self._changed[number] for number in wanted if number in self._changed}
        return found | {number: segment for number, segment in changed.items() if segment is not None}

    def segments(self, wanted: Filter = EVERYTHING) -> Iterator[Segment]:
        """The segments that are meant, as they are now, in order of id."""
        changed = dict(self._changed)
        later = [segment for segment in changed.values() if segment is not None and wanted.keeps(segment)]
        built = (segment for segment in self.store.chosen(wanted) if segment.id not in changed)
        return heapq.merge(built, sorted(later, key=_number), key=_number)

    def held(
        self,
        queries: Sequence[Wanted],
        k: int,
        threshold: float,
        without_equal: bool,
        threads: int,
        dead: frozenset[int],
    ) -> list[list[Hit]]:
        """For every query the at most `k` best hits of the postings that are not `dead`. Exact: hits come in one order,
        so the first of a longer list are the first; where too many of them are dead, twice as many are asked for."""
        found: list[list[Hit]] = [[] for _ in queries]
        left, size = list(range(len(queries))), k
        while left:
            some = [queries[i] for i in left]
            answers = self.postings.search(some, size, threshold, without_equal=without_equal, threads=threads)
            short = []
            for i, hits in zip(left, answers, strict=True):
                found[i] = [hit for hit in hits if hit.id not in dead][:k] if dead else hits
                if len(found[i]) < k and len(hits) == size:
                    short.append(i)
            left, size = short, 2 * size
        return found

    def changes(self) -> tuple[int, int, int]:
        """How many segments were added, corrected and deleted since the generation was built, and stay so."""
        alive = sum(segment is not None for segment in self._changed.values())
        corrected = sum(self._changed[number] is not None for number in self.dead)
        return alive - corrected, corrected, len(self.dead) - corrected

    def close(self) -> None:
        self.store.close()

    def _built(self, number: int) -> Segment | None:
        return self.store.by_ids([number])[number] if self.store.holds(number) else None

    def _apply(self, changes: Sequence[Change]) -> None:
        for number, segment in changes:
            self.delta.remove(number)
            if segment is not None:
                self.delta.add(segment)
            self._changed[number] = segment
            self.last_id = max(self.last_id, number)
        newly_dead = {number for number, _ in changes if number <= self.manifest.last_id}
        if not newly_dead <= self.dead:
            self.dead |= newly_dead


def _number(segment: Segment) -> int:
    return segment.id
