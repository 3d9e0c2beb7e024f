"""How translations end."""

from __future__ import annotations

import pytest

from tmnmt.ends import is_phrase, marks_of, mended_end, wrong_end


@pytest.mark.parametrize(
    ("src", "tgt", "expected"),
    [
        ("The permit is void.", "Le permis est nul", "Le permis est nul."),
        ("The permit is void.", "Le permis est nul :", "Le permis est nul."),
        ("Is it void?", "Est-il nul.", "Est-il nul?"),
        ("Is it void?", "Est-il nul ?", "Est-il nul ?"),
        ("Name:", "Nom", "Nom:"),
        ("the permit", "le permis :", "le permis"),
        ("the permit", "le permis.", "le permis"),
        ("Wait…", "Attendez...", "Attendez..."),
        ("as in this line::", "comme dans cette ligne :", "comme dans cette ligne::"),
        ("as in this line::", "comme dans cette ligne:::", "comme dans cette ligne::"),
        ("as in this line::", "comme dans cette ligne\u00a0::", "comme dans cette ligne\u00a0::"),
        # left as they are
        ("the notice;", "l’avis.", "l’avis."),
        ("No assignment, etc.", "Aucune cession", "Aucune cession"),
        ("Free", "En fr.", "En fr."),
        ("the Minister may", "le ministre peut :", "le ministre peut :"),
        ("in the case of a person who holds a permit", "si la personne :", "si la personne :"),
        (
            "the owner, the holder and",
            "le propriétaire, le titulaire;",
            "le propriétaire, le titulaire;",
        ),
        ("Acme Canada Limited", "Acme Canada ltée.", "Acme Canada ltée."),
        ("the “permit”", "le « permis ».", "le « permis »."),
        ("The permit (see note.)", "Le permis (voir la note)", "Le permis (voir la note)"),
        ("12", "12.", "12."),
        ("The permit is void.", "", ""),
    ],
)
def test_a_translation_ends_as_its_source(src: str, tgt: str, expected: str) -> None:
    assert mended_end(src, tgt, "en", "fr-CA") == expected
    assert bool(wrong_end(src, tgt, "en", "fr")) == (tgt != expected)
    assert not wrong_end(src, expected, "en", "fr")


@pytest.mark.parametrize(
    ("lang", "src", "expected"),
    [
        ("zh", "It is void.", "它无效。"),
        ("zh-TW", "Is it void?", "它无效？"),
        ("hi", "It is void.", "它无效।"),
        ("el", "Is it void?", "它无效;"),
        ("ar", "Is it void?", "它无效؟"),
    ],
)
def test_marks_of_other_languages(lang: str, src: str, expected: str) -> None:
    assert mended_end(src, "它无效", "en", lang) == expected
    assert mended_end(src, expected, "en", lang) == expected
    assert marks_of(lang).ending(expected).mark == src[-1]
    assert mended_end(expected, "It is void", lang, "en")[-1] == src[-1]


@pytest.mark.parametrize("text", ["the vessel", "Vessel", "date of birth", "R&D costs", "船舶"])
def test_phrases(text: str) -> None:
    assert is_phrase(text, "en")


@pytest.mark.parametrize(
    "text", ["the permit.", "a; b", "the Minister may", "A person who", "12", "a b c d e f g", ""]
)
def test_what_is_no_phrase(text: str) -> None:
    assert not is_phrase(text, "en")
