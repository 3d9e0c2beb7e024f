"""Numbers that a translation lacks are told as the source has them; how they are grouped is not."""

from __future__ import annotations

import pytest

from tmnmt.numbers import changed_number_words, missing_numbers


@pytest.mark.parametrize(
    ("src", "tgt", "missing"),
    [
        # what was met
        (
            "The fee is $12,345.67 for 1,000 kg.",
            "Le droit est de 1 345,67 $ pour 1 000 kg.",
            ["12,345.67"],
        ),
        ("The fee is $1,250.00 CAD.", "Le droit est de 1 450,00 $ CAD.", ["1,250.00"]),
        # written in another way
        ("$12,345.67", "12\u00a0345,67 $", []),
        ("12,345.67", "12\u202f345,67", []),
        ("CHF 1'000", "1000 francs", []),
        ("on 31.12.1996", "le 31/12/1996", []),
        ("in 1997 300 people", "en 1997, 300 personnes", []),
        ("1,000,000 and 10", "10 et 1 000 000", []),
        ("３ files", "3 fichiers", []),
        ("$25.00 and $3.0", "25 $ et 3 $", []),
        ("25 and 3.00", "25,00 et 3", []),
        ("1.000", "1", ["1.000"]),
        ("Article 2(1)", "Article 2, paragraphe 1", []),
        # as often as they come
        ("5 of 5", "5", ["5"]),
        ("5", "5 sur 5", []),
        ("section 12", "article 121", ["12"]),
        ("0.5 %", "5 %", ["0.5"]),
        ("2, 3 and 4", "2 et 4", ["3"]),
        # ten or a hundred times as much, and how else digits may stand
        ("2.5 % of it", "25 % de ça", ["2.5"]),
        ("1.5", "15", ["1.5"]),
        ("3.14", "314", ["3.14"]),
        ("10.50", "1050", ["10.50"]),
        ("25", "2,5", ["25"]),
        ("5 %", "2,5 %", ["5"]),
        ("1.05", "1,5", ["1.05"]),
        ("12,345.67", "1234567", ["12,345.67"]),
        ("2.5 or 10.50", "10,50 ou 2,5", []),
        ("1.250", "1,250", []),
        ("1,250", "1250", []),
        ("1.250 and 1250", "1250 et 1,250", []),
        ("1,250.5", "1\u202f250,5", []),
        ("1,00,000", "100 000", []),
        ("Article 7.5", "article 7, point 5", []),
        ("Article 7(5)", "article 7.5", []),
        ("section 1.2.3", "section 123", ["1.2.3"]),
        # a minus, a fraction
        ("at -5 °C", "à 5 °C", ["-5"]),
        ("-5", "5", ["-5"]),
        ("it is -$5", "c'est 5 $", ["-$5"]),
        ("it is -$5", "c'est -5 $", []),
        ("5", "-5", ["5"]),
        ("from -5 to 5", "de −5 à 5", []),
        ("at -5 °C", "à moins 5 °C", []),
        ("from 5 to 10", "5-10", []),
        ("from 5 to 10", "5 -10", []),
        ("- 5 files", "5 fichiers", []),
        ("1/2 of it", "2/1 de ça", ["1/2"]),
        ("1/2 and 2/1", "2/1 et 1/2", []),
        ("1124/77", "77/1124", []),
        # dates
        ("on 2026-01-31", "le 31 janvier 2026", []),
        ("on 2026-03-01", "am 1. März 2026", []),
        ("on 2026-03-01", "on Mar. 1, 2026", []),
        ("on 2026-01-31", "le 31 mars 2026", ["01"]),
        ("on 2026-01-31", "le 30 janvier 2026", ["31"]),
        ("on 2026-01-31", "am 31.1.2026", []),
        ("on 5 May", "am 5.5.", []),
        ("on 01.02.2020", "le 1/2/2020", []),
        ("no numbers", "aucun", []),
        ("seven", "7", []),
        ("7", "sept", ["7"]),
    ],
)
def test_numbers_that_a_translation_lacks(src: str, tgt: str, missing: list[str]) -> None:
    assert missing_numbers(src, tgt) == missing


@pytest.mark.parametrize(
    ("src", "tgt", "languages", "changed"),
    [
        ("within thirty days", "dans les 45 jours", "en fr", ["thirty"]),
        ("within thirty days", "dans les 30 jours", "en fr", []),
        ("within thirty days", "dans les trente jours", "en fr", []),
        ("within thirty days", "dans un délai convenable", "en fr", []),
        ("Two files", "Trois fichiers", "en fr", ["two"]),
        ("Two files of 3", "Deux fichiers sur 3", "en fr", []),
        ("Two files of 3", "Trois fichiers", "en fr", []),
        ("forty-five days", "vierundfünfzig Tage", "en de-AT", ["forty-five"]),
        ("forty-five days", "fünfundvierzig Tage", "en de-AT", []),
        ("soixante et onze jours", "seventy-one days", "fr en", []),
        ("soixante et onze jours", "sixty-one days", "fr en", ["soixante et onze"]),
        ("quatre-vingt-dix-neuf", "ninety-nine", "fr en", []),
        ("dieciséis días", "twenty-six days", "es en", ["dieciseis"]),
        ("veintidós días", "twelve days", "es en", ["veintidos"]),
        ("twenty-one votes", "vingt et une voix", "en fr", []),
        ("- two letters", "- deux lettres", "en fr", []),
        ("un fichier neuf", "two new files", "fr en", []),
        ("two hundred days", "200 jours", "en fr", []),
        ("one hundred and twenty days", "120 jours", "en fr", []),
        ("the two-thirds majority of 5", "la majorité de 5 sur 7", "en fr", []),
        ("two files", "3 ファイル", "en ja", []),
        ("kaksi tiedostoa", "three files", "fi en", []),
    ],
)
def test_number_words_that_a_translation_has_as_another_number(
    src: str, tgt: str, languages: str, changed: list[str]
) -> None:
    assert changed_number_words(src, tgt, *languages.split()) == changed


def test_a_decimal_without_its_zero_is_the_same_number() -> None:
    assert missing_numbers("a grave, .20 m2; or", "0,20 m2 dans le cas d’une tombe") == []
    assert missing_numbers("a grave, .20 m2; or", "20 m2 dans le cas d’une tombe") != []
