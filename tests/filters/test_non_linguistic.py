"""Texts without words come through as they are."""

from __future__ import annotations

import pytest
from places import ROOT

from tmnmt.engine.settings import Settings
from tmnmt.files.texts import text_of
from tmnmt.filters.non_linguistic import is_non_linguistic, preserve_signs
from tmnmt.models.folder import load_model
from tmnmt.translator import Translator

WORDLESS = ["!", "***", "–", "...", "A", "a)", "A.1", "1.", "10:30", "- 3 -", "€ 5", "12,345.67"]


@pytest.mark.parametrize("text", WORDLESS)
def test_what_has_no_words(text: str) -> None:
    assert is_non_linguistic(text)


@pytest.mark.parametrize("text", ["No.", "(iv)", "5 km", "Art. 5", "是", "Я 5", "é"])
def test_what_has_words(text: str) -> None:
    assert not is_non_linguistic(text)


@pytest.mark.parametrize(
    ("read", "written", "text"),
    [
        ("1,250.50 $", "1 250,50 $", "1 250,50 $"),
        ("$1,250.50", "1 250,50 $", "1 250,50 $"),
        ("(a)", "a)", "a)"),
        ("12,345.67", "12,345,67", "12,345.67"),  # no number
        ("1,234,567", "1,234,567", "1,234,567"),
        ("10:30", "10 30 :30", "10:30"),  # more numbers
        ("$25.00", "25 $", "25 $"),
        ("$25.50", "25 $", "$25.50"),  # fewer digits
        ("***", "**", "***"),
        ("1.", "1)", "1."),
        ("!", "Île-du-Prince-Édouard", "!"),
        ("€ 5", "– argent 5", "€ 5"),
        ("", "rien", ""),
    ],
)
def test_what_stays_of_what_a_model_writes(read: str, written: str, text: str) -> None:
    assert preserve_signs(read, written) == text


def test_they_come_through_a_model() -> None:
    """Also within tags; what is not the model's has no subwords of it."""
    model = load_model(ROOT / "models" / "law-transformer.en-fr")
    translator = Translator(model, None, [], Settings())
    made = translator.translate(WORDLESS, explain=True)
    assert [one.tgt for one in made] == WORDLESS
    assert not made[0].tokens  # the model wrote something else
    tagged = [translator.translate([text])[0].tgt for text in ("<b>!</b>", "<b>***</b> a)")]
    assert tagged == ["<b>!</b>", "<b>***</b> a)"]
    (coded,) = translator.translate([text_of("<i>!</i>", breaks=False)])
    assert coded.tgt == "!" and len(coded.tgt_codes) == 2
