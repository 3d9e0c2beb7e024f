"""Escape sequences in texts and names do not reach a terminal; files and pipes get the bytes as
they are."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tmnmt.index.embedded.build import build
from tmnmt.segments import Segment
from tmnmt.visible import visible

TITLE, RED, CSI = "\x1b]0;title\x07", "\x1b[31m", "\x9b2J"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    segments = [Segment(f"a {RED}red{TITLE} word\rhere", f"un mot {CSI}rouge", document=f"d{RED}")]
    build(tmp_path / "index", segments, "en", "fr")
    return tmp_path / "index"


def _tmnmt(*arguments: str, stdout: int | IO[bytes], stderr: int | IO[bytes]) -> int:
    command = [sys.executable, "-c", "from tmnmt.cli import main; main()", *arguments]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment
    ).returncode


def _on_terminal(*arguments: str) -> str:
    """What a terminal is sent."""
    ours, theirs = pty.openpty()
    _tmnmt(*arguments, stdout=theirs, stderr=theirs)  # little enough to wait in it
    os.close(theirs)
    sent = b""
    try:
        while block := os.read(ours, 1 << 16):
            sent += block
    except OSError:  # its other end is closed
        pass
    os.close(ours)
    return sent.decode()


@pytest.mark.parametrize(
    "command",
    [
        ("memory", "list"),
        ("search", "a red word here", "--threshold", "0"),
        ("search", "red", "--json", "--threshold", "0"),
        ("search", f"a {RED}word", "--explain", "--threshold", "0"),
    ],
)
def test_what_is_in_a_memory_does_not_command_a_terminal(
    index: Path, command: tuple[str, ...]
) -> None:
    sent = _on_terminal(*command, "--index", str(index))
    assert (
        "rouge" in sent
        and TITLE not in sent
        and CSI not in sent
        and RED not in sent.replace("\x1b[31;9m", "")
    )
    assert "\u241b[31m" in sent or "\\u001b[31m" in sent


def test_files_and_pipes_get_what_is_in_a_memory_as_it_is(index: Path, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        assert (
            _tmnmt("memory", "list", "--index", str(index), stdout=out, stderr=subprocess.DEVNULL)
            == 0
        )
    assert (
        RED + "red" + TITLE in (tmp_path / "out").read_text()
        and CSI in (tmp_path / "out").read_text()
    )


def test_what_is_told_on_stderr_commands_nothing(tmp_path: Path) -> None:
    name = str(tmp_path / f"no{RED}such\x07")
    with (tmp_path / "err").open("wb") as err:
        assert _tmnmt("search", "x", "--index", name, stdout=subprocess.DEVNULL, stderr=err) == 1
    told = (tmp_path / "err").read_text()
    assert "no\u241b[31msuch\u2407" in told and told.count("\n") == 1
    assert "no\u241b[31msuch" in _on_terminal("search", "x", "--index", name)


def test_help_keeps_its_colours() -> None:
    sent = _on_terminal("--help")
    assert "\x1b[1m" in sent and "\u241b" not in sent


def test_a_progress_bar_keeps_its_colours_and_shows_names_as_they_are(index: Path) -> None:
    code = (
        "import time; from tmnmt.cli import run; from tmnmt.progress import Progress; "
        "run(['--version'])\n"
    )
    code += (
        f"with Progress({RED!r} + '[b]name[/b]', 'steps', 9) as progress:\n    "
        "progress.advance(3); time.sleep(0.3)"
    )
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-c", code],
        stderr=theirs,
        check=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    sent = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "\u241b[31m[b]name[/b]" in sent and "\x1b[" in sent and RED not in sent


def test_all_that_commands_is_one_sign_and_all_else_stays() -> None:
    every = "".join(map(chr, range(0xD800)))
    shown = visible(every)
    assert len(shown) == len(every) and visible(shown) == shown
    assert [c for c in shown if c != "\t" and c != "\n" and (c < " " or "\x7f" <= c < "\xa0")] == []
    assert visible("é\tà\n\u202e\u0301") == "é\tà\n\u202e\u0301"
