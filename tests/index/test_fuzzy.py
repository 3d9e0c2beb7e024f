"""The fuzzy score against the textbook's dynamic programme, and its laws."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.index.fuzzy import edit_distance, fuzzy_score, fuzzy_scores, word_edits
from tmnmt.text import match_tokens

TOKENS = st.lists(st.sampled_from(["the", "of", "a", "é", "é", ".", "the"]), max_size=12)


def plain_distance(x: Sequence[str], y: Sequence[str]) -> int:
    row = list(range(len(y) + 1))
    for i, token in enumerate(x, 1):
        above, row = row, [i]
        for j, other in enumerate(y, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (token != other)))
    return row[-1]


@given(TOKENS, TOKENS)
def test_distance_is_that_of_the_plain_programme(x: list[str], y: list[str]) -> None:
    assert edit_distance(x, y) == plain_distance(x, y)


@given(TOKENS, TOKENS)
def test_score_is_symmetric_and_one_only_for_equal_sequences(x: list[str], y: list[str]) -> None:
    score = fuzzy_score(x, y)
    assert score == fuzzy_score(y, x)
    assert 0.0 <= score <= 1.0
    assert (score == 1.0) == (x == y and bool(x))


@given(st.lists(TOKENS, min_size=1, max_size=4))
def test_scores_among_texts_are_those_of_every_two(texts: list[list[str]]) -> None:
    scores = fuzzy_scores(texts)
    for number, text in enumerate(texts):
        assert scores(number).tolist() == [fuzzy_score(other, text) for other in texts]


@given(TOKENS, TOKENS)
def test_word_edits_turn_x_into_y_in_as_many_edits_as_the_distance(
    x: list[str], y: list[str]
) -> None:
    made: list[str] = []
    cost = at = 0
    for edit in word_edits(x, y):
        assert edit.x_start == at
        at = edit.x_end
        made += (
            x[edit.x_start : edit.x_end] if edit.tag == "equal" else y[edit.y_start : edit.y_end]
        )
        cost += (
            0 if edit.tag == "equal" else max(edit.x_end - edit.x_start, edit.y_end - edit.y_start)
        )
    assert (made, at, cost) == (y, len(x), edit_distance(x, y))


@pytest.mark.parametrize(
    ("x", "y", "score"),
    [
        ("a b c d", "a b c d", 1.0),
        ("a b c d", "a x c", 0.5),  # one replaced, one left out, of four
        ("a b", "b a", 0.0),
        ("", "", 0.0),  # a text without tokens matches nothing, not even itself
        ("a", "", 0.0),
    ],
)
def test_score_by_hand(x: str, y: str, score: float) -> None:
    assert fuzzy_score(x.split(), y.split()) == score


def test_equal_fractions_are_equal_scores() -> None:
    assert fuzzy_score(["a", "b", "c"], ["a", "b", "x"]) == fuzzy_score(
        list("abcdefghi"), list("abcdefxyz")
    )


@given(st.text(st.characters(max_codepoint=127), max_size=30) | st.text("a1.,_ ", max_size=450))
def test_ascii_text_has_the_tokens_that_it_has_beside_other_characters(text: str) -> None:
    assert [*match_tokens(text), "é"] == match_tokens(f"{text} é")
