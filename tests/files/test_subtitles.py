"""Subtitles keep their times, and get lines that fit a screen."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from file_units import filled, units, untouched

from tmnmt.errors import FormatError
from tmnmt.files.opening import open_translatable
from tmnmt.files.subtitles import SubtitleFile, broken

SRT = """1
00:00:01,000 --> 00:00:03,500
The permit is
valid for <i>two years</i>.

2
00:00:04,000 --> 00:00:06,000
- Who signed it?
- The Minister.

3
00:00:07,000 --> 00:00:08,000
♪

4
00:00:09,000 --> 00:00:10,000
Good night.
"""
VTT = """WEBVTT - a title

NOTE The permit of nobody

STYLE
::cue { color: red }

intro
00:01.000 --> 00:03.500 align:start
<v Anna>Research &amp; development</v>

00:04.000 --> 00:06.000
Good night.
"""


@pytest.fixture
def srt(tmp_path: Path) -> SubtitleFile:
    path = tmp_path / "film.srt"
    path.write_bytes(SRT.replace("\n", "\r\n").encode())
    file = open_translatable(path)
    assert isinstance(file, SubtitleFile)
    return file


def test_cues_and_speakers_are_units_without_the_breaks_of_their_lines(srt: SubtitleFile) -> None:
    sources = [unit.source.plain for unit in units(srt)]
    assert sources == [
        "The permit is valid for two years.",
        "Who signed it?",
        "The Minister.",
        "Good night.",
    ]
    first = units(srt)[0]
    assert first.id == "00:00:01,000 --> 00:00:03,500" and first.line == 3
    assert [code.markup for code in first.source.codes] == ["<i>", "</i>"]


def test_tags_in_braces_are_codes_beside_words(tmp_path: Path) -> None:
    path = tmp_path / "tags.srt"
    path.write_text(SRT.replace("Good night.", r"{\an8}Good {\b1}night{\b0}."), encoding="utf-8")
    last = units(SubtitleFile(path))[-1].source
    assert last.plain == "Good night."
    assert [code.kind for code in last.codes] == ["standalone", "open", "close"]


def test_what_is_not_filled_stays_to_the_byte(srt: SubtitleFile, tmp_path: Path) -> None:
    assert untouched(srt) == srt.path.read_bytes()
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        path = tmp_path / f"{encoding}.srt"
        path.write_bytes(SRT.replace("♪", "é").encode(encoding))
        assert untouched(SubtitleFile(path)) == path.read_bytes()


def test_a_translation_is_broken_into_lines_of_even_length(srt: SubtitleFile) -> None:
    long = "Le permis est valable pendant une période de deux années entières."
    content = filled(srt, long, "Qui l'a signé ?", "Le ministre.").decode()
    assert content == SRT.replace("\n", "\r\n").replace(
        "The permit is\r\nvalid for <i>two years</i>.",
        "Le permis est valable pendant une\r\npériode de deux années entières.",
    ).replace("Who signed it?", "Qui l'a signé ?").replace("The Minister.", "Le ministre.")


@pytest.mark.parametrize(
    ("text", "lines", "wanted"),
    [
        ("Good night.", 1, ["Good night."]),
        ("a" * 50, 1, ["a" * 50]),
        ("x " * 30 + "y", 1, ["x " * 15 + "x", "x " * 14 + "y"]),
        ("", 2, [""]),
    ],
)
def test_lines_are_few_and_even(text: str, lines: int, wanted: list[str]) -> None:
    assert broken(text, lines) == wanted


def test_words_stay_whole_and_none_is_lost() -> None:
    words = [f"word{number}" for number in range(40)]
    parts = broken(" ".join(words), 3)
    assert len(parts) == 3 and " ".join(parts).split() == words


def test_webvtt_keeps_its_notes_styles_and_settings(tmp_path: Path) -> None:
    path = tmp_path / "film.vtt"
    path.write_text(VTT, encoding="utf-8")
    file = SubtitleFile(path)
    assert [unit.source.plain for unit in units(file)][1] == "Good night."
    assert untouched(file) == VTT.encode()
    content = filled(file, None, "Bonne nuit & à <demain>.").decode()
    assert content == VTT.replace("Good night.", "Bonne nuit &amp; à &lt;demain>.")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.srt", "The permit is valid.\n", "no line has times"),
        ("a.vtt", SRT, "line 1: does not begin with WEBVTT"),
        ("a.srt", "", "empty"),
    ],
)
def test_what_is_none_is_one_error(tmp_path: Path, name: str, content: str, told: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(FormatError, match=told):
        units(SubtitleFile(tmp_path / name))


def test_cues_without_an_empty_line_between_them_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_text(
        "1\n00:00:01,000-->00:00:02,000\nThe permit.\n"
        "2\n00:00:03,000 --> 00:00:04,000\nIn 12\n12\n",
        encoding="utf-8",
    )
    file = SubtitleFile(path)
    assert [unit.source.plain for unit in units(file)] == ["The permit.", "In 12 12"]
    content = filled(file, "Le permis.", "En 12").decode()
    assert content == path.read_text().replace("The permit.", "Le permis.").replace(
        "In 12\n12", "En 12"
    )


def test_what_is_said_before_the_first_dash_is_a_unit_too(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_text("00:00:01,000 --> 00:00:02,000\nHe said:\n- Yes.\n<i>- No.</i>\n", "utf-8")
    assert [unit.source.plain for unit in units(SubtitleFile(path))] == ["He said:", "Yes. - No."]


@pytest.mark.parametrize(
    "cue",
    [
        "<c.yellow>A permit.</c>",
        "<v Esme O’Neill>A permit.",
        "<00:04.500>A permit.",
        "{\\an8}A permit.",
    ],
)
def test_tags_of_subtitles_come_through(tmp_path: Path, cue: str) -> None:
    path = tmp_path / "a.vtt"
    path.write_text(f"WEBVTT\n\n00:04.000 --> 00:06.000\n{cue}\n", encoding="utf-8")
    file = SubtitleFile(path)
    (unit,) = units(file)
    assert unit.source.codes and "A permit." in unit.source.plain
    assert filled(file, unit.source) == path.read_bytes()


def test_a_space_that_the_character_set_lacks_is_a_wider_one(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_bytes(SRT.replace("♪", "é").encode("cp1252"))
    file = SubtitleFile(path)
    assert "1\u00a0000 $".encode("cp1252") in filled(file, "1\u202f000 $")
    with pytest.raises(FormatError, match="which CP1252 lacks"):
        filled(file, "Ω")


@pytest.mark.parametrize("line", [" " * 300_000, "a" * 300_000 + "\rb", "a" + " " * 300_000 + "b"])
def test_a_hostile_line_takes_no_time(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.srt"
    path.write_bytes(f"00:00:01,000 --> 00:00:02,000\nA permit.\n{line}\n".encode())
    start = time.process_time()
    assert untouched(SubtitleFile(path)) == path.read_bytes()
    assert time.process_time() - start < 5
