"""Running text: paragraphs, sentences, and the white space between them."""

from __future__ import annotations

from pathlib import Path

import pytest
from file_units import filled, units, untouched
from hypothesis import given
from hypothesis import strategies as st

from tmnmt.errors import FormatError, UsageError
from tmnmt.files.paragraphs import ParagraphFile, is_running, paragraphs
from tmnmt.files.sentences import sentences

WRAPPED = """Sentences
=========

The first sentence of this paragraph goes on over the end of a
line.  The second, of Mr. Smith, is here.

- a mark of a list
- another
"""


def text(tmp_path: Path, content: str | bytes, lang: str = "en") -> ParagraphFile:
    path = tmp_path / "a.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return ParagraphFile(path, lang, "fr")


def plain(file: ParagraphFile) -> list[str]:
    return [unit.source.plain for unit in units(file)]


def test_sentences_of_wrapped_text_go_over_line_ends(tmp_path: Path) -> None:
    file = text(tmp_path, WRAPPED)
    assert plain(file) == [
        "Sentences",
        "The first sentence of this paragraph goes on over the end of a line.",
        "The second, of Mr. Smith, is here.",
        "a mark of a list",
        "another",
    ]
    assert [unit.line for unit in units(file)] == [1, 4, 5, 7, 8]
    assert untouched(file).decode() == WRAPPED


def test_white_space_between_sentences_stays(tmp_path: Path) -> None:
    file = text(tmp_path, "\ufeff  One here.  Two here.\tThree.\r\n\r\n \r\nFour.")
    assert plain(file) == ["One here.", "Two here.", "Three.", "Four."]
    assert filled(file, "1.", None, "3.", "4.").decode() == (
        "\ufeff  1.  Two here.\t3.\r\n\r\n \r\n4."
    )


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("en", ["Mr. Smith paid 3.5 million, e.g. in Jan. 2020.", "He left."]),
        ("fr", ["M. Dupont est arrivé le 5 janv. 2020.", "Il a dit « Bonjour. »", "Oui !"]),
        ("de", ["Am 5. Januar kam Dr. Müller, z. B. zu Fuß.", "Das ist gut."]),
        ("es", ["El Sr. Pérez llegó.", "¿Qué hora es?", "Son las tres."]),
        ("pt-BR", ["O Sr. Silva chegou.", "Que horas são?"]),
    ],
)
def test_sentences_of_languages(lang: str, expected: list[str]) -> None:
    assert [one.strip() for one in sentences(" ".join(expected), lang)] == expected


def test_lines_that_are_not_full_end_a_paragraph() -> None:
    lines = "Dear Anne\n" + "word " * 14 + "\n" + "word " * 3 + "\nYours, Bob\n"
    found = [lines[start:end] for start, end in paragraphs(lines)]
    assert found == ["Dear Anne", ("word " * 14 + "\n" + "word " * 3).rstrip(), "Yours, Bob"]
    poem = "Roses are red\nviolets are blue\n"
    assert len(list(paragraphs(poem))) == 2


def test_what_has_no_words_is_no_unit(tmp_path: Path) -> None:
    assert plain(text(tmp_path, "* * *\n\n-----\n\n...\n")) == []


def test_a_language_without_rules_is_told(tmp_path: Path) -> None:
    for lang in ("", "xx"):
        with pytest.raises(UsageError, match=r"allowed: ar, .*, en, .*, zh"):
            units(text(tmp_path, "a", lang))


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"", "empty"), (b"a\n\xff", "line 2: bytes that are not UTF-8"), (b"a\0b", "no text")],
)
def test_what_is_no_text_is_told(tmp_path: Path, content: bytes, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        units(text(tmp_path, content))


@pytest.mark.parametrize("piece", ["a. B ", ". ", "a", "\n", " \n ", "?!"])
def test_long_texts_take_linear_time(tmp_path: Path, piece: str) -> None:
    content = piece * (6_000 // len(piece))
    file = text(tmp_path, content)
    assert untouched(file).decode() == content


@given(st.text(st.sampled_from("aB. \n\t?!é\u00a0\u2028-1"), min_size=1, max_size=80), st.data())
def test_any_text_comes_back(
    tmp_path_factory: pytest.TempPathFactory, content: str, data: st.DataObject
) -> None:
    file = text(tmp_path_factory.mktemp("text"), content)
    assert untouched(file).decode() == content
    places = file._slots
    assert all(content[start:end].strip() == content[start:end] for start, end in places)
    targets = [data.draw(st.none() | st.just("X")) for _ in places]
    expected, outside, end = "", "", 0
    for (start, stop), target in zip(places, targets, strict=True):
        expected += content[end:start] + (target or content[start:stop])
        outside += content[end:start]
        end = stop
    assert filled(file, *targets).decode() == expected + content[end:]
    assert "é" not in outside + content[end:]


@pytest.mark.parametrize(
    ("text", "running"),
    [
        ("It is void. It ends today.\n\nTwo sentences here, too. This is the other.\n", True),
        ("A heading\n\nIt is void. It ends today, as all do.\n", True),
        (
            "The Commission shall inform the Member States of the measures that it has\n"
            "taken under this Article, and of all decisions which follow from it, without\n"
            "delay.\n",
            True,
        ),
        ("It is void. It ends today.", True),
        ("It is void.\nIt ends today.\nNobody may use it.\n", False),
        ("Open\nSave as…\nDo you want to quit? All is lost.\nCancel\n", False),
        ("Open the file\nSave the file\n", False),
        ("", False),
        (
            "The Commission shall inform the Member States of the measures that are taken.\n"
            "The Member States shall inform the Commission of the measures that they take.\n"
            "The Council shall be informed without delay of all measures that were taken.\n",
            False,
        ),
    ],
)
def test_running_text_is_told_from_a_list_with_a_segment_a_line(text: str, running: bool) -> None:
    assert is_running(text, "en") == running


def test_text_in_a_language_without_rules_is_no_running_text() -> None:
    assert not is_running("Its na. Its ne ha.", "xx")
