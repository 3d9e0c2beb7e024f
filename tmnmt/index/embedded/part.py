"""A part of an index: postings, which of their segments are out of date, and where the others are
fetched from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.concordance import Phrase
from tmnmt.index.embedded.postings import Hit, Postings, PostingsQuery
from tmnmt.segments import Match, Segment


class Kept(NamedTuple):
    """The segments of a part that are meant."""

    of_ids: NDArray[np.bool_]
    by_rank: NDArray[np.uint8]


class Part(NamedTuple):
    """Never changes: what a search has taken stays as it was, whatever is changed meanwhile."""

    postings: Postings
    fetch: Callable[[Sequence[int]], Mapping[int, Segment]]  # segments by id
    dead: frozenset[int] = frozenset()  # ids that are found no more, or elsewhere
    kept: Kept | None = None  # the only ones that are found; None: all

    def search(
        self,
        queries: Sequence[PostingsQuery],
        k: int,
        threshold: float,
        without_equal: bool,
        threads: int,
    ) -> list[list[Match]]:
        """For every query the at most `k` best matches that are not dead, best first."""
        hits_of = self.hits(queries, k, threshold, without_equal, threads)
        segments = self.fetch([hit.id for hits in hits_of for hit in hits])
        return [
            [Match(segments[number], score, edits) for number, edits, score in hits]
            for hits in hits_of
        ]

    def same_skeleton(self, bones: Sequence[str], length: int, k: int) -> Iterable[Segment]:
        """At most `k` segments that are not dead, nearly all of which have this skeleton."""
        return self._fetched(self.postings.same_skeleton(bones, length, k, self._is_meant))

    def covering(
        self, words: Sequence[str], k: int, accepts: Callable[[int], bool]
    ) -> Iterable[Segment]:
        """At most `k` segments that are not dead, and whose ids are accepted, which together cover
        most of the rare phrases of these match tokens."""

        def is_meant(number: int) -> bool:
            return self._is_meant(number) and accepts(number)

        return self._fetched(self.postings.covering(words, k, is_meant))

    def with_phrase(self, phrase: Phrase, k: int) -> Iterable[Segment]:
        """The `k` newest segments that are not dead and have the phrase."""
        meant, size = None if self.kept is None else self.kept.of_ids, k
        while True:
            ids = self.postings.with_phrase(phrase, size, meant)
            alive = [number for number in ids if number not in self.dead][:k]
            if len(alive) == k or len(ids) < size:
                return self._fetched(alive)
            size *= 2

    def hits(
        self,
        queries: Sequence[PostingsQuery],
        k: int,
        threshold: float,
        without_equal: bool,
        threads: int,
    ) -> list[list[Hit]]:
        """As `search`, but ids. Exact: hits come in one order, so the first of a longer list are
        the first; where too many of them are dead, twice as many are asked for."""
        dead, kept = self.dead, None if self.kept is None else self.kept.by_rank
        if not dead:
            return self.postings.search(
                queries, k, threshold, without_equal=without_equal, threads=threads, kept=kept
            )
        hits_of: list[list[Hit]] = [[] for _ in queries]
        left, size = list(range(len(queries))), k
        while left:
            asked = [queries[i] for i in left]
            answers = self.postings.search(
                asked, size, threshold, without_equal=without_equal, threads=threads, kept=kept
            )
            short = []
            for i, hits in zip(left, answers, strict=True):
                hits_of[i] = [hit for hit in hits if hit.id not in dead][:k]
                if len(hits_of[i]) < k and len(hits) == size:
                    short.append(i)
            left, size = short, 2 * size
        return hits_of

    def _is_meant(self, number: int) -> bool:
        return number not in self.dead and (self.kept is None or bool(self.kept.of_ids[number]))

    def _fetched(self, ids: Sequence[int]) -> list[Segment]:
        segments = self.fetch(ids)  # others may be among them
        return [segments[number] for number in ids]
