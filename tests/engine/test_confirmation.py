"""What a person confirms is checked, in one way for a session here and at a server."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
import torch
from places import ROOT
from tiny_model import write_tiny_model

from tmnmt import Translator
from tmnmt.checks import Check, ChecksError
from tmnmt.codes.record import Code, Text
from tmnmt.config.options import TranslationOptions
from tmnmt.engine.confirmation import confirmation
from tmnmt.errors import UsageError

SPAN = Code(4, "open", "<g1>", "1"), Code(10, "close", "</g1>", "1")


def names(src: str | Text, tgt: str | Text, language: str = "fr") -> list[str]:
    return [check.name for check in confirmation(src, tgt, "en", language, {}).checks]


@pytest.mark.parametrize(
    ("src", "tgt", "checks"),
    [
        ("The permit ends in 30 days.", "Le permis expire dans 30 jours.", []),
        ("The permit ends in 30 days.", "Le permis expire dans trente jours.", []),
        ("The permit ends in 30 days.", "Le permis expire dans 45 jours.", ["numbers"]),
        ("The permit ends in 30 days.", "Le permis expire dans quinze jours.", ["numbers"]),
        ("The fee is 2.5 % of the price.", "Le droit est de 25 % du prix.", ["numbers"]),
        ("The fee is 2.5 % of the price.", "Le droit est de 2,5 % du prix.", []),
        ("It ends within thirty days.", "Il prend fin dans les 45 jours.", ["numbers"]),
        ("It ends within thirty days.", "Il prend fin dans les 30 jours.", []),
        ("Two files are open.", "Trois fichiers sont ouverts.", ["numbers"]),
        ("Valid until 2026-01-31.", "Valable jusqu'au 31 janvier 2026.", []),
        (Text("The permit is void.", SPAN), "Le permis est nul.", ["codes"]),
        ("Press <g1>Save</g1> now", "Appuyez sur Enregistrer", ["codes"]),  # its 1 is no number
        ("Delete %s now", "Supprimer maintenant", ["placeholders"]),
        ("The permit is void.", "The permit is void.", ["untranslated"]),
        ("The permit is void.", "le le permis est nul", ["ends", "repeated"]),
        ("The permit is void.", "x", ["ends", "length"]),
        ("Article 28", "Article 28", []),
        ("Transposition", "Transposition", []),
        ("Scope", "x", ["length"]),
        ("Click <b>here</b> now.", "Cliquez ici maintenant.", ["codes"]),
    ],
)
def test_what_a_person_confirms_is_checked(src: str | Text, tgt: str, checks: list[str]) -> None:
    assert names(src, tgt) == checks


def test_a_number_in_words_counts_in_the_language_of_the_translation_alone() -> None:
    assert names("in 30 days", "in thirty days", "en-GB") == []
    assert names("in 30 days", "in thirty days", "fr") == ["numbers"]
    assert names("in 30 days", "in thirty days", "xx") == ["numbers"]


def test_what_cannot_be_confirmed_is_no_pair() -> None:
    with pytest.raises(UsageError, match="nothing that can be seen"):
        confirmation("The permit is void.", "\u200b", "en", "fr", {})


def test_hardly_any_translation_of_a_person_is_flagged() -> None:
    flagged = pairs = 0
    for name in ("law", "jrc-acquis"):
        path = ROOT / "memories" / "held-out" / f"{name}.test.en-fr.tsv.gz"
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            for row in list(csv.reader(file, "excel-tab", quoting=csv.QUOTE_NONE))[1:1001]:
                pairs += 1
                flagged += bool(names(row[0], row[1]))
    assert pairs == 2000 and flagged <= 0.02 * pairs


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    torch.set_num_threads(1)
    folder: Path = tmp_path_factory.mktemp("confirmation")
    write_tiny_model(folder / "model")
    terms = folder / "terms.csv"
    terms.write_text("source,target\npermit,licence\n", encoding="utf-8")
    return Translator.load(folder / "model", options=TranslationOptions(terms=terms))


def test_a_session_tells_what_the_checks_find_and_learns_it(translator: Translator) -> None:
    session = translator.session()
    src, tgt = "The permit ends in 30 days.", "Le permis expire dans 45 jours."
    checks = [Check("numbers", "30"), Check("terms", "licence for permit")]
    assert session.check(src, tgt) == checks and session.done == []
    assert session.confirm(src, tgt) == checks
    assert session.translate(src).tgt == tgt
    assert session.confirm(src, "La licence expire dans 30 jours.") == []


def test_a_session_refuses_what_the_checks_find_where_it_is_told_to(
    translator: Translator,
) -> None:
    session = translator.session()
    with pytest.raises(
        ChecksError, match=r"not confirmed: ends \(x\), length \(1 characters for 19\)"
    ) as error:
        session.confirm("The notice is void.", "x", on_checks="refuse")
    assert [check.name for check in error.value.checks] == ["ends", "length"]
    assert session.done == []
    assert session.confirm("The notice is void.", "L'avis est nul.", on_checks="refuse") == []
