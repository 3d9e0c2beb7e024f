"""One generation of an index, open: what was built, which never changes, and over it what was
changed since."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from tmnmt.index.base import UnknownIdError
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.embedded.delta_segments import LOOSE, Sealed, inverted, seal
from tmnmt.index.embedded.journal import Change, Journal
from tmnmt.index.embedded.manifest import FORMAT, Manifest, check_files
from tmnmt.index.embedded.part import NONE_DEAD, Dead, Part, Subset
from tmnmt.index.embedded.postings import Postings
from tmnmt.index.embedded.store import Store
from tmnmt.index.filter import NO_FILTER, Filter
from tmnmt.segments import Segment

log = logging.getLogger(__name__)


class Generation:
    """`delta` finds what was added or corrected lately, `parts()` everything else. Only `refresh`
    and `parts` change anything: they want a lock, and whoever searches takes `delta`'s answer and
    the parts under it."""

    def __init__(self, manifest: Manifest, index_dir: Path) -> None:
        """manifest: what the generation holds.
        index_dir: the folder of the index.

        Raises MemoryIndexError where a part is missing or damaged."""
        check_files(manifest, index_dir)
        self.manifest = manifest
        self.store = Store(manifest.generation_dir(index_dir))
        self.journal = Journal(manifest.journal_path(index_dir))
        self.delta = Delta()
        self._base = [Part(postings, self.store.by_ids) for postings in self._postings(index_dir)]
        self._dead = NONE_DEAD  # of what was built
        self._sealed: tuple[Sealed, ...] = ()
        self._loose = LOOSE
        self.last_id = manifest.last_id  # the greatest id ever given
        self._changed: dict[int, Segment | None] = {}  # every id in the journal, as it is now
        self._subsets: WeakKeyDictionary[Postings, dict[Filter, Subset]] = WeakKeyDictionary()
        self.refresh()

    def _postings(self, index_dir: Path) -> list[Postings]:
        """What was built, its parts; made anew for a process where it is of a former format."""
        if self.manifest.format == FORMAT:
            return [*map(Postings.open, self.manifest.postings_dirs(index_dir))]
        log.info(
            "%s: an index of format %d; making what it is searched by again now. After "
            "tmnmt memory compact it keeps it",
            index_dir,
            self.manifest.format,
        )
        return [inverted(self.store)]

    def __len__(self) -> int:
        alive = sum(segment is not None for segment in self._changed.values())
        return self.manifest.segments - len(self._dead) + alive

    def refresh(self) -> None:
        """Takes over the changes that were acknowledged since the last time. Raises
        MemoryIndexError where the journal is missing or damaged."""
        if changes := self.journal.read(self.last_id):
            self._apply(changes)

    def parts(self, conditions: Filter = NO_FILTER) -> list[Part]:
        """All that has postings. What was added lately gets some first where it is much.

        conditions: which segments are found."""
        if len(self.delta) > self._loose:
            self._seal()
        parts, later = [part._replace(dead=self._dead) for part in self._base], self._sealed
        if not conditions:
            return [*parts, *(sealed.part for sealed in later)]
        stored = cache(partial(self.store.ids, conditions))
        return [
            *(self._restricted(part, conditions, stored) for part in parts),
            *(
                self._restricted(addition.part, conditions, partial(addition.ids, conditions))
                for addition in later
            ),
        ]

    def _restricted(self, part: Part, conditions: Filter, ids: Callable[[], list[int]]) -> Part:
        """A part in which only the segments with these `ids` are found, those that are meant; they
        are asked for once."""
        kept_of = self._subsets.setdefault(part.postings, {})
        if conditions not in kept_of:
            of_ids = np.zeros(self.last_id + 1, bool)
            of_ids[ids()] = True
            kept_of[conditions] = Subset(of_ids, part.postings.by_rank(of_ids))
        return part._replace(subset=kept_of[conditions])

    def _seal(self) -> None:
        try:
            self._sealed = seal(self.delta, self._sealed)
        except OSError as error:
            self._loose = 2 * len(self.delta)
            log.warning(
                "no room for postings of what was added, which slows the search: %s", error.strerror
            )
        else:
            self._loose, self.delta = LOOSE, Delta()

    def by_ids(self, ids: Iterable[int]) -> dict[int, Segment]:
        """The segments with these ids as they are now.

        ids: the ids.

        Raises UnknownIdError where one is not or no more there."""
        segments: dict[int, Segment] = {}
        for number in ids:
            segment = self._changed[number] if number in self._changed else self._stored(number)
            if segment is None:
                raise UnknownIdError(
                    f"{self.store.path.parent.parent}: there is no segment {number}"
                )
            segments[number] = segment
        return segments

    def present(self, ids: Iterable[int]) -> dict[int, Segment]:
        """Those of these segments that are there, as they are now, by their ids.

        ids: the ids that are looked for."""
        numbers = list(dict.fromkeys(ids))
        segments = self.store.present(
            [n for n in numbers if n <= self.manifest.last_id and n not in self._changed]
        )
        changed = {number: self._changed[number] for number in numbers if number in self._changed}
        return segments | {
            number: segment for number, segment in changed.items() if segment is not None
        }

    def segments(self, conditions: Filter = NO_FILTER) -> Iterator[Segment]:
        """The segments that meet some conditions, as they are now, in the order of their ids.

        conditions: the conditions."""
        changed = dict(self._changed)
        later = [
            segment
            for segment in changed.values()
            if segment is not None and conditions.keeps(segment)
        ]
        stored = (segment for segment in self.store.select(conditions) if segment.id not in changed)
        return heapq.merge(stored, sorted(later, key=_number), key=_number)

    def changes(self) -> tuple[int, int, int]:
        """How many segments were added, corrected and deleted since the generation was built, and
        stay so."""
        alive = sum(segment is not None for segment in self._changed.values())
        dead = self._dead
        corrected = sum(self._changed[number] is not None for number in dead)
        return alive - corrected, corrected, len(dead) - corrected

    def close(self) -> None:
        self.store.close()

    def _stored(self, number: int) -> Segment | None:
        return self.store.present([number]).get(number)

    def _apply(self, changes: Sequence[Change]) -> None:
        for number, segment in changes:
            self.delta.remove(number)
            if segment is not None:
                self.delta.add(segment)
            self._changed[number] = segment
            self.last_id = max(self.last_id, number)
        numbers = {number for number, _ in changes}
        self._sealed = tuple(sealed.exclude(numbers) for sealed in self._sealed)
        if not (dead := {n for n in numbers if n <= self.manifest.last_id}) <= self._dead:
            self._dead = Dead(self._dead | dead)


def _number(segment: Segment) -> int:
    return segment.id
