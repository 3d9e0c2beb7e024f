"""Subtitles are checked for what viewers can read: the speed, the length of a line, and lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from file_units import units

from tmnmt.checks import SubtitleLimits, subtitle_checks, subtitle_limits
from tmnmt.cli import run
from tmnmt.codes.record import Text
from tmnmt.files.cues import seconds
from tmnmt.files.opening import open_translatable

SRT = """1
00:00:01,000 --> 00:00:02,000
<i>This cue has forty characters to be read</i>

2
00:00:03,000 --> 00:00:13,000
This line is far too long for any screen, say those who count
short
and a third

3
00:00:14,000 --> 00:00:16,000
- Who are you, and who
- Me.

4
00:00:17,000 --> 00:00:27,000
Fine.
"""
ASS = r"""[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{\i1}This cue has forty\Ncharacters to be read
"""


@pytest.mark.parametrize(
    ("times", "length"),
    [
        ("00:00:01,000 --> 00:00:02,500", 1.5),
        ("59:59.9 --> 01:00:00.1", 0.2),
        ("0:00:01.00 --> 0:00:03.50", 2.5),
        ("00:00:02,000 --> 00:00:01,000", 0),
        ("never", 0),
    ],
)
def test_the_time_of_a_cue(times: str, length: float) -> None:
    assert seconds(times) == pytest.approx(length)


def test_what_is_found_in_a_cue() -> None:
    limits = SubtitleLimits(10, 5, 1)
    assert subtitle_checks(["12345"], 0.5, limits) == []
    found = subtitle_checks(["123456", "7"], 0.5, limits)
    assert [(check.name, check.what) for check in found] == [
        ("speed", "14.0 characters a second of 10"),
        ("width", "6 characters in a line of 5"),
        ("lines", "2 lines of 1"),
    ]
    assert [check.name for check in subtitle_checks(["123456"], 0, limits)] == ["width"]
    assert subtitle_limits("ja-JP").width == 13 and subtitle_limits("xx") == subtitle_limits("")


def test_files_are_checked_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.srt"
    path.write_text(SRT)
    assert run(["check", "--tgt-lang", "fr", "--report", "json", str(path)]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["checked"] == 5
    found = [(one["line"], one["check"], one["what"]) for one in report["findings"]]
    assert found == [
        (3, "speed", "40.0 characters a second of 17"),
        (7, "width", "61 characters in a line of 42"),
        (7, "lines", "3 lines of 2"),
    ]
    wide = ["--speed", "50", "--width", "70", "--lines", "3"]
    assert run(["check", *wide, str(path)]) == 0
    assert run(["check", "--only", "lines", str(path)]) == 1
    out = capsys.readouterr().out
    assert out == f"{path}:7: segment 00:00:03,000 --> 00:00:13,000: lines: 3 lines of 2\n"


def test_the_speakers_of_a_cue_share_its_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.srt"
    path.write_text(SRT.replace("00:00:16,000", "00:00:15,000"))
    run(["check", "--tgt-lang", "fr", "--only", "speed", str(path)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.rpartition("speed: ")[2] for line in lines[1:]] == [
        "27.0 characters a second of 17"
    ] * 2


def test_override_tags_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "a.ass"
    path.write_text(ASS)
    file = open_translatable(path)
    unit = units(file)[0]
    (check,) = file.layout_checks(unit, 0)
    assert check == ("speed", "39.0 characters a second of 17")
    assert file.layout_checks(unit, 0, Text("Short")) == []


def test_a_translation_says_what_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, memory = tmp_path / "a.srt", tmp_path / "memory.tsv"
    path.write_text("1\n00:00:01,000 --> 00:00:02,000\nFine.\n\n")
    memory.write_text(f"en\tfr\nFine.\t{'Très bien, merci. ' * 6}\n")
    command = ["translate", "--memory", str(memory), "--src-lang", "en", "--tgt-lang", "fr"]
    assert run([*command, "--json", str(path)]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert {check["name"] for check in checks} >= {"speed", "width"}


def test_other_files_have_no_such_checks(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("A text.\n")
    file = open_translatable(path)
    assert file.layout_checks(units(file)[0], 0) == []
