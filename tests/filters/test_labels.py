"""Labels with an ellipsis are read without it and get it back as it was; others begin and end as
their sources do."""

from __future__ import annotations

import pytest

from tmnmt.codes.record import Code, Text, plain_of
from tmnmt.filters.contract import ModelOutput, Reader
from tmnmt.filters.labels import Labels

LABELS = Labels(Reader(lang="en", tgt_lang="fr"))


@pytest.mark.parametrize(
    ("text", "read", "written", "target"),
    [
        ("Save as…", "Save as", "Enregistrer sous", "Enregistrer sous…"),
        ("Open ...", "Open", "Ouvrir", "Ouvrir ..."),
        ("Open… ", "Open", "Ouvrir...", "Ouvrir..."),
    ],
)
def test_a_label_is_read_without_its_ellipsis(
    text: str, read: str, written: str, target: str
) -> None:
    source, undo = LABELS.prepare(text)
    assert plain_of(source) == read and undo is not None
    assert undo.restore_piece(ModelOutput(written, read)) == target


@pytest.mark.parametrize(
    "text",
    [
        "Wait. Then go on…",
        "One two three four five six seven…",
        "...",
    ],
)
def test_what_is_no_label_stays(text: str) -> None:
    assert LABELS.prepare(text) == (text, None)


@pytest.mark.parametrize(
    ("text", "written", "target"),
    [
        ("Empty", "vide", "Vide"),
        ("Page not found", "page introuvable -", "Page introuvable"),
        ("empty", "vide", "vide"),
        ("PDF file", "fichier PDF", "fichier PDF"),
        ("Open store", "iPhone", "iPhone"),
        ("Open…", "ouvrir", "Ouvrir…"),
    ],
)
def test_a_translation_begins_and_ends_as_its_label(text: str, written: str, target: str) -> None:
    source, undo = LABELS.prepare(text)
    assert undo is not None
    assert undo.restore_piece(ModelOutput(written, plain_of(source))) == target
    typed = ModelOutput(written, plain_of(source), is_typed=True)
    assert undo.restore_piece(typed).startswith(written)


def test_every_code_stays_within_what_is_read() -> None:
    bold = Code(0, "open", "<b>", "1"), Code(5, "close", "</b>", "1")
    source, undo = LABELS.prepare(Text("Open…", bold))
    assert undo is not None and isinstance(source, Text)
    assert (source.plain, [code.at for code in source.codes]) == ("Open", [0, 4])
    covering = Text("Open {a}…", (Code(5, "placeholder", "{a}", covers=3),))
    assert LABELS.prepare(covering) == (covering, None)
