"""What stands before a term, and what depends on it, goes with it: by data, and by the model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tmnmt.config.options import TranslationOptions
from tmnmt.terms.grammar import agreement, forms_of_word, other_forms
from tmnmt.translator import Translator

MODEL = Path(__file__).parents[2] / "models" / "law.en-fr"
TERMS = "permit\tlicence\nvessel\tembarcation\nregulation\tordonnance\napplication\tdossier\n"


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("terms") / "terms.txt"
    path.write_text(TERMS, encoding="utf-8")
    return Translator.load(MODEL, options=TranslationOptions(terms=path))


@pytest.mark.parametrize(
    ("source", "start"),
    [
        ("The permit is void.", "La licence est nulle"),
        ("The regulation is adopted and is applicable to all ships.", "L’ordonnance est adoptée"),
        ("The applications received by the Minister are examined.", "Les dossiers reçus par"),
    ],
)
def test_what_depends_on_a_term_agrees_with_it(
    translator: Translator, source: str, start: str
) -> None:
    assert translator.translate([source])[0].tgt.startswith(start)


def test_an_article_has_the_gender_of_a_term_that_the_model_hardly_knows(
    translator: Translator,
) -> None:
    found = translator.translate(["A vessel registered in Canada is not exempt."])[0].tgt
    assert found.startswith(("L’embarcation", "Une embarcation"))


@pytest.mark.parametrize(
    ("small", "noun", "excluded"),
    [
        ("un", "embarcation", True),
        ("une", "embarcation", False),
        ("la", "autorisation", True),
        ("l'", "autorisation", False),
        ("ce", "arrêt", True),
        ("son", "redevance", True),
        ("son", "autorisation", False),
        ("la", "dossiers", True),
        ("le", "page", True),
        ("un", "équipage", False),
        ("le", "navire", False),  # an ending of both genders
        ("la", "navire", False),
    ],
)
def test_small_words_that_cannot_stand_before_a_noun_are_known(
    small: str, noun: str, excluded: bool
) -> None:
    assert agreement("fr").excludes(small, noun) == excluded
    assert not agreement("xx").excludes(small, noun)


def test_adjectives_have_the_forms_of_their_endings() -> None:
    assert "nulle" in forms_of_word("nul", "fr")
    assert "complète" in forms_of_word("complet", "fr")
    assert "dossiers" in other_forms("dossier", "fr")
    assert "lorsqu'elle" in forms_of_word("lorsqu'il", "fr")
