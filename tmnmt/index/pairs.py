"""Pairs instead of segments: the same source and target often stand in many documents, and one copy
is enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tmnmt.config.options import Penalties
from tmnmt.index.base import (
    SKELETONS_A_QUERY,
    WIDER,
    Index,
    IndexQuery,
    WritableIndex,
    widened,
)
from tmnmt.index.concordance import Occurrence, Phrase
from tmnmt.index.fuzzy import SLACK
from tmnmt.index.match_value import FULL, IN_FULL, Query, Trust, most_worth, neighbours, valued
from tmnmt.segments import Match

OVERSAMPLED = 3  # times as many segments are searched for as pairs are wanted


def distinct(matches: Iterable[Match]) -> list[Match]:
    """The first match of every pair of source and target.

    matches: the matches."""
    best: dict[tuple[str, str], Match] = {}
    for match in matches:
        best.setdefault((match.segment.src, match.segment.tgt), match)
    return list(best.values())


def search_pairs(
    index: Index, queries: Sequence[str], k: int, threshold: float
) -> list[list[Match]]:
    """For every query its best distinct pairs, each by its first segment. The search is as exact as
    `Index.search`. Where copies take the places, more segments are looked for, until there are `k`
    pairs or no more segments.

    index: the index.
    queries: the texts that are looked for.
    k: how many pairs are given for a query at most.
    threshold: the smallest fuzzy score, from 0 to 1."""
    answers = widened(
        index, queries, k * OVERSAMPLED, threshold, lambda matches: len(distinct(matches)) >= k
    )
    return [distinct(answers[query])[:k] for query in queries]


def concordance_pairs(index: WritableIndex, phrase: Phrase, k: int) -> list[Occurrence]:
    """The newest distinct pairs that have a phrase, each by its newest segment, in the order of
    `WritableIndex.concordance`.

    index: the index.
    phrase: the phrase.
    k: how many pairs are given at most."""
    size = k * OVERSAMPLED
    while True:
        occurrences = index.concordance(phrase, size)
        first = {
            (occurrence.segment.src, occurrence.segment.tgt): occurrence
            for occurrence in reversed(occurrences)
        }
        pairs = [
            occurrence
            for occurrence in occurrences
            if first[occurrence.segment.src, occurrence.segment.tgt] is occurrence
        ]
        if len(pairs) >= k or len(occurrences) < size:
            return pairs[:k]
        size *= WIDER


def search_by_worth(
    index: Index,
    queries: Sequence[Query],
    k: int,
    threshold: float,
    penalties: Penalties = Penalties(),
    trust: Trust = IN_FULL,
) -> list[list[Match]]:
    """For every text the distinct pairs that are worth most, with their worth. Where points are
    taken off those found, more are looked for, until none of the others can be worth more: points
    only lower what a fuzzy score is worth.

    index: the index.
    queries: the texts, and where they stand.
    k: how many pairs are given for a text at most.
    threshold: the smallest fuzzy score, from 0 to 1. A pair of the same skeleton counts where it is
    worth as much in per cent.
    penalties: how many points are taken off, and for what.
    trust: how far the memory is trusted."""
    size = k * OVERSAMPLED
    answers = index.look_up(
        [
            IndexQuery(query.text, size, threshold, same_skeleton=SKELETONS_A_QUERY)
            for query in queries
        ]
    )
    similar = [answer.similar for answer in answers]
    places = neighbours(index, queries, similar)
    best: list[list[Match]] = [[] for _ in queries]
    remaining = list(range(len(queries)))
    while remaining:
        unfinished = []
        for row in remaining:
            matches = similar[row]
            similar_ids = {match.segment.id for match in matches}
            bones = (
                match for match in answers[row].same_skeleton if match.segment.id not in similar_ids
            )
            worth = valued(queries[row], [*matches, *bones], places, penalties, trust)
            enough = [match for match in worth if _is_alike(match, threshold)]
            best[row] = distinct(most_worth(enough, len(enough)))[:k]
            if len(matches) == size and not _surpasses(best[row][k - 1 : k], matches[-1]):
                unfinished.append(row)
        remaining, size = unfinished, size * WIDER
        wider = (
            index.search([queries[row].text for row in remaining], size, threshold)
            if remaining
            else []
        )
        for row, matches in zip(remaining, wider, strict=True):
            similar[row] = matches
    return best


def _is_alike(match: Match, threshold: float) -> bool:
    worth = match.worth.value if match.worth is not None else 0
    return match.score >= threshold - SLACK or worth >= FULL * threshold


def _surpasses(last: Sequence[Match], following: Match) -> bool:
    """Whether the last of the best, if there is one, is better than all from `following` on in the
    order of fuzzy scores."""
    if not last or last[0].worth is None:
        return False
    maximum = int(FULL * following.score + SLACK)
    return (last[0].worth.value, last[0].score) >= (maximum, following.score)


def count_copies(index: Index, matches: Sequence[Match]) -> list[int]:
    """How many segments of the index have the source and the target of each of these matches, at
    least 1. Segments of the same source have a score of 1 with it, and so this is one more search,
    for all of those.

    index: the index.
    matches: the matches."""
    sources = [match.segment.src for match in matches]
    copies_of = copies(index, sources)
    times = {
        source: Counter((m.segment.src, m.segment.tgt) for m in alike)
        for source, alike in copies_of.items()
    }
    # a copy may have been deleted since it was found
    return [
        max(1, times[match.segment.src][match.segment.src, match.segment.tgt]) for match in matches
    ]


def copies(index: Index, queries: Sequence[str]) -> dict[str, list[Match]]:
    """For every query all segments of the index whose source has its match tokens.

    index: the index.
    queries: the texts."""
    texts = list(dict.fromkeys(queries))
    if not texts:
        return {}
    answers = index.look_up([IndexQuery(text, same_source=True) for text in texts])
    sources = [answer.same_source for answer in answers]
    return dict(zip(texts, sources, strict=True))
