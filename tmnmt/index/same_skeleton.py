"""Segments of a query's skeleton (`skeleton`): the second lookup beside the fuzzy search, whose
answers stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from tmnmt.index.base import Index, best_of
from tmnmt.index.fuzzy import edit_distance, score_of
from tmnmt.index.skeleton import skeleton
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

SKELETONS_A_QUERY = 16  # "Article 0" stands in a memory of laws ten thousand times


@runtime_checkable
class FindsSkeletons(Protocol):
    """An index that keeps the skeletons of its sources."""

    def same_skeleton(
        self, queries: Sequence[str], k: int = SKELETONS_A_QUERY
    ) -> list[list[Match]]:
        """For every query at most `k` segments of its skeleton with their fuzzy scores, best first;
        where there are more, those of as many match tokens, then the newest. A text without words
        or numbers has none."""
        ...


def same_skeleton(
    index: Index, queries: Sequence[str], k: int = SKELETONS_A_QUERY
) -> list[list[Match]]:
    """As `FindsSkeletons.same_skeleton`; nothing of an index that keeps none."""
    if isinstance(index, FindsSkeletons):
        return index.same_skeleton(queries, k)
    return [[] for _ in queries]


def of_skeleton(text: str, segments: Iterable[Segment], k: int) -> list[Match]:
    """The at most `k` best of those segments that have the skeleton of `text`: an index finds them
    by a hash, which others may have."""
    bones, tokens = skeleton(text), match_tokens(text)
    matches = [
        scored(tokens, segment) for segment in segments if skeleton(segment.src) == bones != ()
    ]
    return best_of(matches, k)


def scored(tokens: Sequence[str], segment: Segment) -> Match:
    """A segment with its fuzzy score beside a text of these match tokens."""
    theirs = match_tokens(segment.src)
    edits = edit_distance(tokens, theirs)
    return Match(segment, score_of(edits, max(len(tokens), len(theirs))), edits)
