"""A part of an index: postings, which of their segments are out of date, and where the others are
fetched from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.base import COPIES, WIDER
from tmnmt.index.concordance import Phrase
from tmnmt.index.embedded.fragments import Runs, rare, select
from tmnmt.index.embedded.postings import Hit, Postings
from tmnmt.index.embedded.prepared import PreparedQuery
from tmnmt.segments import Match, Segment


class Subset(NamedTuple):
    """The segments of a part that may be found.

    of_ids: (ids,), by id whether the segment is one.
    by_rank: (segments,), the same by rank."""

    of_ids: NDArray[np.bool_]
    by_rank: NDArray[np.uint8]


class PartAnswer(NamedTuple):
    """What a part has for a query.

    similar: the most similar segments, best first.
    same_source: all segments of the same source, best first.
    same_skeleton: segments that may have the skeleton, in no order."""

    similar: list[Match]
    same_source: list[Match]
    same_skeleton: list[Segment]


class Part(NamedTuple):
    """A part of an index. It never changes: what a search has taken stays as it was, whatever is
    changed meanwhile.

    postings: the postings.
    fetch: gives segments by their ids.
    dead: ids that are found no more, or elsewhere.
    subset: the only segments that are found; None where all are."""

    postings: Postings
    fetch: Callable[[Sequence[int]], Mapping[int, Segment]]
    dead: frozenset[int] = frozenset()
    subset: Subset | None = None

    def look_up(
        self,
        queries: Sequence[PreparedQuery],
        least_scores: Sequence[float],
        without_equal: bool,
        threads: int,
    ) -> list[PartAnswer]:
        """For every query what it wants of the segments that are not dead. Each segment is fetched
        once.

        queries: the queries.
        least_scores: for every query a score below which it wants no similar segment, whatever its
        threshold is: other parts have enough of it.
        without_equal: whether every segment is left out whose source equals the query in match
        tokens.
        threads: how many threads search."""
        hits = self._searched(queries, least_scores, without_equal, threads)
        sources = self._same_source(queries, hits, threads)
        skeletons = self.postings.same_skeleton(queries, self.is_meant)
        ids = (hit.id for hits_of in (*hits, *sources) for hit in hits_of)
        segments = self.fetch([*dict.fromkeys(chain(ids, *skeletons))])
        answers = []
        for query, alike, equal_hits, bones in zip(queries, hits, sources, skeletons, strict=True):
            similar = [Match(segments[number], score, edits) for number, edits, score in alike]
            copies = similar[: len(equal_hits)]
            if len(copies) < len(equal_hits):
                copies = [Match(segments[hit.id], hit.score, hit.edits) for hit in equal_hits]
            reported = similar if query.query.similar else []
            answers.append(PartAnswer(reported, copies, [segments[number] for number in bones]))
        return answers

    def _searched(
        self,
        queries: Sequence[PreparedQuery],
        least_scores: Sequence[float],
        without_equal: bool,
        threads: int,
    ) -> list[list[Hit]]:
        """The hits of every query's search, within its limits."""
        hits: list[list[Hit]] = [[] for _ in queries]
        groups = defaultdict[int, list[int]](list)
        for row, query in enumerate(queries):
            if query.is_searched:
                groups[query.limits[0]].append(row)
        for k, rows in groups.items():
            together = [queries[row] for row in rows]
            thresholds = [max(queries[row].limits[1], least_scores[row]) for row in rows]
            hits_of_each = self.hits(together, k, thresholds, without_equal, threads)
            for row, hits_of in zip(rows, hits_of_each, strict=True):
                hits[row] = hits_of
        return hits

    def _same_source(
        self, queries: Sequence[PreparedQuery], hits: Sequence[Sequence[Hit]], threads: int
    ) -> list[list[Hit]]:
        """The hits of the same source of every query that wants them. These come first among all
        hits; where nothing else is among them, more are asked for, until these are all."""
        equal_hits: list[list[Hit]] = [[] for _ in queries]
        remaining = list[int]()
        for row, (query, hits_of) in enumerate(zip(queries, hits, strict=True)):
            if query.query.same_source:
                equal_hits[row] = [hit for hit in hits_of if hit.edits == 0]
                if len(equal_hits[row]) == query.limits[0]:
                    remaining.append(row)
        size = COPIES * WIDER
        while remaining:
            further, scores = [queries[row] for row in remaining], [1.0] * len(remaining)
            hits_of_each = self.hits(further, size, scores, False, threads)
            for row, hits_of in zip(remaining, hits_of_each, strict=True):
                equal_hits[row] = [hit for hit in hits_of if hit.edits == 0]
            remaining = [row for row in remaining if len(equal_hits[row]) == size]
            size *= WIDER
        return equal_hits

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

    def hits(
        self,
        queries: Sequence[PreparedQuery],
        k: int,
        thresholds: Sequence[float],
        without_equal: bool,
        threads: int,
    ) -> list[list[Hit]]:
        """For every query the best hits that are not dead, best first. They are exact: hits come in
        one order, so the first of a longer list are the first. Where too many of them are dead,
        twice as many are looked for.

        queries: the queries.
        k: how many hits are given for a query at most.
        thresholds: for every query the smallest fuzzy score, from 0 to 1.
        without_equal: whether every segment is left out whose source equals the query in match
        tokens.
        threads: how many threads search."""
        dead, allowed = self.dead, None if self.subset is None else self.subset.by_rank
        if not dead:
            return self.postings.search(
                queries,
                k,
                thresholds,
                without_equal=without_equal,
                threads=threads,
                allowed=allowed,
            )
        hits_of: list[list[Hit]] = [[] for _ in queries]
        remaining, size = list(range(len(queries))), k
        while remaining:
            pending = [queries[i] for i in remaining]
            answers = self.postings.search(
                pending,
                size,
                [thresholds[i] for i in remaining],
                without_equal=without_equal,
                threads=threads,
                allowed=allowed,
            )
            short = []
            for i, hits in zip(remaining, answers, strict=True):
                hits_of[i] = [hit for hit in hits if hit.id not in dead][:k]
                if len(hits_of[i]) < k and len(hits) == size:
                    short.append(i)
            remaining, size = short, 2 * size
        return hits_of

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
