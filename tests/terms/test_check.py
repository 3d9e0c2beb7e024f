"""Terms that are missing in a translation are named, and forbidden ones that are there."""

from __future__ import annotations

from tmnmt.checks import Check
from tmnmt.terms.check import target_spans, term_checks, unique_target
from tmnmt.terms.find import Finder
from tmnmt.terms.term import Term

BANK = Term("bank", ("rive", "berge"), ("banque",))


def checked(src: str, tgt: str, *terms: Term) -> list[Check]:
    return term_checks([place.term for place in Finder(terms).find(src)], tgt)


def test_one_of_the_targets_is_enough_in_whatever_form() -> None:
    assert checked("the bank of a bank", "les Berges", BANK) == []
    assert checked("the sea", "la mer", BANK) == []


def test_what_is_missing_and_what_is_forbidden_is_named() -> None:
    assert checked("the banks", "les banques", BANK) == [
        Check("terms", "rive / berge for bank"),
        Check("forbidden", "banque for bank"),
    ]
    forbidden = Term("sea", (), ("océan",))
    assert checked("bank of the sea", "rive de l'océan", BANK, forbidden) == [
        Check("forbidden", "océan for sea")
    ]


def test_a_forbidden_form_inside_a_longer_target_is_none() -> None:
    term = Term("bank", ("banque centrale",), ("banque",))
    assert checked("a bank", "une banque centrale", term) == []
    assert [one.name for one in checked("a bank", "une banque", term)] == ["terms", "forbidden"]


def test_it_is_told_where_targets_stand_in_a_translation() -> None:
    text = "Les Rives, la berge et la banque"
    assert [text[a:b] for a, b in target_spans(BANK, text, exact=False)] == ["Rives", "berge"]
    assert [text[a:b] for a, b in target_spans(BANK, text, exact=True)] == ["berge"]
    assert target_spans(BANK, "La RIVE", exact=True) == [(3, 7)]


def test_the_one_target_that_a_translation_has_is_its_choice() -> None:
    term = Term("vessel", ("bâtiment", "navire"), forbidden=("bateau",))
    said = {
        "les navires du Canada": "navire",
        "le Bâtiment, le bateau": "bâtiment",
        "un navire, un bâtiment": None,
        "un bateau": None,
    }
    assert {tgt: unique_target(term, tgt) for tgt in said} == said
