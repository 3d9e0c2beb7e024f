"""Which of the retrieved pairs are taken, by hand-worked examples."""

from __future__ import annotations

from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.index.select import covered, select_greedy, select_top
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

QUERY = "a b c d e f g h"


def matches(*sources: str) -> list[Match]:
    found = [
        Match(Segment(src, "", id=i), fuzzy_score(QUERY.split(), match_tokens(src)), 0) for i, src in enumerate(sources)
    ]
    return sorted(found, key=lambda match: -match.score)


def chosen(found: list[Match]) -> list[str]:
    return [match.segment.src for match in found]


def test_covered_are_the_tokens_aligned_by_the_edit_distance() -> None:
    assert covered(["a", "b", "c", "d"], ["a", "x", "c", "d", "d"]) == {0, 2, 3}


def test_greedy_prefers_what_is_new_to_what_is_similar() -> None:
    first, alike, other, rest = "a b c d e x x x", "a b c d x x x x", "x x x x x f g x", "x x x x x x x h"
    found = matches(first, alike, other, rest)
    assert chosen(select_greedy(QUERY, found, 4)) == [first, other, rest]  # `alike` covers nothing new
    assert chosen(select_greedy(QUERY, found, 2)) == [first, other]
    assert chosen(select_top(found, 2)) == [first, alike]


def test_greedy_settles_ties_by_score_then_by_order() -> None:
    first, better, worse = "a b c d x x x x", "a x x x e f x x", "x x x x e f x x"
    found = matches(first, worse, better)
    assert chosen(select_greedy(QUERY, found, 3)) == [first, better]  # both cover e and f
    twice = matches(first, first)
    assert select_greedy(QUERY, twice, 2) == twice[:1]


def test_nothing_is_chosen_from_nothing() -> None:
    assert select_greedy(QUERY, [], 3) == []
