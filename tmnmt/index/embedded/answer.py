"""What the parts of an embedded index and its latest additions have for a batch of queries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from tmnmt.index.base import COPIES, WIDER, IndexAnswer, best_of
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.embedded.part import Part
from tmnmt.index.embedded.prepared import PreparedQuery
from tmnmt.index.embedded.search import Hit, SearchResult, search
from tmnmt.index.same_skeleton import of_skeleton
from tmnmt.segments import Match, SearchWork, Segment

_NO_HITS = SearchResult([], SearchWork(0, 0))


class LatestAnswer(NamedTuple):
    """What the latest additions have for a query, in no order.

    similar: the similar segments.
    same_source: all segments of the same source.
    same_skeleton: segments that may have the skeleton."""

    similar: list[Match]
    same_source: list[Match]
    same_skeleton: list[Segment]


def answers_of_latest(
    delta: Delta,
    queries: Sequence[PreparedQuery],
    is_meant: Callable[[Segment], bool],
    without_equal: bool = False,
) -> list[LatestAnswer]:
    """For every query what it wants of the latest additions.

    delta: the latest additions.
    queries: the queries.
    is_meant: says of a segment whether it may be found.
    without_equal: whether every segment is left out whose source equals the query in match
    tokens."""
    if not delta:
        return [LatestAnswer([], [], [])] * len(queries)
    answers = []
    for query in queries:
        matches = list[Match]()
        if query.is_searched:
            similar = delta.search(query, query.limits[1], without_equal)
            matches = [match for match in similar if is_meant(match.segment)]
        equal = [match for match in matches if match.edits == 0 and query.query.same_source]
        skeletons = [*filter(is_meant, delta.same_skeleton(query))]
        answers.append(LatestAnswer(matches if query.query.similar else [], equal, skeletons))
    return answers


def answers_of(
    parts: Sequence[Part],
    latest: Sequence[LatestAnswer],
    queries: Sequence[PreparedQuery],
    without_equal: bool,
    threads: int,
) -> list[IndexAnswer]:
    """For every query what it wants of the whole index. Each segment is fetched once.

    parts: the parts of the index that have postings.
    latest: for every query what the latest additions have.
    queries: the queries.
    without_equal: whether every segment is left out whose source equals the query in match tokens.
    threads: how many threads search."""
    results = _searched(parts, latest, queries, without_equal, threads)
    similar = [
        _best(hits, query.query.similar) for query, (hits, _) in zip(queries, results, strict=True)
    ]
    copies = _same_source(parts, queries, results, without_equal, threads)
    skeletons = [part.postings.same_skeleton(queries, part.is_meant) for part in parts]
    segments = _fetched(parts, [*similar, *copies], skeletons)
    answers = []
    for row, (query, of_latest) in enumerate(zip(queries, latest, strict=True)):
        bones = [
            segments[part][number]
            for part, of_part in enumerate(skeletons)
            for number in of_part[row]
        ]
        bones += of_latest.same_skeleton
        k = query.query.same_skeleton
        answers.append(
            IndexAnswer(
                _matches(similar[row], segments, of_latest.similar)[: query.query.similar],
                _matches(copies[row], segments, of_latest.same_source),
                of_skeleton(query.tokens, bones, k) if bones else [],
                results[row].work,
            )
        )
    return answers


def _searched(
    parts: Sequence[Part],
    latest: Sequence[LatestAnswer],
    queries: Sequence[PreparedQuery],
    without_equal: bool,
    threads: int,
) -> list[SearchResult]:
    """What every query's search finds within its limits, beside the latest additions."""
    results = [_NO_HITS] * len(queries)
    groups = defaultdict[int, list[int]](list)
    for row, query in enumerate(queries):
        if query.is_searched:
            groups[query.limits[0]].append(row)
    for k, rows in groups.items():
        together = [queries[row] for row in rows]
        thresholds = [max(queries[row].limits[1], _least_score(latest[row], k)) for row in rows]
        answers = search(
            parts, together, k, thresholds, without_equal=without_equal, threads=threads
        )
        for row, answer in zip(rows, answers, strict=True):
            results[row] = answer
    return results


def _least_score(latest: LatestAnswer, k: int) -> float:
    """The score of the k-th of the latest additions; 0 where these are fewer."""
    if len(latest.similar) < k:
        return 0.0
    return sorted((match.score for match in latest.similar), reverse=True)[k - 1]


def _best(hits: Sequence[Hit], k: int) -> Sequence[Hit]:
    """Those hits that can be among the best k: no worse than the k-th."""
    if not k or len(hits) <= k:
        return hits if k else []
    cutoff = sorted((hit.score for hit in hits), reverse=True)[k - 1]
    return [hit for hit in hits if hit.score >= cutoff]


def _same_source(
    parts: Sequence[Part],
    queries: Sequence[PreparedQuery],
    results: Sequence[SearchResult],
    without_equal: bool,
    threads: int,
) -> list[list[Hit]]:
    """The hits of the same source of every query that wants them. They come first among all hits of
    a part; where a part has nothing else, more are looked for, until these are all."""
    hits_of: list[list[Hit]] = [[] for _ in queries]
    remaining = list[int]()
    for row, query in enumerate(queries):
        if query.query.same_source:
            hits_of[row] = [hit for hit in results[row].hits if hit.edits == 0]
            if without_equal or _fills_a_part(hits_of[row], query.limits[0]):
                remaining.append(row)
    size = COPIES * WIDER
    while remaining:
        answers = search(
            parts,
            [queries[row] for row in remaining],
            size,
            [1.0] * len(remaining),
            threads=threads,
        )
        for row, answer in zip(remaining, answers, strict=True):
            hits_of[row] = answer.hits
        remaining = [row for row in remaining if _fills_a_part(hits_of[row], size)]
        size *= WIDER
    return hits_of


def _fills_a_part(hits: Sequence[Hit], k: int) -> bool:
    """Whether as many as k of the hits are of one part."""
    return len(hits) >= k and max(Counter(hit.part for hit in hits).values()) >= k


def _fetched(
    parts: Sequence[Part],
    hits_of: Iterable[Sequence[Hit]],
    skeletons: Sequence[Sequence[Sequence[int]]],
) -> list[Mapping[int, Segment]]:
    """The segments of every part that are named, by their ids.

    skeletons: (parts, queries), ids."""
    ids: list[dict[int, None]] = [{} for _ in parts]
    for hits in hits_of:
        for hit in hits:
            ids[hit.part][hit.id] = None
    for number, of_queries in enumerate(skeletons):
        ids[number] |= dict.fromkeys(chain.from_iterable(of_queries))
    return [
        part.fetch([*of_part]) if of_part else {} for part, of_part in zip(parts, ids, strict=True)
    ]


def _matches(
    hits: Sequence[Hit], segments: Sequence[Mapping[int, Segment]], latest: Sequence[Match]
) -> list[Match]:
    """All matches, best first. The hits of a part are in that order."""
    matches = [Match(segments[hit.part][hit.id], hit.score, hit.edits) for hit in hits]
    if not latest and (not hits or hits[0].part == hits[-1].part):
        return matches
    return best_of([*matches, *latest], len(matches) + len(latest))
