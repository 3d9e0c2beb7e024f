"""Numbers in words, in the languages that are known."""

from __future__ import annotations

import pytest

from tmnmt.number_words import is_written_out


@pytest.mark.parametrize(
    ("number", "text", "language"),
    [
        ("1", "Article premier", "fr"),
        ("10", "dans les dix jours", "fr"),
        ("18", "dix-huit mois", "fr"),
        ("45", "les quarante-cinq jours", "fr"),
        ("72", "soixante-douze heures", "fr"),
        ("90", "quatre-vingt-dix jours", "fr-CA"),
        ("300", "trois cents jours", "fr"),
        ("600", "six cents jours", "fr"),
        ("20", "le vingtième jour", "fr"),
        ("21", "le vingt et unième jour", "fr"),
        ("41", "quarante et une voix", "fr"),
        ("45", "fünfundvierzig Tage", "de"),
        ("30", "dreißig Tage", "de"),
        ("12", "zwölf Monate", "de-AT"),
        ("45", "forty-five days", "en"),
        ("12", "twelfth month", "en"),
        ("16", "dieciséis días", "es"),
        ("2", "segundo", "es"),
    ],
)
def test_a_number_that_is_written_out_is_seen(number: str, text: str, language: str) -> None:
    assert is_written_out(number, text, language)


@pytest.mark.parametrize(
    ("number", "text", "language"),
    [
        ("30", "dans les quinze jours", "fr"),
        ("45", "les quarante jours", "fr"),
        ("1", "un permis, une loi", "fr"),
        ("2.5", "deux et demi", "fr"),
        ("1000", "mille", "fr"),
        ("0", "zéro", "fr"),
        ("10", "dix", "it"),
        ("600", "six jours", "fr"),
        ("3", "quarante-trois jours", "fr"),
        ("40", "quarante-trois jours", "fr"),
        ("81", "quatre-vingts", "fr"),
    ],
)
def test_a_number_that_is_not_there_is_not_taken_for_one(
    number: str, text: str, language: str
) -> None:
    assert not is_written_out(number, text, language)
