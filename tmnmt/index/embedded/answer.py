"""What the parts of an embedded index and its latest additions have for a batch of queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from tmnmt.index.base import IndexAnswer, best_of
from tmnmt.index.embedded.delta import Delta
from tmnmt.index.embedded.part import Part, PartAnswer
from tmnmt.index.embedded.prepared import PreparedQuery
from tmnmt.index.same_skeleton import of_skeleton
from tmnmt.segments import Match, Segment


def answers_of_latest(
    delta: Delta,
    queries: Sequence[PreparedQuery],
    is_meant: Callable[[Segment], bool],
    without_equal: bool = False,
) -> list[PartAnswer]:
    """For every query what it wants of the latest additions, in no order.

    delta: the latest additions.
    queries: the queries.
    is_meant: says of a segment whether it may be found.
    without_equal: whether every segment is left out whose source equals the query in match
    tokens."""
    if not delta:
        return [PartAnswer([], [], [])] * len(queries)
    answers = []
    for query in queries:
        matches = list[Match]()
        if query.is_searched:
            similar = delta.search(query, query.limits[1], without_equal)
            matches = [match for match in similar if is_meant(match.segment)]
        equal = [match for match in matches if match.edits == 0 and query.query.same_source]
        skeletons = [*filter(is_meant, delta.same_skeleton(query))]
        answers.append(PartAnswer(matches if query.query.similar else [], equal, skeletons))
    return answers


def answers_of(
    parts: Sequence[Part],
    latest: Sequence[PartAnswer],
    queries: Sequence[PreparedQuery],
    without_equal: bool,
    threads: int,
) -> list[IndexAnswer]:
    """For every query what it wants of the whole index.

    parts: the parts of the index that have postings.
    latest: for every query what the latest additions have.
    queries: the queries.
    without_equal: whether every segment is left out whose source equals the query in match tokens.
    threads: how many threads search."""
    part_answers = [latest]
    for part in parts:
        least_scores = [
            _least_score(query, of_parts)
            for query, *of_parts in zip(queries, *part_answers, strict=True)
        ]
        part_answers.append(part.look_up(queries, least_scores, without_equal, threads))
    return [
        _combine(query, of_parts) for query, *of_parts in zip(queries, *part_answers, strict=True)
    ]


def _combine(query: PreparedQuery, answers: Sequence[PartAnswer]) -> IndexAnswer:
    similar = _ordered([answer.similar for answer in answers])[: query.query.similar]
    copies = _ordered([answer.same_source for answer in answers])
    segments = [*chain.from_iterable(answer.same_skeleton for answer in answers)]
    k = query.query.same_skeleton
    return IndexAnswer(similar, copies, of_skeleton(query.tokens, segments, k) if segments else [])


def _least_score(query: PreparedQuery, answers: Sequence[PartAnswer]) -> float:
    """The score of the last of the most similar segments that a query wants, among those of the
    parts so far; 0 where these are fewer."""
    k = query.query.similar
    if not k or sum(len(answer.similar) for answer in answers) < k:
        return 0.0
    scores = sorted(match.score for answer in answers for match in answer.similar)
    return scores[-k]


def _ordered(answers: Sequence[list[Match]]) -> list[Match]:
    """All matches, best first, of answers of which the first is in no order and each of the others
    is in order."""
    matches = [*chain.from_iterable(answers)]
    if not answers[0] and (len(answers) == 2 or sum(map(bool, answers)) <= 1):
        return matches
    return best_of(matches, len(matches))
