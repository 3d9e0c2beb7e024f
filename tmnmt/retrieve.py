"""The best pairs for a sentence out of several memories, and of what was confirmed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tmnmt.index.base import Index, WritableIndex, best_of
from tmnmt.index.delta import Delta
from tmnmt.index.pairs import OVERSAMPLED, distinct
from tmnmt.index.select import TOP, Selection
from tmnmt.segments import Match, Segment


class Retriever:
    """Searches `indexes` and what `add` was told. Of pairs with equal source and target only the first is given; which
    of them, `selection` says.

    Additions go to `writable`, an index that keeps them for good; without one they last as long as this object."""

    def __init__(
        self, indexes: Sequence[Index], top_k: int, threshold: float, writable: WritableIndex | None = None,
        selection: Selection = TOP,
    ) -> None:  # fmt: skip
        self.indexes, self.top_k, self.threshold, self.writable = list(indexes), top_k, threshold, writable
        self.selection = selection
        self._added = Delta()

    def search(self, texts: Sequence[str]) -> list[tuple[Match, ...]]:
        """For every text its at most `top_k` distinct pairs, chosen from the best; of equal score the newest is the
        better one, then the one with the smallest id."""
        if not texts:
            return []
        wanted = self.selection.candidates(self.top_k) * OVERSAMPLED
        found = [index.search(texts, wanted, self.threshold) for index in self.indexes]
        added = [self._added.search(text, self.threshold, False, "") for text in texts]
        every = ([match for matches in alike for match in matches] for alike in zip(added, *found, strict=True))
        return [tuple(self._choose(text, matches)) for text, matches in zip(texts, every, strict=True)]

    def add(self, segment: Segment) -> None:
        """The next search finds it. Raises LockedError where another process is writing to the index."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")  # to the microsecond: the last word is the newest
        segment = replace(segment, created=segment.created or now, changed=now)
        if self.writable is not None:
            self.writable.add([segment])
        else:
            self._added.add(replace(segment, id=-1))

    def __bool__(self) -> bool:
        """Whether there is anything to be found."""
        return bool(self.indexes) or len(self._added) > 0

    def _choose(self, text: str, matches: list[Match]) -> list[Match]:
        pairs = distinct(best_of(matches, len(matches)))[: self.selection.candidates(self.top_k)]
        return self.selection.choose(text, pairs, self.top_k)
