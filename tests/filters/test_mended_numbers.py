"""A wrong number becomes that of the source, where it is sure which."""

from __future__ import annotations

import pytest

from tmnmt.filters.numbers import mended
from tmnmt.numbers import missing_numbers


@pytest.mark.parametrize(
    ("src", "tgt", "becomes"),
    [
        # what was met
        (
            "the opinion of the European Parliament(2),",
            "l'avis de l'Assemblée (3),",
            "l'avis de l'Assemblée (2),",
        ),
        ("liable under Article 7(2)", "en vertu de l'article 7, point 3", "article 7, point 2"),
        ("The fee is $1,250.00 CAD.", "Le droit est de 1 450,00 $ CAD.", "1 250,00 $"),
        ("The fee is $1,250 a year.", "Le droit est de 1 3850 $ par an.", "de 1 250 $ par"),
        ("$1,250.50 by April 1, 2024", "1 2550.50 au plus tard le 1er avril 2024", "1 250.50 au"),
        ("1,200 or 2,400 ft.", "1 400 ou 2,400 pi", "1 200 ou 2,400 pi"),
        ("Pay $1,000,000 to the Clerk.", "Payer 1 000 $ au greffier.", "Payer 1 000 000 $ au"),
        ("It is 12,345.67 dollars.", "C’est 12,34,67 $.", "C’est 12,345.67 $."),
        ("It is 12,345.67 dollars.", "C’est 12,345,67 $.", "C’est 12,345.67 $."),
        ("The fee is $1,250.50.", "Le droit est de 1 250,50.50 $.", "est de 1 250,50 $."),
        ("a rate of 3.75 %", "un taux de 1 400 %", "de 3.75 %"),
        ("open at 10:30, or 9:05", "ouvert à 10 :30 ou 9: 05", "ouvert à 10:30 ou 9:05"),
        # not sure
        ("5 million people", "5 000 000 de personnes", ""),
        ("10 or 20", "30 ou 40", ""),
        ("10 or 20", "10", ""),
        ("2,500 of rule 1", "de la règle 1 4500 fois", "règle 1 2,500 fois"),
        ("2,500 files", "2 de 3500 fichiers", ""),
        ("10 files", "dix fichiers de 4 personnes et 5", ""),
        ("on 3.4.1999", "le 3/5/1999", ""),
        ("at 3 p.m.", "à 15 heures", ""),
        ("5,000,000 people", "5 millions de personnes", ""),
        # nothing to be mended
        ("12,345.67 and 3", "3 et 12 345,67", ""),
        ("no numbers", "5 fichiers", ""),
    ],
)
def test_one_wrong_number_becomes_that_of_the_source(src: str, tgt: str, becomes: str) -> None:
    """`becomes`: a part of it; empty: nothing changes."""
    made = mended(src, tgt)
    if becomes == "":
        assert made == tgt
    else:
        assert becomes in made and missing_numbers(src, made) == []
