"""What a file has translated already is known while the rest of it is translated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from places import ROOT
from tiny_model import PAIRS, write_tiny_model

from tmnmt.cli import run
from tmnmt.files.opening import open_translatable
from tmnmt.files.unit import Unit
from tmnmt.index import build
from tmnmt.segments import Segment

CASES = ROOT / "tests" / "data" / "own-translations"
UNIT = '<trans-unit id="{}"{}><source>{}</source>{}</trans-unit>\n'
FILE = (
    '<xliff version="1.2"><file original="d.html" source-language="en" target-language="fr" '
    'datatype="html"><body>\n{}</body></file></xliff>\n'
)
FEE, BAREME = "The fee schedule is attached.", "Le barème tarifaire est joint."


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return copytree(CASES, tmp_path / "cases")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_tiny_model(tmp_path_factory.mktemp("model") / "model")


def xliff(path: Path, *units: tuple[str, str, str]) -> Path:
    """A file of units: their source, what the unit says, and its target element."""
    texts = [UNIT.format(number, said, src, tgt) for number, (src, said, tgt) in enumerate(units)]
    path.write_text(FILE.format("".join(texts)), encoding="utf-8")
    return path


def units(path: Path) -> list[Unit]:
    return [unit for document in open_translatable(path).documents() for unit in document.units]


def targets(path: Path) -> list[str]:
    return [unit.target.plain if unit.target else "" for unit in units(path)]


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def translated(path: Path, options: Sequence[str] = ()) -> list[str]:
    out = path.with_name(f"out-{path.name}")
    assert run(["translate", *options, str(path), "--output", str(out)]) == 0
    return targets(out)


def test_approved_units_of_an_xliff_are_taken_read_and_untouched(cases: Path) -> None:
    out = cases / "out.xlf"
    assert run(["translate", str(cases / "a.xlf"), "--output", str(out)]) == 0
    assert targets(out) == [BAREME] * 3
    before, after = ((cases / "a.xlf").read_bytes(), out.read_bytes())
    approved = before[before.index(b"<trans-unit") : before.index(b"</trans-unit>")]
    assert approved in after
    assert b'state="translated" state-qualifier="exact-match"' in after
    assert b'state="needs-review-translation" state-qualifier="fuzzy-match"' in after
    assert b'match-quality="85%" origin="a.xlf"' in after


def test_a_catalog_knows_its_translated_messages(cases: Path) -> None:
    assert translated(cases / "b.po", ["--src-lang", "en"]) == [BAREME, BAREME]


def test_pairs_behind_a_unit_are_known_too_and_drafts_are_not(tmp_path: Path) -> None:
    path = xliff(
        tmp_path / "a.xlf",
        (FEE, "", ""),
        ("A draft.", "", '<target state="needs-review-translation">Un brouillon.</target>'),
        ("A draft.", "", ""),
        (FEE, "", f'<target state="translated">{BAREME}</target>'),
    )
    assert translated(path) == [BAREME, "Un brouillon.", "", BAREME]
    fuzzy = tmp_path / "a.po"
    fuzzy.write_text(
        'msgid ""\nmsgstr "Language: fr\\n"\n\n'
        '#, fuzzy\nmsgctxt "a"\nmsgid "A draft."\nmsgstr "Un."\n\n'
        'msgctxt "b"\nmsgid "A draft."\nmsgstr ""\n\nmsgid "New."\nmsgstr "Nouveau."\n'
    )
    assert translated(fuzzy, ["--src-lang", "en"])[:2] == ["Un.", ""]


def test_the_option_says_which_of_them_are_known(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = xliff(
        tmp_path / "a.xlf",
        ("One rule.", ' approved="yes"', "<target>Une règle.</target>"),
        ("Two rules.", "", '<target state="translated">Deux règles.</target>'),
        ("One rule.", "", ""),
        ("Two rules.", "", ""),
    )
    assert translated(path)[2:] == ["Une règle.", "Deux règles."]
    only_approved = translated(path, ["--own-translations", "approved", "--no-drafts"])
    assert only_approved[2:] == ["Une règle.", ""]
    options = ["--model", str(model), "--own-translations", "off"]
    assert not {*translated(path, options)[2:]} & {"Une règle.", "Deux règles."}
    capsys.readouterr()
    assert run(["translate", "--own-translations", "off", str(path)]) == 2
    assert "there is nothing to translate with" in capsys.readouterr().err
    text = tmp_path / "a.txt"
    text.write_text("One rule.\n")
    command = ["translate", "--model", str(model), "--own-translations", "off", str(text)]
    assert run(command) == 2
    assert "--own-translations is of files with targets" in capsys.readouterr().err


def test_what_is_translated_anew_is_not_known(tmp_path: Path, model: Path) -> None:
    path = xliff(tmp_path / "a.xlf", (PAIRS[0][0], "", "<target>Fait.</target>"))
    options = ["--model", str(model), "--overwrite", "all", "--beam", "2"]
    assert translated(path, options) == [PAIRS[0][1]]


def test_the_same_place_is_worth_more_than_the_same_text(tmp_path: Path) -> None:
    path = xliff(
        tmp_path / "a.xlf",
        ("Before.", "", "<target>Avant.</target>"),
        ("Save", "", "<target>Enregistrer</target>"),
        ("After.", "", ""),
        ("Save", "", "<target>Épargner</target>"),
        ("Between.", "", ""),
        ("Before.", "", "<target>Avant.</target>"),
        ("Save", "", ""),
        ("After.", "", ""),
    )
    out = tmp_path / "out.jsonl"
    assert run(["translate", "--json", str(path), "--output", str(out)]) == 0
    (save,) = [record for record in records(out) if record["src"] == "Save"]
    assert save["tgt"] == "Enregistrer" and save["origin"] == "memory"
    assert save["matches"][0]["worth"] == 102
    assert save["matches"][0]["reasons"] == {"previous": 1, "next": 1}
    assert save["matches"][0]["document"] == path.as_posix()


def test_of_equal_worth_the_file_goes_before_other_memories(tmp_path: Path) -> None:
    build(tmp_path / "index", [Segment("Save", "Sauver")] * 3, "en", "fr")
    path = xliff(tmp_path / "a.xlf", ("Save", "", "<target>Enregistrer</target>"), ("Save", "", ""))
    assert translated(path, ["--memory", str(tmp_path / "index")])[1] == "Enregistrer"
    options = ["--memory", str(tmp_path / "index"), "--own-translations", "off"]
    assert translated(path, options)[1] == "Sauver"


def test_files_of_one_run_know_of_one_another(tmp_path: Path) -> None:
    first = xliff(tmp_path / "a.xlf", ("Save", "", ""))
    second = xliff(tmp_path / "b.xlf", ("Save", "", "<target>Enregistrer</target>"))
    out = tmp_path / "out"
    assert run(["translate", str(first), str(second), "--output", str(out)]) == 0
    assert targets(out / "a.xlf") == ["Enregistrer"]


def test_analyse_counts_what_translate_does(
    cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def bands(*options: str) -> dict[str, int]:
        capsys.readouterr()
        assert run(["analyse", "--json", *options]) == 0
        counts = json.loads(capsys.readouterr().out)["total"]["bands"]
        return {name: band["segments"] for name, band in counts.items() if band["segments"]}

    assert bands(str(cases / "a.xlf")) == {"100": 1, "85-94": 1, "unchanged": 1}
    assert bands(str(cases / "b.po")) == {"100": 1, "unchanged": 1}
    off = bands(str(cases / "b.po"), "--own-translations", "off")
    assert off == {"no match": 1, "unchanged": 1}
    every = bands(str(cases / "b.po"), "--overwrite", "all")
    assert every == {"no match": 1, "repetitions": 1}
