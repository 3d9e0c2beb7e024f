"""Segments of a query's skeleton (`skeleton`): the lookup beside the fuzzy search, whose answers
stay as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tmnmt.index.base import best_of
from tmnmt.index.fuzzy import edit_distance, score_of
from tmnmt.index.skeleton import bones
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens


def of_skeleton(tokens: Sequence[str], segments: Iterable[Segment], k: int) -> list[Match]:
    """The at most `k` best of those segments that have the skeleton of a text of these match
    tokens: an index finds them by a hash, which others may have."""
    skeleton = bones(tokens)
    if not skeleton:
        return []
    sources = ((segment, match_tokens(segment.src)) for segment in segments)
    matches = [_scored(tokens, *source) for source in sources if bones(source[1]) == skeleton]
    return best_of(matches, k)


def scored(tokens: Sequence[str], segment: Segment) -> Match:
    """A segment with its fuzzy score beside a text of these match tokens."""
    return _scored(tokens, segment, match_tokens(segment.src))


def _scored(tokens: Sequence[str], segment: Segment, source: Sequence[str]) -> Match:
    edits = edit_distance(tokens, source)
    return Match(segment, score_of(edits, max(len(tokens), len(source))), edits)
