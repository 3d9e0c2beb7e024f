"""Numbers that a translation lacks are told as the source has them; how they are grouped is not."""

from __future__ import annotations

import pytest

from tmnmt.numbers import missing_numbers


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
        ("Article 2(1)", "Article 2, paragraphe 1", []),
        # as often as they come
        ("5 of 5", "5", ["5"]),
        ("5", "5 sur 5", []),
        ("section 12", "article 121", ["12"]),
        ("0.5 %", "5 %", ["0.5"]),
        ("2, 3 and 4", "2 et 4", ["3"]),
        ("no numbers", "aucun", []),
        ("seven", "7", []),
        ("7", "sept", ["7"]),
    ],
)
def test_numbers_that_a_translation_lacks(src: str, tgt: str, missing: list[str]) -> None:
    assert missing_numbers(src, tgt) == missing
