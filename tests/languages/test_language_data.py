"""The data of single languages: every file holds what its reader takes."""

from __future__ import annotations

import pytest

from tmnmt.languages import Language, data_for, languages, listed
from tmnmt.number_words import Cardinals, NumberWords
from tmnmt.terms.grammar import MIN_LETTERS


@pytest.mark.parametrize("code", languages())
def test_every_file_is_whole(code: str) -> None:
    data = languages()[code]
    assert data != Language(), "it says nothing"
    assert len(data.months.split()) in (0, 12)
    if data.number_stems:
        stems = NumberWords(**data.number_stems)
        assert len(stems.small.split()) == 19 and all(map(stems.stems, range(1, 1000)))
    if data.cardinals:
        values = set(Cardinals(**data.cardinals).by_word().values())
        assert len(values) > 60 and values <= set(range(2, 100))
    for end, others in data.endings.items():
        assert len(end) < MIN_LETTERS + 1 and end not in others
    for forms in data.irregular_forms:
        assert len(set(forms)) == len(forms) > 1


def test_a_language_is_found_whatever_its_region() -> None:
    assert data_for("fr-CA") is data_for("fr_CA") is data_for("FR") is languages()["fr"]
    assert data_for("xx") == data_for("../fr") == data_for("") == Language()


def test_words_of_all_languages_are_listed_together() -> None:
    assert {"der", "nous", "that", "se"} <= set(listed("doubled_words"))
