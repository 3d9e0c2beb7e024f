"""Which of the retrieved pairs the decoder gets: the K best, or greedily those that cover the source."""

from __future__ import annotations

from collections.abc import Sequence

from tmnmt.index.fuzzy import word_edits
from tmnmt.segments import Match
from tmnmt.text import match_tokens


def select_top(matches: Sequence[Match], k: int) -> list[Match]:
    """The first `k` of `matches`, which are best first."""
    return list(matches[:k])


def select_greedy(query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """At most `k` of `matches`: the best score first, then always the pair that covers most source tokens not
    covered yet, ties by score; ends when no pair covers anything new (METHODS, *Search*)."""
    tokens = match_tokens(query)
    left = [(match, covered(tokens, match_tokens(match.segment.src))) for match in matches]
    chosen: list[Match] = []
    seen: set[int] = set()
    while left and len(chosen) < k:
        best = 0 if not chosen else max(range(len(left)), key=lambda i: (len(left[i][1] - seen), left[i][0].score, -i))
        match, positions = left.pop(best)
        if chosen and not positions - seen:
            break
        chosen.append(match)
        seen |= positions
    return chosen


def covered(query_tokens: Sequence[str], source_tokens: Sequence[str]) -> frozenset[int]:
    """The positions of the query's tokens that the source also has, by the edit distance's own alignment."""
    edits = word_edits(query_tokens, source_tokens)
    return frozenset(i for edit in edits if edit.tag == "equal" for i in range(edit.x_start, edit.x_end))
