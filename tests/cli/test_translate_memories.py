"""Which segments of the memories `tmnmt translate` finds, and memories that change meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tiny_model import write_tiny_model

from tmnmt.cli import run
from tmnmt.config.options import TranslationOptions
from tmnmt.formats import write_tmx
from tmnmt.index import build
from tmnmt.segments import Segment
from tmnmt.translator import Translator

BY_ANN = Segment("Repealed.", "Abrogé.", "a", user="ann", changed="2020-01-01T00:00:00Z")
BY_BOB = Segment("Repealed.", "Abrogée.", "b", user="bob", changed="2024-01-01T00:00:00Z")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build(tmp_path / "m", [BY_ANN, BY_BOB], "en", "fr")
    (tmp_path / "text").write_text("Repealed.\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "Abrogée."),
        (["--user", "ann"], "Abrogé."),
        (["--before", "2022-01-01"], "Abrogé."),
        (["--document", "c"], ""),
    ],
)
def test_only_segments_that_are_meant_are_taken(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert run(["translate", "--memory", f"{folder}/m", *options, f"{folder}/text"]) == 0
    assert capsys.readouterr().out == f"{said}\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--model", "m", "--user", "ann"], "--user is of a --memory, and there is none"),
        (["--model", "m", "--watch"], "--watch is of a --memory, and there is none"),
        (["--memory", "m", "--since", "May"], "'May' is no date"),
        (["--memory", "{}/m", "--watch"], "--watch is of memory files, and there is none"),
    ],
)
def test_what_does_not_go_together_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    given = [each.replace("{}", str(folder)) for each in arguments]
    assert run(["translate", *given, f"{folder}/text"]) == 2
    assert told in capsys.readouterr().err


def test_a_session_reads_what_another_program_has_written_since(tmp_path: Path) -> None:
    memory = tmp_path / "project_save.tmx"
    write_tmx(memory, [BY_ANN], "en", "fr")
    write_tiny_model(tmp_path / "model")
    translator = Translator.load(
        tmp_path / "model", [f"{memory}:watch"], TranslationOptions(threads=1)
    )
    session = translator.session()
    assert session.translate("Repealed.").tgt == "Abrogé."
    write_tmx(memory, [BY_BOB], "en", "fr")
    again = session.translate("Repealed.")
    assert again.tgt == "Abrogée." and again.origin == "memory"
    memory.write_bytes(memory.read_bytes()[:-40])
    assert session.translate("Repealed.").tgt == "Abrogée."


def test_lines_from_a_pipe_are_answered_by_the_memory_as_it_is_then(tmp_path: Path) -> None:
    memory = tmp_path / "project_save.tmx"
    write_tmx(memory, [BY_ANN], "en", "fr")
    languages = ["--src-lang", "en", "--tgt-lang", "fr"]
    arguments = ["translate", "--memory", str(memory), "--watch", *languages]
    process = subprocess.Popen(
        [sys.executable, "-m", "tmnmt", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    assert process.stdin is not None and process.stdout is not None

    def answer() -> str:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("Repealed.\n")
        return process.stdout.readline()

    assert answer() == "Abrogé.\n"
    write_tmx(memory, [BY_BOB], "en", "fr")
    assert answer() == "Abrogée.\n"
    whole = memory.read_bytes()
    memory.write_bytes(whole[:-40])
    assert answer() == "Abrogée.\n"
    memory.unlink()
    assert answer() == "Abrogée.\n"
    write_tmx(memory, [BY_ANN], "en", "fr")
    assert answer() == "Abrogé.\n"
    _, err = process.communicate(timeout=120)
    told = [line for line in err.splitlines() if str(memory) in line]
    assert process.returncode == 0
    assert len(told) == 1 and "is not whole, it may be being written" in told[0]
