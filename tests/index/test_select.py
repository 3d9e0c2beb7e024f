"""Which of the retrieved pairs are taken, by hand-worked examples."""

from __future__ import annotations

import math
import re

import pytest

from tmnmt.config.options import SELECTIONS, Selection
from tmnmt.errors import UsageError
from tmnmt.index.fuzzy import fuzzy_score
from tmnmt.index.select import (
    CANDIDATES,
    Coverage,
    candidates,
    coverage,
    covered,
    select_greedy,
    select_top,
    selected,
)
from tmnmt.papers.selection import ALPHA, contrastive, walk
from tmnmt.segments import Match, Segment
from tmnmt.text import match_tokens

QUERY = "a b c d e f g h"

HALF = Selection("contrastive", alpha=0.5)


def matches(*sources: str) -> list[Match]:
    found = [
        Match(Segment(src, "", id=i), fuzzy_score(QUERY.split(), match_tokens(src)), 0)
        for i, src in enumerate(sources)
    ]
    return sorted(found, key=lambda match: -match.score)


def chosen(found: list[Match]) -> list[str]:
    return [match.segment.src for match in found]


def test_covered_are_the_tokens_aligned_by_the_edit_distance() -> None:
    assert covered(["a", "b", "c", "d"], ["a", "x", "c", "d", "d"]) == {0, 2, 3}


def test_greedy_prefers_what_is_new_to_what_is_similar() -> None:
    first = "a b c d e x x x"
    alike = "a b c d x x x x"
    other = "x x x x x f g x"
    rest = "x x x x x x x h"
    found = matches(first, alike, other, rest)
    assert chosen(select_greedy(Selection(), QUERY, found, 4)) == [
        first,
        other,
        rest,
    ]  # `alike` covers nothing new
    assert chosen(select_greedy(Selection(), QUERY, found, 2)) == [first, other]
    assert chosen(select_top(Selection(), QUERY, found, 2)) == [first, alike]


def test_greedy_settles_ties_by_score_then_by_order() -> None:
    first, better, worse = "a b c d x x x x", "a x x x e f x x", "x x x x e f x x"
    found = matches(first, worse, better)
    assert chosen(select_greedy(Selection(), QUERY, found, 3)) == [
        first,
        better,
    ]  # both cover e and f
    twice = matches(first, first)
    assert select_greedy(Selection(), QUERY, twice, 2) == twice[:1]


def test_walk_takes_the_next_that_covers_anything_new_where_greedy_takes_the_most() -> None:
    first = "a b c d e x x x"
    alike = "a b c d x x x x"
    little = "a b x x x f x x"
    much = "x x x x x f g x"
    found = matches(first, alike, little, much)
    assert chosen(found) == [first, alike, little, much]  # 5/8, 4/8, 3/8, 2/8
    assert chosen(walk(Selection(), QUERY, found, 4)) == [
        first,
        little,
        much,
    ]  # f, then g; `alike` adds nothing
    assert chosen(walk(Selection(), QUERY, found, 2)) == [first, little]
    assert chosen(select_greedy(Selection(), QUERY, found, 4)) == [
        first,
        much,
    ]  # f and g at once: nothing is left for `little`


def test_walk_takes_no_pair_that_covers_nothing() -> None:
    assert walk(Selection(), QUERY, matches("x y z"), 3) == []


def test_contrastive_trades_likeness_to_the_query_for_likeness_to_the_chosen() -> None:
    first = "a b c d e f x x"
    alike = "a b c d e x x x"
    other = "x x x x e f g h"
    rest = "x x x x x x g h"
    found = matches(first, alike, other, rest)
    assert chosen(found) == [first, alike, other, rest]  # scores 6/8, 5/8, 4/8, 2/8
    # sim to first: alike 7/8, other 2/8, rest 0:
    #     5/8 - 7/16 = 3/16;  4/8 - 2/16 = 6/16;  2/8 - 0 = 4/16
    # mean sim to first and other: alike (7/8 + 1/8) / 2, rest (0 + 6/8) / 2:
    #     5/8 - 1/4 = 6/16;  2/8 - 3/16 = 1/16
    assert chosen(contrastive(HALF, "", found, 4)) == [
        first,
        other,
        alike,
        rest,
    ]
    assert chosen(contrastive(HALF, "", found, 2)) == [first, other]
    assert contrastive(Selection("contrastive", alpha=0), "", found, 4) == select_top(
        Selection(), QUERY, found, 4
    )


def test_the_contrastive_penalty_is_the_mean_over_those_chosen_not_the_sum() -> None:
    scores = {"a b": 1.0, "c d": 0.9, "a d": 0.6, "e f": 0.3}
    found = [Match(Segment(src, ""), score, 0) for src, score in scores.items()]
    # third: "a d" 0.6 - 0.5 * (0.5 + 0.5) / 2 = 0.35, with the sum it would be 0.1; "e f" 0.3
    assert chosen(contrastive(HALF, "", found, 4)) == [
        "a b",
        "c d",
        "a d",
        "e f",
    ]


def test_contrastive_settles_ties_by_rank() -> None:
    found = [
        Match(Segment(src, ""), score, 0)
        for src, score in (("a b", 1.0), ("c d", 0.3), ("a e", 0.55))
    ]
    # 0.3 - 0.5 * 0 = 0.55 - 0.5 * 0.5, which in floating point is a little more than 0.3
    assert chosen(contrastive(HALF, "", found, 2)) == ["a b", "c d"]


