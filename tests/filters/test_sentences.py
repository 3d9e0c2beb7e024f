"""A sentence that a translation has lost, and a label or the text behind it."""

from __future__ import annotations

import pytest

from tmnmt.filters.contract import Reader
from tmnmt.filters.sentences import LostSentences, label_and_text


def retried(text: str, output: str) -> list[str]:
    _, undo = LostSentences(Reader()).prepare(text)
    return [*undo.retry(output)] if undo is not None else []


@pytest.mark.parametrize(
    ("text", "output", "parts"),
    [
        ("Text: The fee", "Texte", ["Text:", "The fee"]),
        ("Text: The fee", "Texte :", ["Text:", "The fee"]),
        ("Text: The fee", "La redevance", ["Text:", "The fee"]),
        ("Text: The fee", "Texte : La redevance", []),
        ("Text: The fee", "文本：费用", []),
        ("Subject: “The fee”", "Objet", ["Subject:", "“The fee”"]),
        ("Text: the fee is", "Texte", []),
        ("Time: 10:30 The office", "Heure", []),
        ("Name: Smith", "Nom", []),
        ("It is void. It was sent.", "Il est nul.", ["It is void.", "It was sent."]),
        ("It is void. It was sent.", "Il est nul. Il a été envoyé.", []),
    ],
)
def test_what_is_lost_is_translated_by_itself(text: str, output: str, parts: list[str]) -> None:
    assert retried(text, output) == parts


def test_a_long_text_takes_no_long_time() -> None:
    assert label_and_text("A" + " a" * 100_000) == []
    assert label_and_text("A: " * 50_000)[0] == "A:"
