"""Subtitles of SubStation Alpha keep their tags, times and drawings."""

from __future__ import annotations

import time
from pathlib import Path

import pysubs2
import pytest
from file_units import filled, units, untouched

from tmnmt.errors import FormatError
from tmnmt.files.opening import open_translatable
from tmnmt.files.substation import SubStationFile
from tmnmt.files.texts import string_of

ASS = r"""[Script Info]
; a comment
Title: The permit of nobody
ScriptType: v4.00+

[V4+ Styles]
Format: Name, Fontname
Style: Default,Arial

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:00.00,0:00:01.00,Default,,0,0,0,,A comment
Dialogue: 0,0:00:01.00,0:00:03.50,Default,Anna,0,0,0,,{\an8\i1}The permit is\Nvalid, for years.{\i0}
Dialogue: 0,0:00:04.00,0:00:06.00,Default,,0,0,0,,{\an8}- Who signed it?\N- The Minister.
Dialogue: 0,0:00:06.00,0:00:07.00,Default,,0,0,0,,{\p1}m 0 0 l 100 0 100 100{\p0}
Dialogue: 0,0:00:07.00,0:00:08.00,Default,,0,0,0,,{\k20}La {\k30}la
Dialogue: 0,0:00:08.00,0:00:09.00,Default,,0,0,0,,It is {\i1}really{\i0} void,\hno doubt
Dialogue: 0,0:00:09.00,0:00:10.00,Default,,0,0,0,,♪
Dialogue: 0,0:00:09.00,0:00:10.00,Default,,0,0,0,,

[Fonts]
fontname: a.ttf
Dialogue: of no event
"""


def opened(tmp_path: Path, content: str = ASS, encoding: str = "utf-8") -> SubStationFile:
    path = tmp_path / "film.ass"
    path.write_bytes(content.encode(encoding))
    file = open_translatable(path)
    assert isinstance(file, SubStationFile)
    return file


def test_dialogue_and_speakers_are_units_without_breaks(tmp_path: Path) -> None:
    rows = [(string_of(unit.source), unit.line) for unit in units(opened(tmp_path))]
    assert rows == [
        ("The permit is valid, for years.", 13),
        ("Who signed it?", 14),
        ("The Minister.", 14),
        (r"{\k20}La {\k30}la", 16),
        ("It is {\\i1}really{\\i0} void,\u00a0no doubt", 17),
    ]
    first, *_, sung, last = units(opened(tmp_path))
    assert first.id == "0:00:01.00 --> 0:00:03.50" and first.notes == ("Anna",)
    assert sung.problem == "karaoke, whose syllables have times of their own"
    codes = [(code.markup, code.kind) for code in last.source.codes]
    assert codes[:2] == [(r"{\i1}", "open"), (r"{\i0}", "close")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_what_is_not_filled_stays_to_the_byte(tmp_path: Path, encoding: str) -> None:
    content = ASS.replace("♪", "é").replace("\n", "\r\n")
    assert untouched(opened(tmp_path, content, encoding)) == content.encode(encoding)


def test_a_text_with_breaks_is_broken_anew_and_another_is_not(tmp_path: Path) -> None:
    long = "Le permis est valable pendant une période de deux années entières."
    file = opened(tmp_path)
    last = units(file)[-1].source
    content = filled(file, long, "Qui ?", "Le ministre.", None, last).decode()
    assert content == ASS.replace(
        r"The permit is\Nvalid, for years.",
        r"Le permis est valable pendant une\Npériode de deux années entières.",
    ).replace("Who signed it?", "Qui ?").replace("The Minister.", "Le ministre.")
    plain = ASS.replace(r"is\Nvalid", "is valid")
    assert long in filled(opened(tmp_path, plain), long).decode()
    unwrapped = plain.replace("ScriptType", "WrapStyle: 2\nScriptType")
    assert r"une\Npériode" in filled(opened(tmp_path, unwrapped), long).decode()


def test_a_brace_that_would_be_a_tag_is_refused(tmp_path: Path) -> None:
    file = opened(tmp_path)
    first, *_, last = units(file)
    assert file.refused(last, last.source) == ""
    broken = units(opened(tmp_path, ASS.replace("Who signed it?", "Who } did")))[1].source
    assert file.refused(first, broken).startswith("a brace or a break")


def test_pysubs2_reads_what_was_written(tmp_path: Path) -> None:
    content = filled(opened(tmp_path), "Le permis, enfin", "Qui ?", None)
    events = pysubs2.SSAFile.from_string(content.decode()).events
    assert [event.plaintext for event in events][1:3] == [
        "Le permis, enfin",
        "- Qui ?\n- The Minister.",
    ]
    assert [event.start for event in events] == [0, 1000, 4000, 6000, 7000, 8000, 9000, 9000]


def test_an_old_file_has_other_columns(tmp_path: Path) -> None:
    content = (
        "[Events]\nFormat: Marked, Start, End, Style, Actor, Text\n"
        "Dialogue: Marked=0,0:00:01.00,0:00:02.00,Default,Anna,Good night, all\n"
    )
    (unit,) = units(opened(tmp_path, content))
    assert unit.source.plain == "Good night, all" and unit.notes == ("Anna",)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[Script Info]\nTitle: a\n", "no section \\[Events\\]"),
        ("[Events]\nFormat: Text, Start\n", "line 2: a Format without Start and End"),
        ("[Events]\nDialogue: 0,0:00:01.00\n", "line 2: a line with 2 fields"),
        ("", "empty"),
    ],
)
def test_what_is_none_is_one_error_with_its_line(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(FormatError, match=told):
        units(opened(tmp_path, content))


def test_a_long_line_takes_little_time(tmp_path: Path) -> None:
    text = "{" * 50_000 + r"{\i1}a\N" * 20_000
    line = f"Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{text}"
    file = opened(tmp_path, f"[Events]\n{line}\n")
    start = time.process_time()
    assert untouched(file) == (tmp_path / "film.ass").read_bytes()
    assert time.process_time() - start < 20
