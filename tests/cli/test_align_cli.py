"""`tmnmt align`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tmnmt.cli import run
from tmnmt.formats import read_memory

EN = "The Minister may revoke a permit.\n\nThe holder has 30 days to reply.\n\nSee section 12.\n"
FR = (
    "Le ministre peut révoquer un permis.\n\n"
    "Le titulaire a 30 jours pour répondre.\n\nVoir l'article 12.\n"
)


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    (tmp_path / "act.en.txt").write_text(EN, encoding="utf-8")
    (tmp_path / "act.fr.txt").write_text(FR, encoding="utf-8")
    return tmp_path


def align(folder: Path, *options: str) -> int:
    files = str(folder / "act.en.txt"), str(folder / "act.fr.txt")
    return run(["align", *files, "-o", str(folder / "memory.tmx"), *options])


def test_two_documents_become_a_memory(documents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert align(documents, "--src-lang", "en", "--tgt-lang", "fr", "--json") == 0
    segments = [*read_memory(documents / "memory.tmx", "en", "fr")]
    assert [segment.tgt for segment in segments] == FR.strip().split("\n\n")
    assert {segment.origin for segment in segments} == {"alignment"}
    assert all(dict(s.properties)["x-alignment-probability"] for s in segments)
    output = capsys.readouterr()
    record = json.loads(output.out)
    assert [pair["sources"] for pair in record["pairs"]] == [[0], [1], [2]]
    assert "3 sentences and 3; 3 pairs" in output.err and "3 segments" in output.err


def test_unsure_pairs_can_be_left_out(documents: Path) -> None:
    assert align(documents, "--src-lang", "en", "--tgt-lang", "fr", "--min-probability", "1") == 0
    assert [*read_memory(documents / "memory.tmx", "en", "fr")] == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "--src-lang and --tgt-lang"),
        (("--src-lang", "en", "--tgt-lang", "en"), "two languages"),
        (("--src-lang", "en", "--tgt-lang", "fr", "-o", "memory.doc"), "allowed: .tmx"),
    ],
)
def test_wrong_usage_is_one_line(
    documents: Path, options: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert align(documents, *options) == 2
    error = capsys.readouterr().err
    assert told in error and len(error.strip().splitlines()) == 1
    assert not (documents / "memory.tmx").exists()


def test_a_file_and_a_folder_are_no_pair(
    documents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["align", str(documents), str(documents / "act.fr.txt"), "-o", "m.tmx"]
    assert run([*arguments, "--src-lang", "en", "--tgt-lang", "fr"]) == 2
    assert "two files, or two folders" in capsys.readouterr().err
