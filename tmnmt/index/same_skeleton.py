"""Segments of a query's skeleton (`skeleton`): the lookup beside the fuzzy search, whose answers
stay as they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain

from tmnmt.index.base import best_of
from tmnmt.index.fuzzy import edit_distance, score_of
from tmnmt.index.skeleton import bones
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

OF_EQUAL_SOURCES = 4  # segments of one skeleton


def of_skeleton(tokens: Sequence[str], segments: Iterable[Segment], k: int) -> list[Match]:
    """The best of some segments that have the skeleton of a text, a few of equal sources. An index
    finds these by a hash, which other segments may have, too.

    tokens: the match tokens of the text.
    segments: the segments.
    k: how many are given at most."""
    skeleton = bones(tokens)
    if not skeleton:
        return []
    sources = ((segment, match_tokens(segment.src)) for segment in segments)
    of_source = defaultdict[tuple[str, ...], list[Match]](list)
    for segment, source in sources:
        if bones(source) == skeleton:
            of_source[tuple(source)].append(_scored(tokens, segment, source))
    equal = (best_of(matches, OF_EQUAL_SOURCES) for matches in of_source.values())
    return best_of([*chain.from_iterable(equal)], k)


def scored(tokens: Sequence[str], segment: Segment) -> Match:
    """A segment with its fuzzy score beside a text.

    tokens: the match tokens of the text.
    segment: the segment."""
    return _scored(tokens, segment, match_tokens(segment.src))


def _scored(tokens: Sequence[str], segment: Segment, source: Sequence[str]) -> Match:
    edits = edit_distance(tokens, source)
    return Match(segment, score_of(edits, max(len(tokens), len(source))), edits)
