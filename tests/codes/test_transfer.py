"""A pair lends its places to codes of another markup."""

from __future__ import annotations

import re

import pytest
from coded_texts import SOURCES, kept
from hypothesis import given

from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Code, Part, Text, join_parts
from tmnmt.codes.transfer import transfer_codes


def coded(text: str, form: str = "") -> Text:
    """<b1> and </b1> are a span, <x> and _ (white space) stand alone; then placeholders."""
    parts: list[Part] = []
    for piece in re.split(r"(<.*?>|_)", text):
        name = piece.strip("</>")
        if piece == "_":
            parts.append((Code(0, "blank", " "), ""))
        elif piece.startswith("</"):
            parts.append((Code(0, "close", piece, name, form), ""))
        elif piece.startswith("<"):
            kind = "standalone" if name.startswith("x") else "open"
            parts.append((Code(0, kind, piece, name, form), ""))  # type: ignore[arg-type]
        elif piece:
            parts.append(piece)
    return with_placeholders(join_parts(parts))


@pytest.mark.parametrize(
    ("query", "source", "target", "wanted"),
    [
        # the same codes: as they are
        ("a <b>b</b>", "<b>a</b> b", "B <b>A</b>", "B <b>A</b>"),
        ("_a <b>b</b>_", "a <b>b</b>", "B_ <b>A</b>_", "_B_ <b>A</b>_"),
        # others at the same words
        ("a <i>b</i>", "a <b>b</b>", "<b>B</b> A", "<i>B</i> A"),
        ("<x1>a <x2>b", "<x3>a <x4>b", "<x4>B <x3>A", "<x2>B <x1>A"),
        ("a <i>%s</i>", "a <b>%s</b>", "<b>%s</b> A", "<i>%s</i> A"),
        # no codes at all
        ("a", "a", "A", "A"),
        ("a %s", "a %s", "%s A", "%s A"),
        # other codes, other words, another number of them
        ("a <i>b</i>", "a <x>b", "A <x>B", None),
        ("a <i>b</i>", "<b>a b</b>", "<b>A B</b>", None),
        ("a <i>b</i>", "a b", "A B", None),
        ("a b", "a <b>b</b>", "A <b>B</b>", None),
        ("a <i>b</i>", "a <b>b</b>", "A B", None),
        # what the pair's target lacks, has twice, or has in another order
        ("a %s", "a %s", "A", None),
        ("a %s", "a %s", "A %s %s", None),
        ("%s %d", "%s %d", "%d %s", None),
        ("{a} {b}", "{a} {b}", "{b} {a}", "{b} {a}"),
    ],
)
def test_a_pair_lends_its_places_where_codes_go_one_to_one(
    query: str, source: str, target: str, wanted: str | None
) -> None:
    found = transfer_codes(coded(query), coded(source, "tmx"), coded(target, "tmx"))
    if query == "a <b>b</b>" or "_a" in query:  # the same form, too
        found = transfer_codes(coded(query), coded(source), coded(target))
    assert (found and found.full_text()) == (wanted and wanted.replace("_", " "))


@given(SOURCES)
def test_a_text_that_is_its_own_translation_lends_itself_its_codes(source: Text) -> None:
    found = transfer_codes(source, source, source)
    assert found is not None and found.full_text() == source.full_text()
    kept(source, found)
