"""`tmnmt build-index` and `tmnmt search` as a user runs them; memory files by their path."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import cast

import pytest

from tmnmt.cli import run
from tmnmt.cli.matches import diff
from tmnmt.errors import FormatError
from tmnmt.index.cached import cache_dir, open_memory

DATA = Path(__file__).parent / "data" / "jrc-acquis.en-fr.tsv"
LANGUAGES = ["--src-lang", "en", "--tgt-lang", "fr"]


@pytest.fixture
def index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = str(tmp_path / "index")
    assert run(["build-index", str(DATA), "--index", path, *LANGUAGES]) == 0
    out, err = capsys.readouterr()
    assert out == "" and "kept 1,997" in err and f"{path}: 1,997 segments" in err
    return path


def _type(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(cast(io.RawIOBase, io.BytesIO(text)))))


def test_matches_are_shown_with_score_texts_and_document(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "--index", index, "-k", "1", "Article 1 bis"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines] == [
        "Article 1 bis", "0.667  #8  jrc31962L2005", "Article 1", "Article premier",
    ]  # fmt: skip


def test_every_line_of_stdin_gets_one_line_of_json(
    index: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _type(monkeypatch, "Article 1\n\nnothing that is like\u2028it\r\nArticle é\xff".encode() + b"\xfe\n")
    assert run(["search", "--index", index, "--json", "-k", "2"]) == 0
    out, err = capsys.readouterr()
    records = [json.loads(line) for line in out.split("\n")[:-1]]
    assert [record["query"] for record in records] == [
        "Article 1",
        "",
        "nothing that is like\u2028it",
        "Article éÿ\ufffd",
    ]
    assert records[0]["matches"][0] == {
        "id": 8, "src": "Article 1", "tgt": "Article premier", "score": 1.0, "document": "jrc31962L2005",
    }  # fmt: skip
    assert len(records[0]["matches"]) == 2 and records[1]["matches"] == []
    assert "1 lines had bytes that are not UTF-8" in err


def test_no_match_is_no_error(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "--index", index, "xyz"]) == 0
    assert "no match of 0.5 or more" in capsys.readouterr().out


def test_the_diff_shows_what_either_side_has_alone() -> None:
    shown = diff("The cat,  sat down.", "The old cat sat.")
    marked = [(shown.plain[span.start : span.end], span.style) for span in shown.spans if span.style]
    assert marked == [("old", "red strike"), (",", "green"), ("down", "green")]
    assert shown.plain == "The old cat , sat down."


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["build-index", "missing.tmx", "--index", "new", *LANGUAGES], 1, "missing.tmx: no such file"),
        (["build-index", str(DATA), "--index", "new", "--src-lang", "en"], 2, "--tgt-lang"),
        (["build-index", str(DATA), "--index", "new", *LANGUAGES, "--columns", "src=9,tgt=3"], 1, "src=9"),
        (["build-index", str(DATA), "--index", "new", *LANGUAGES, "--columns", "nonsense"], 2, "nonsense"),
        (["search", "--index", "nowhere", "x"], 1, "nowhere: no such index"),
        (["search", "--index", ".", "x"], 1, "not an index"),
        (["search", "--index", "x", "-k", "0", "x"], 2, "k"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], code: int, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and named in err
    assert list(tmp_path.iterdir()) == []


def test_replacing_an_index_needs_force(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    again = ["build-index", str(DATA), "--index", index, *LANGUAGES]
    assert run(again) == 2
    assert "--force" in capsys.readouterr().err
    assert run([*again, "--force"]) == 0


def test_a_memory_without_a_usable_unit_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.tsv").write_text("src\ttgt\na\t\n\tb\n")
    assert run(["build-index", str(tmp_path / "empty.tsv"), "--index", str(tmp_path / "index"), *LANGUAGES]) == 1
    assert "nothing to index: 0 of 2 units kept (empty 2)" in capsys.readouterr().err
    assert not (tmp_path / "index").exists()


def test_a_memory_file_is_indexed_once_and_found_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    units: list[int] = []

    def told(read: int, _: float) -> None:
        units.append(read)

    with open_memory(DATA, "en", "fr", told) as memory:
        assert (len(memory), sum(units)) == (1997, 1997)
    (tmp_path / "moved").mkdir()
    moved = Path(shutil.copy(DATA, tmp_path / "moved"))
    with open_memory(moved, "en", "fr", told) as memory:
        assert memory.search(["Article 1"], 1)[0][0].segment.tgt == "Article premier"
    assert sum(units) == 1997
    moved.write_text("en\tfr\none\tun\n")
    with open_memory(moved, "en", "fr", told) as memory:
        assert len(memory) == 1
    assert sum(units) == 1998
    for manifest in cache_dir().rglob("manifest.json"):
        manifest.write_text("{")
    with open_memory(moved, "en", "fr", told) as memory:  # damaged: made again
        assert len(memory) == 1
    with open_memory(Path(index), "en", "fr", told) as memory:
        assert (len(memory), sum(units)) == (1997, 1999)


def test_two_plain_files_are_a_memory_by_their_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "pair.en").write_text("one\ntwo\n")
    (tmp_path / "pair.fr").write_text("un\ndeux\n")
    with open_memory(tmp_path / "pair", "en", "fr") as memory:
        assert memory.search(["two"])[0][0].segment.tgt == "deux"
    with pytest.raises(FormatError, match="no such"):
        open_memory(tmp_path / "absent", "en", "fr")
