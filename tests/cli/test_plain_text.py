"""Plain text is NAME.txt, what has no suffix, standard input, or what --format text says is one; a
file of a format that is not read is refused by its name, with what reads it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import cast

import pytest
from places import TESTS

from tmnmt.cli import run
from tmnmt.formats.text import kind_by_name

UNREAD = {
    "a.adoc": "AsciiDoc: `po4a` makes PO of it",
    "a.tex": "LaTeX: `po4a` makes PO of it",
    "a.toml": "strings of a program with their keys: a CAT tool",
}
SUBTITLES = "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,Repealed.\n"
WAYS = {
    "translate": ["translate", "--memory", "{memory}"],
    "translate --running-text": ["translate", "--running-text", "--memory", "{memory}"],
    "analyse": ["analyse", "--memory", "{memory}"],
    "analyse --running-text": ["analyse", "--running-text", "--memory", "{memory}"],
}


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    path = tmp_path / "memory.tsv"
    path.write_text("en\tfr\nRepealed.\tAbrogé.\n")
    return path


def result(way: str, memory: Path, *arguments: str) -> int:
    command = [one.format(memory=memory) for one in WAYS[way]]
    return run([*command, "--src-lang", "en", "--tgt-lang", "fr", *arguments])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", UNREAD)
def test_a_known_format_that_is_not_read_is_refused_with_the_way_out(
    memory: Path, capsys: pytest.CaptureFixture[str], name: str, way: str
) -> None:
    path = TESTS / "data" / "unread" / name
    output = memory.with_name("out")
    more = ["--output", str(output)] if way.startswith("translate") else []
    assert result(way, memory, str(path), *more) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and not output.exists()
    assert f"{path}: no plain text, but {UNREAD[name]}" in err and "--format text" in err


@pytest.mark.parametrize("way", ["translate", "analyse"])
def test_a_format_that_nobody_knows_is_refused_too(
    memory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    for name, why in (
        ("a.xyz", "a format that is not read"),
        ("a.rst~", "a format that is not read"),
        ("b.SUB", "other subtitles: Subtitle Edit saves them as .srt"),
        ("c.tmx", "TMX by its name, and it does not begin so"),
    ):
        (tmp_path / name).write_text(SUBTITLES)
        assert result(way, memory, str(tmp_path / name)) == 1
        assert f"{name}: no plain text, but {why}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name",
    [
        "a.txt",
        "a.TXT",
        "README",
        "Dr. Smith's letter",
        "a.txt.partial",
        "a.txt.gz",
        "en.fr/LICENSE",
    ],
)
def test_text_is_called_txt_or_has_no_suffix(name: str) -> None:
    assert kind_by_name(name) == ""


def test_what_is_said_to_be_text_is_read_as_lines(
    memory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.rst", "a.md", "a.po", "a.srt"):
        path = tmp_path / name
        path.write_text("Repealed.\n\n00:00:01,000 --> 00:00:02,000\n")
        assert result("translate", memory, str(path), "--format", "text") == 0
        assert capsys.readouterr().out == "Abrogé.\n\n\n"
        assert result("analyse", memory, str(path), "--format", "text", "--json") == 0
        assert json.loads(capsys.readouterr().out)["total"]["segments"] == 2
    (tmp_path / "a.rst").write_bytes(b"PK\x03\x04\x00\x00")
    assert result("translate", memory, str(tmp_path / "a.rst"), "--format", "text") == 1
    assert "no plain text, but an archive" in capsys.readouterr().err
    running = ["--running-text", "--format", "text"]
    (tmp_path / "a.rst").write_text("Repealed. Repealed.\n")
    assert result("translate", memory, str(tmp_path / "a.rst"), *running) == 0
    assert capsys.readouterr().out == "Abrogé. Abrogé.\n"


def test_standard_input_is_plain_text(
    memory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.BufferedReader(cast(io.RawIOBase, io.BytesIO(b"Repealed.\n")))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stdin))
    assert result("translate", memory) == 0
    assert capsys.readouterr().out == "Abrogé.\n"


@pytest.mark.parametrize("way", ["translate", "analyse"])
def test_an_empty_file_is_as_an_empty_pipe(
    way: str, memory: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "empty.txt").touch()
    arguments = [part.format(memory=memory) for part in WAYS[way]]
    languages = ["--src-lang", "en", "--tgt-lang", "fr"]
    assert run([*arguments, *languages, str(tmp_path / "empty.txt")]) == 0
    assert way == "analyse" or capsysbinary.readouterr().out == b""
