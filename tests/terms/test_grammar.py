"""Other forms of words, and small words, of the languages that are known."""

from __future__ import annotations

import pytest

from tmnmt.terms.grammar import forms_of_word, other_forms, small_words


@pytest.mark.parametrize(
    ("text", "lang", "form"),
    [
        ("redevance", "fr", "redevances"),
        ("déposer", "fr-CA", "dépose"),
        ("secrétaire d'État", "fr", "secrétaires d'État"),
        ("exercice visé", "fr", "exercices visés"),
        ("matières dangereuses", "fr", "matière dangereuse"),
        ("policy", "en", "policies"),
        ("Frist", "de", "Fristen"),
        ("plazo", "es", "plazos"),
    ],
)
def test_a_term_has_other_forms(text: str, lang: str, form: str) -> None:
    assert form in other_forms(text, lang) and text not in other_forms(text, lang)


def test_what_is_short_or_an_acronym_or_of_another_language_has_none() -> None:
    assert other_forms("loi", "fr") == other_forms("ONTARIO", "fr") == []
    assert other_forms("redevance", "xx") == forms_of_word("payée", "xx") == []
    assert small_words("xx") == {}


def test_words_behind_a_term_follow_it() -> None:
    assert "signé" in forms_of_word("signée", "fr")
    assert forms_of_word("sont", "fr") == ["est"]
    assert forms_of_word("dans", "fr") == [] and forms_of_word("toute", "fr")


def test_small_words_have_the_prepositions_in_them() -> None:
    small = small_words("fr")
    assert small["du"] == small["d'"] == {"de"} and small["la"] == {""}
    assert small["des"] == {"", "de"}