def test_bleu_ranks_whole_phrases_over_scattered_words() -> None:
    scattered, phrase = "a x c x e x g h", "a b c d x x x x"
    found = matches(scattered, phrase)
    assert [match.score for match in found] == [5 / 8, 4 / 8]
    ranked = selected(Selection(similarity="bleu"), QUERY, found, 2)
    assert chosen(ranked) == [phrase, scattered]
    # n-grams in common, one more in both from n = 2 on: 4/8 4/8 3/7 2/6, and 5/8 2/8 1/7 1/6
    assert ranked[0].score == pytest.approx((4 / 8 * 4 / 8 * 3 / 7 * 2 / 6) ** 0.25)
    assert ranked[1].score == pytest.approx((5 / 8 * 2 / 8 * 1 / 7 * 1 / 6) ** 0.25)
    assert chosen(selected(Selection("greedy", "bleu"), QUERY, found, 1)) == [phrase]


def test_bleu_can_penalise_too() -> None:
    first, alike, other = "a b c d e f x x", "a b c d e y y y", "y y y e f g h y"
    found = matches(first, alike, other)
    # common n-grams, one more in both from n = 2 on; with the query: 6/8 6/8 5/7 4/6, 5/8 5/8 4/7
    # 3/6, 4/8 4/8 3/7 2/6; `alike` has 5, 4, 3, 2 in common with `first`, `other` 2, 1, 0, 0
    value = {
        alike: (5 / 8 * 5 / 8 * 4 / 7 * 3 / 6) ** 0.25
        - 0.5 * (5 / 8 * 5 / 8 * 4 / 7 * 3 / 6) ** 0.25,
        other: (4 / 8 * 4 / 8 * 3 / 7 * 2 / 6) ** 0.25
        - 0.5 * (2 / 8 * 2 / 8 * 1 / 7 * 1 / 6) ** 0.25,
    }
    assert value[other] > value[alike]
    for alpha, second in ((0.5, other), (0.1, alike), (None, alike)):
        assert chosen(selected(Selection("contrastive", "bleu", alpha), QUERY, found, 2)) == [
            first,
            second,
        ]


def test_every_method_can_be_named() -> None:
    first = "a b c d e x x x"
    alike = "a b c d x x x x"
    little = "a b x x x f x x"
    much = "x x x x x f g x"
    found = matches(first, alike, little, much)
    names = [*SELECTIONS]
    alpha = {"contrastive": 0.5}
    taken = {
        name: chosen(selected(Selection(name, alpha=alpha.get(name)), QUERY, found, 2))
        for name in names
    }
    assert taken == {
        "topk": [first, alike],
        "greedy": [first, much],
        "walk": [first, little],
        "contrastive": [first, much],
    }


def test_alpha_says_how_much_likeness_to_the_chosen_counts() -> None:
    found = matches("a b c d e x x x", "a b c d x x x x", "x x x x x f g x")
    # after the first: 4/8 - 7/8 alpha and 2/8 - 1/8 alpha, equal at alpha 1/3
    first, alike, much = chosen(found)
    for alpha, second in ((0.3, alike), (0.34, much), (0, alike), (None, alike)):
        assert chosen(selected(Selection("contrastive", alpha=alpha), QUERY, found, 2)) == [
            first,
            second,
        ]
    assert ALPHA < 1 / 3


@pytest.mark.parametrize(
    ("method", "similarity", "alpha", "message"),
    [
        ("best", "fuzzy", None, "select best is unknown; allowed: topk, greedy, walk, contrastive"),
        ("topk", "chrf", None, "similarity chrf is unknown; allowed: fuzzy, bleu"),
        ("greedy", "fuzzy", 0.5, "alpha is of select contrastive, and select is greedy"),
        ("contrastive", "fuzzy", -0.1, "alpha is -0.1; it must be at least 0, and finite"),
        (
            "contrastive",
            "fuzzy",
            math.nan,
            "alpha is nan; it must be at least 0, and finite",
        ),
        (
            "contrastive",
            "fuzzy",
            math.inf,
            "alpha is inf; it must be at least 0, and finite",
        ),
    ],
)
def test_a_selection_that_there_is_not_is_wrong_usage(
    method: str, similarity: str, alpha: float | None, message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Selection(method, similarity, alpha)


def test_only_the_first_k_by_fuzzy_score_need_no_candidates_beside_them() -> None:
    assert candidates(Selection(), 4) == 4
    assert (
        candidates(Selection("topk", "bleu"), 4) == candidates(Selection("walk"), 4) == CANDIDATES
    )
    assert candidates(Selection("greedy"), CANDIDATES + 1) == CANDIDATES + 1


def test_coverage_says_what_a_pair_covers_and_what_none_before_it_does() -> None:
    found = matches("a b c d e x x x", "x x x x e f g x")
    assert coverage(QUERY, found) == [
        Coverage((0, 1, 2, 3, 4), (0, 1, 2, 3, 4)),
        Coverage((4, 5, 6), (5, 6)),
    ]
    assert coverage("the cat the", matches("the dog the")) == [
        Coverage((0, 2), (0, 2))
    ]  # by place, not by word


@pytest.mark.parametrize("similarity", ["fuzzy", "bleu"])
@pytest.mark.parametrize("method", ["topk", "greedy", "walk", "contrastive"])
def test_nothing_is_chosen_from_nothing(method: str, similarity: str) -> None:
    assert selected(Selection(method, similarity), QUERY, [], 3) == []
    assert selected(Selection(method, similarity), "", [], 3) == []
