"""Pairs that are no translations of each other are found, and the memories that ship have none of
them."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from places import ROOT

from tmnmt.formats import read_memory
from tmnmt.segments import Segment

MEMORIES = ("jrc-acquis.en-fr.tmx.gz", "canadian-law.en-fr.tmx.gz")


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mispaired", ROOT / "memories" / "mispaired.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def document(*pairs: tuple[str, str], name: str = "d") -> list[Segment]:
    return [Segment(src, tgt, name, at) for at, (src, tgt) in enumerate(pairs)]


def test_a_name_before_its_title_and_behind_it_are_both_found(rules: ModuleType) -> None:
    made = document(
        ("JOHN H. SIMS", "Sous-procureur général du Canada"),
        ("Deputy Attorney General of Canada", "JOHN H. SIMS"),
        ("A permit shall not be transferred.", "Le permis est incessible."),
        ("SIGNATURE:", "SIGNATURE :"),
    )
    assert rules.mispaired(made)["order"] == {("d", 0), ("d", 1)}


def test_a_table_sorted_in_each_language_is_found_with_what_lies_between(
    rules: ModuleType,
) -> None:
    made = document(
        ("Butter", "Butter, beurre"),
        ("Saxidomus giganteus", "Tapes philippinarum"),
        ("Cockle", "coque"),
        ("Geoduck", "couteau"),
        ("Tapes philippinarum", "Saxidomus giganteus"),
        ("The end.", "La fin."),
    )
    assert rules.mispaired(made)["order"] == {("d", at) for at in (1, 2, 3, 4)}


def test_the_same_text_far_away_or_in_another_document_says_nothing(rules: ModuleType) -> None:
    apart = [(f"Text {letter}.", f"Texte {letter}.") for letter in "abcdefghijklmnopqrstuvwxyz"]
    made = document(("Note", "Remarque"), *apart, ("Remark", "Note"))
    made += document(("Remark", "Note"), name="e")
    assert not rules.mispaired(made)["order"]


def test_lengths_and_numbers_that_differ_are_found_once(rules: ModuleType) -> None:
    made = document(
        ("Any corporation", "Toute personne morale qui, selon le cas, est propriété exclusive :"),
        ("[Repealed, 2003, c. 26, s. 5]", "[Abrogé, 2003, ch. 26, art. 4]"),
        ("It shall apply from 3 March 1997.", "Il est applicable à partir du 3 mars 1997."),
        ("in the year 2000", "en l’an deux mille"),
        ("In this section,", "Les définitions qui suivent s’appliquent au présent article."),
    )
    found = rules.mispaired(made)
    assert (found["lengths"], found["numbers"]) == ({("d", 0)}, {("d", 1)})


@pytest.mark.parametrize("name", MEMORIES)
def test_the_memories_that_ship_have_no_pair_that_is_found(rules: ModuleType, name: str) -> None:
    segments = list(read_memory(ROOT / "memories" / name, "en", "fr"))
    found = rules.mispaired(segments)
    assert {rule: places for rule, places in found.items() if places} == {}


def test_what_is_listed_is_of_documents_of_these_corpora_and_says_why(rules: ModuleType) -> None:
    rows = [line.split("\t") for line in rules.LISTED.read_text(encoding="utf-8").splitlines()]
    assert rows[0] == ["document", "first", "last", "why"] and len(rows) > 10
    assert all(len(row) == 4 and int(row[1]) <= int(row[2]) and row[3] for row in rows[1:])
    held = {
        name
        for split in (ROOT / "eval" / "splits").glob("*.t*")
        for name in split.read_text(encoding="utf-8").split()
    }
    assert not held & {row[0] for row in rows[1:]}


def test_the_minister_of_a_signature_is_no_longer_a_person(rules: ModuleType) -> None:
    targets = {
        segment.tgt
        for segment in read_memory(ROOT / "memories" / MEMORIES[1], "en", "fr")
        if segment.src == "Deputy Attorney General of Canada"
    }
    assert "JOHN H. SIMS" not in targets
