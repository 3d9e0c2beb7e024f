"""What stands before a term, and what depends on it, goes with it: by data, and by the model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tmnmt.config.options import TranslationOptions
from tmnmt.languages import languages
from tmnmt.terms.grammar import agreement, forms_of_word, other_forms, small_words
from tmnmt.translator import Translator

MODEL = Path(__file__).parents[2] / "models" / "law.en-fr"
OTHER_DETERMINERS = ["ma", "ta", "mon", "ton", "quel", "quelle", "tel", "telle", "certain"]
OTHER_DETERMINERS += ["certaine"]
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
        ("la", "délit", True),
        ("cette", "arrêt", True),
        ("la", "forêt", False),
        ("le", "navire", False),  # an ending of both genders
        ("la", "navire", False),
    ],
)
def test_small_words_that_cannot_stand_before_a_noun_are_known(
    small: str, noun: str, excluded: bool
) -> None:
    assert agreement("fr").excludes(small, noun) == excluded
    assert not agreement("xx").excludes(small, noun)


@pytest.mark.parametrize(
    ("lang", "right", "wrong", "noun"),
    [
        ("pt", "da", "do", "função"),
        ("pt", "os", "as", "parâmetros"),
        ("pt", "no", "na", "sistema"),
        ("es", "la", "los", "licencia"),
        ("es", "el", "los", "acta"),
        ("it", "l'", "la", "autorizzazione"),
        ("it", "della", "del", "licenza"),
    ],
)
def test_other_languages_have_their_own_articles(
    lang: str, right: str, wrong: str, noun: str
) -> None:
    assert agreement(lang).excludes(wrong, noun) and not agreement(lang).excludes(right, noun)
    assert {right, wrong} <= small_words(lang).keys()


@pytest.mark.parametrize("lang", languages())
def test_words_of_a_gender_are_small_words_and_of_no_other(lang: str) -> None:
    words = agreement(lang)
    both = words.feminine_words & words.masculine_words
    gendered = words.feminine_words | words.masculine_words | words.masculine_before_consonant
    assert not both and not words.feminine & words.masculine
    assert gendered <= {*small_words(lang), *OTHER_DETERMINERS}


def test_adjectives_have_the_forms_of_their_endings() -> None:
    assert "nulle" in forms_of_word("nul", "fr")
    assert "complète" in forms_of_word("complet", "fr")
    assert "dossiers" in other_forms("dossier", "fr")
    assert "lorsqu'elle" in forms_of_word("lorsqu'il", "fr")
