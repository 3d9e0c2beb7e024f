"""Codes of a TMX go through an index and come back in what is exported from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tmnmt.cli import run
from tmnmt.formats import read_memory
from tmnmt.index import MemoryIndex
from tmnmt.segments import Segment

SEGS = (
    'Save <bpt i="1">&lt;b></bpt>%s<ept i="1">&lt;/b></ept>\n now',
    'Enregistrer <bpt i="1">&lt;b></bpt>%s<ept i="1">&lt;/b></ept> <ph x="2"/>',
)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    tuvs = "".join(
        f'<tuv xml:lang="{language}"><seg>{seg}</seg></tuv>'
        for language, seg in zip(("en", "fr"), SEGS, strict=True)
    )
    tmx = f'<tmx version="1.4"><header srclang="en"/><body><tu>{tuvs}</tu></body></tmx>'
    (tmp_path / "m.tmx").write_text(tmx)
    languages = ("--src-lang", "en", "--tgt-lang", "fr")
    tmnmt("build-index", tmp_path / "m.tmx", "--index", tmp_path / "m", *languages)
    return tmp_path / "m"


def tmnmt(*arguments: str | Path) -> None:
    assert run([str(argument) for argument in arguments]) == 0


@pytest.mark.parametrize("name", ["again.tmx", "again.tsv", "again.tmx.gz"])
def test_an_export_brings_codes_back_and_says_nothing_of_them(
    index: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    tmnmt("memory", "export", "--index", index, "-o", tmp_path / name)
    assert "inline codes" not in capsys.readouterr().err
    before, after = (list(read_memory(tmp_path / file, "en", "fr")) for file in ("m.tmx", name))
    assert [replace(segment, origin="") for segment in after] == [
        replace(segment, origin="") for segment in before
    ]
    if name == "again.tmx":
        text = (tmp_path / name).read_text().replace("&lt;b&gt;", "&lt;b>")
        for seg in SEGS:
            assert f"<seg>{seg}</seg>".replace("&lt;/b>", "&lt;/b&gt;") in text


def test_codes_change_places_with_the_texts(index: Path, tmp_path: Path) -> None:
    tmnmt("memory", "reverse", "--index", index, "-o", tmp_path / "back")
    ((there,), (back,)) = (
        list(MemoryIndex.open(folder).segments()) for folder in (index, tmp_path / "back")
    )
    assert (back.src_codes, back.tgt_codes) == (there.tgt_codes, there.src_codes)


def test_a_listing_in_json_has_every_field_of_a_code(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    tmnmt("memory", "list", "--index", index, "--json")
    listed = json.loads(capsys.readouterr().out)
    assert listed["src_codes"][0] == {
        "at": 5,
        "kind": "open",
        "markup": '<bpt i="1">&lt;b&gt;</bpt>',
        "pair": "1",
        "form": "tmx",
        "covers": 0,
        "movable": True,
        "droppable": False,
    }


def test_an_export_of_what_was_read_without_codes_says_so(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    MemoryIndex.open(index).add([Segment("a", "b", properties=(("x-inline-codes", "3"),))])
    capsys.readouterr()
    tmnmt("memory", "export", "--index", index, "-o", tmp_path / "again.tmx")
    told = capsys.readouterr().err
    assert "2 segments\n1 of them had inline codes (tags, placeholders) in the file" in told
    assert "read by a version that did not keep codes; read that file again" in told


def test_a_tsv_whose_codes_do_not_fit_the_text_costs_that_line(tmp_path: Path) -> None:
    rows = ["src\ttgt\tproperties"] + [
        "a\tb\t" + json.dumps([["x-source-codes", codes]])
        for codes in ('[[1,"s","<x/>"]]', '[[2,"s","<x/>"]]', "[", "[" * 100_000)
    ]
    (tmp_path / "m.tsv").write_text("\n".join(rows))
    reader = read_memory(tmp_path / "m.tsv", "en", "fr")
    assert [len(segment.src_codes) for segment in reader] == [1]
    assert reader.report.skipped["malformed"] == 3
    assert "x-source-codes '[' are no codes of the text" in str(reader.report)
