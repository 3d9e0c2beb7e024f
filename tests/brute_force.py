"""What a search must find: real segments, scored one by one with rapidfuzz."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from places import JRC
from rapidfuzz.distance import Levenshtein

from tmnmt.formats import read_memory
from tmnmt.index.base import (
    SKELETONS_A_QUERY,
    Index,
    IndexAnswer,
    IndexQuery,
    same_source_by_search,
)
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

DATES = ("", "2020-01-01T00:00:00Z", "2021-06-01T00:00:00Z")


@cache
def real_segments() -> tuple[Segment, ...]:
    dates = random.Random(1)
    segments = [
        replace(segment, changed=dates.choice(DATES)) for segment in read_memory(JRC, "en", "fr")
    ]
    segments.insert(100, Segment(" \t", "no tokens"))
    return tuple(replace(segment, id=i) for i, segment in enumerate(segments, 1))


CHARACTERS: dict[str, str] = {}


@cache
def written(text: str) -> str:
    """One character a token, as rapidfuzz compares fastest."""
    return "".join(
        CHARACTERS.setdefault(token, chr(1 + len(CHARACTERS))) for token in match_tokens(text)
    )


def brute_force(
    query: str, segments: Sequence[Segment], k: int, threshold: float
) -> list[tuple[int, float]]:
    """Every segment scored by rapidfuzz; best first, then newest, then smallest id."""
    x, found = written(query), []
    for segment in segments:
        y = written(segment.src)
        if x and y:
            score = 1.0 - Levenshtein.distance(x, y) / max(len(x), len(y))
            if score >= threshold - 1e-9:
                found.append((segment, score))
    found.sort(key=lambda hit: hit[0].id)
    found.sort(key=lambda hit: hit[0].changed, reverse=True)
    found.sort(key=lambda hit: hit[1], reverse=True)
    return [(segment.id, score) for segment, score in found[:k]]


def pairs(matches: list[Match]) -> list[tuple[int, float]]:
    return [(match.segment.id, match.score) for match in matches]


def queries(count: int, seed: int) -> list[str]:
    """Real sources, half of them with some words replaced, swapped, doubled or left out."""
    draw = random.Random(seed)
    made = []
    for segment in draw.sample(real_segments(), count):
        words = segment.src.split()
        for _ in range(draw.choice([0, 0, 1, 3, 8]) if words else 0):
            at = draw.randrange(len(words))
            words[at : at + 1] = draw.choice(
                [[], ["the"], ["unheard"], [words[at], words[at]], words[at : at + 2][::-1]]
            )
            words = words or ["Article"]
        made.append(" ".join(words))
    return made


def same_skeleton(
    index: Index, texts: Sequence[str], k: int = SKELETONS_A_QUERY
) -> list[list[Match]]:
    """What an index has of the skeleton of every text."""
    answers = index.look_up([IndexQuery(text, same_skeleton=k) for text in texts])
    return [answer.same_skeleton for answer in answers]


def looked_up(index: Index, queries: Sequence[IndexQuery]) -> list[IndexAnswer]:
    """What one lookup gives, however much was compared for it."""
    return [answer._replace(work=None) for answer in index.look_up(queries)]


def separate_lookups(index: Index, query: IndexQuery) -> IndexAnswer:
    """What separate lookups give for one query: a search, searches for more and more copies, and a
    lookup of the skeleton alone."""
    text = query.text
    similar = index.search([text], query.similar, query.threshold) if query.similar else [[]]
    copies = same_source_by_search(index, [text])[text] if query.same_source else []
    (bones,) = same_skeleton(index, [text], query.same_skeleton)
    return IndexAnswer(similar[0], copies, bones)
