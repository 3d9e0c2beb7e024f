"""`tmnmt translate --terms`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tiny_model import PAIRS, write_tiny_model

from tmnmt.cli import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("terms")
    write_tiny_model(folder / "model")
    (folder / "input.txt").write_text(f"{PAIRS[0][0]}\n{PAIRS[5][0]}\n", encoding="utf-8")
    (folder / "terms.csv").write_text(
        "source,target,forbidden\nCommission,directive,\napply,,applicable\n", encoding="utf-8"
    )
    return folder


def translate(folder: Path, *arguments: str, model: bool = True) -> int:
    command = ["translate", str(folder / "input.txt"), "--threads", "1"]
    of_model = ["--model", str(folder / "model"), "--beam", "2"] if model else []
    return run([*command, *of_model, *arguments])


def test_terms_come_and_are_told_and_forbidden_ones_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate(folder, "--terms", str(folder / "terms.csv"), "--json") == 0
    out, err = capsys.readouterr()
    first, second = map(json.loads, out.splitlines())
    assert "directive" in first["tgt"] and first["checks"] == []
    assert "term" in {token["origin"] for token in first["tokens"]}
    assert {"name": "forbidden", "what": "applicable for apply"} in second["checks"]
    assert "translations that have a forbidden term: 1; check line 2" in err


def test_a_word_of_a_term_is_marked_for_people(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate(folder, "--terms", str(folder / "terms.csv"), "--explain") == 0
    out = capsys.readouterr().out
    assert "<a term>" in out and "<directive" in out


def test_what_cannot_be_is_told_in_one_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.tsv"
    bad.write_text("a\tb\tc\n", encoding="utf-8")
    terms = str(folder / "terms.csv")
    for arguments, model, told in (
        (["--terms", str(bad)], True, f"{bad}, line 1: no header"),
        (["--terms", str(tmp_path / "none.csv")], True, "none.csv"),
        (["--terms-mode", "hard"], True, "--terms-mode is of --terms"),
        (["--terms", terms, "--memory", str(bad)], False, "--terms needs a --model"),
        (["--terms", terms, "-o", terms], True, "would be written over"),
    ):
        assert translate(folder, *arguments, model=model) != 0
        err = capsys.readouterr().err
        assert told in err and err.count("\n") == 1
