"""Terms are found in their forms, the longest first."""

from __future__ import annotations

import random

import pytest

from tmnmt.terms import find
from tmnmt.terms.find import Finder, is_form
from tmnmt.terms.term import Term


def found(text: str, *sources: str, case: bool = False) -> list[str]:
    """The terms found, each as it stands in the text."""
    finder = Finder(Term(source, ("x",), case=case) for source in sources)
    return [text[one.start : one.end] for one in finder.find(text)]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("report", "reports", True),
        ("policy", "policies", True),
        ("impose", "imposing", True),
        ("process", "processes", True),
        ("bank", "banks", True),
        ("form", "former", False),
        ("fee", "fees", True),
        ("act", "acted", False),
        ("employee", "employer", False),
        ("lessees", "lessors", False),
        ("refuse", "refusal", False),
        ("notice", "notify", False),
        ("inspected", "inspector", False),
        ("révoquer", "révoquée", True),
        ("report", "reporting", False),
        ("1999", "19991", False),
        ("rate", "rat", False),
    ],
)
def test_words_that_differ_at_their_ends_are_forms_of_one(one: str, other: str, same: bool) -> None:
    assert is_form(one, other) == is_form(other, one) == same


def test_a_term_is_found_in_another_form_and_with_other_capitals() -> None:
    text = "Central Banks, a central bank's; CENTRAL BANK"
    assert found(text, "central bank") == ["Central Banks", "central bank", "CENTRAL BANK"]
    assert found(text, "central bank", case=True) == ["central bank"]


def test_a_word_of_three_letters_is_found_with_an_s() -> None:
    assert found("fees for a fee", "fee") == ["fees", "fee"] == found("fees for a fee", "fees")
    assert found("feed, feet, feel", "fee", "fees") == []


def test_an_acronym_is_no_word_in_small_letters() -> None:
    assert found("it is IT", "IT") == ["IT"]
    assert found("the nato of NATO", "NATO") == ["NATO"]


def test_of_terms_that_overlap_the_longest_counts() -> None:
    text = "the central bank rate of the bank"
    assert found(text, "bank", "central bank", "bank rate policy", "bank rate") == [
        "central bank",
        "bank",
    ]
    assert found("a bank rate rise cap", "bank rate", "rate rise cap") == ["rate rise cap"]


def test_what_is_written_as_the_term_is_counts_before_its_other_forms() -> None:
    finder = Finder([Term("process", ("a",)), Term("processes", ("b",))])
    assert [one.term.targets for one in finder.find("processes of a process")] == [("b",), ("a",)]


def test_no_part_of_a_word_is_found_and_places_are_those_of_the_text() -> None:
    assert found("embankment bank", "bank") == ["bank"]
    assert found("le caf\u00e9 noir", "cafe\u0301 noir") == ["caf\u00e9 noir"]
    assert found("", "bank") == [] and found("bank", "...", "") == []


def test_of_many_terms_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = random.Random(5)
    words = ["".join(letters.choices("abcdefghij", k=7)) for _ in range(10_000)]
    finder = Finder(Term(word, ("x",)) for word in words)
    asked = list[str]()

    def counting(one: str, other: str) -> bool:
        asked.append(other)
        return is_form(one, other)

    monkeypatch.setattr(find, "is_form", counting)
    text = " ".join(words[:30])
    assert [text[one.start : one.end] for one in finder.find(text)] == words[:30]
    assert len(asked) < 200
