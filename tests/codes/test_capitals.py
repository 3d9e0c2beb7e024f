"""Texts in capitals are read as sentences, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.codes.capitals import capitalised, in_capitals, recased
from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Text


@pytest.mark.parametrize(
    ("text", "is_so"),
    [
        ("GENERAL PROVISIONS", True),
        ("CLOSE FILE", True),
        ("PART 3 - ÉNERGIE", True),
        ("OPEN https://example.org/a", True),
        ("EEC", False),
        ("TC-2020", False),
        ("No 3 (EEC)", False),
        ("General Provisions", False),
        ("12 %", False),
        ("", False),
        ("委员会", False),
    ],
)
def test_what_is_in_capitals(text: str, is_so: bool) -> None:
    assert in_capitals(with_placeholders(Text(text))) == is_so


def test_every_word_is_as_the_model_knows_it_best_and_placeholders_stay() -> None:
    known = {"the", "minister", "Canada", "EEC", "of", "and"}
    text = with_placeholders(Text("THE MINISTER OF CANADA AND EEC {NAME}"))
    assert recased(text, lambda word: 1 if word in known else 2) == (
        "the minister of Canada and EEC {NAME}"
    )
    assert capitalised("the minister") == "The minister"


@given(st.text())
def test_it_is_letter_for_letter(text: str) -> None:
    shown = capitalised(recased(Text(text), len))
    assert len(shown) == len(text) and shown.casefold() == recased(Text(text), len).casefold()
