"""Texts in capitals are read as sentences, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Text
from tmnmt.filters.capitals import as_sentences, in_capitals, pieces_in_capitals, recased
from tmnmt.filters.headings import within_sentence
from tmnmt.filters.letters import capitalised
from tmnmt.records import decode_subwords


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


@example("ı")
@given(st.text())
def test_it_is_letter_for_letter(text: str) -> None:
    shown = as_sentences(recased(Text(text), len))
    assert len(shown) == len(text) and shown.casefold() == recased(Text(text), len).casefold()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the fee is due. the permit is valid!", "The fee is due. The permit is valid!"),
        ('"stop." (go on) now? "yes".', '"stop." (Go on) now? "Yes".'),
        (
            "mr. smith, no. b and j. r. brown inc. of it",
            "Mr. smith, no. b and j. r. brown inc. of it",
        ),
        ("see 3. now. it is.", "See 3. Now. It is."),
    ],
)
def test_every_sentence_begins_with_a_capital(text: str, shown: str) -> None:
    assert as_sentences(text) == shown


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["▁a", "<0xC5>", "<0x82>", "b"], "AŁB"),
        (["<0xC5>", "<0x82>", "<0xC3>", "<0xB3>"], "ŁÓ"),
        (["▁x", "<0xE2>", "<0x82>", "<0xAC>"], "X€"),
        (["<0xC4>", "<0xB1>"], "ı"),  # its capital, I, has one byte
        (["<0xC5>", "y"], "\ufffdY"),
    ],
)
def test_letters_of_bytes_are_shown_in_capitals(pieces: list[str], shown: str) -> None:
    assert "".join(decode_subwords(pieces_in_capitals(pieces))).strip() == shown


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Permits", "permits"),
        ("Minister of Canada", "minister of Canada"),
        ("Short Title", "short title"),
        ("CFIA Inspection", "CFIA inspection"),
        ("permits", None),
        ("The Minister may revoke it.", None),
        ("Fees:", None),
        ("Canada", None),
        ("(Section 1)", None),
        ("", None),
        ("Of " * 13, None),
    ],
)
def test_a_heading_as_within_a_sentence(text: str, read: str | None) -> None:
    def size(word: str) -> int:
        return 1 if word in ("Canada", word.lower()) and word != "canada" else 2

    assert within_sentence(text, size) == read
