"""`tmnmt check`: what is found in translations from elsewhere, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tmnmt.batch.check import NAMES, Checker, check_names
from tmnmt.checks import CHECKS, FINDINGS
from tmnmt.cli import run
from tmnmt.errors import UsageError

UNITS = (
    ("The permit is valid for 30 days.", "Le permis est valable 40 jours.", ""),
    ("the permit", "le permis, selon le cas :", ""),
    ('The <g id="1">owner</g>.', "Le propriétaire .", ""),
    ("The owner.", "Le propriétaire.", ""),
    ("The owner %s.", "Le propriétaire.", ' translate="no"'),
)


@pytest.fixture
def xliff(tmp_path: Path) -> Path:
    path = tmp_path / "report.xlf"
    units = "".join(
        f'<trans-unit id="{number}"{says}><source>{src}</source>'
        f'<target state="translated">{tgt}</target></trans-unit>\n'
        for number, (src, tgt, says) in enumerate(UNITS, 1)
    )
    path.write_text(
        '<xliff version="1.2"><file original="a" source-language="en" target-language="fr" '
        f'datatype="plaintext"><body>\n{units}'
        '<trans-unit id="9"><source>New.</source></trans-unit></body></file></xliff>\n',
        encoding="utf-8",
    )
    return path


def test_findings_are_lines_with_their_place(
    xliff: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", str(xliff)]) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        f"{xliff}:2: segment 1: numbers: 30",
        f"{xliff}:3: segment 2: ends: rmis, selon le cas :",
        f'{xliff}:4: segment 3: codes: lost: <g id="1"> </g>',
        f"{xliff}:4: segment 3: spaces: opriétaire .",
    ]
    assert captured.err.startswith("4 translations checked, 4 findings\n")


def test_nothing_found_is_no_error(xliff: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(xliff), "--only", "length", "--only", "terms"]) == 0
    assert capsys.readouterr().out == ""


def test_reports_for_programs(xliff: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(xliff), "--report", "json", "--without", "spaces"]) == 1
    read = json.loads(capsys.readouterr().out)
    assert read["checked"] == 4 and [f["check"] for f in read["findings"]] == [
        "numbers",
        "ends",
        "codes",
    ]
    output = xliff.parent / "out.sarif"
    assert run(["check", str(xliff), "--report", "sarif", "-o", str(output)]) == 1
    (log,) = json.loads(output.read_text(encoding="utf-8"))["runs"]
    lines = [
        result["locations"][0]["physicalLocation"]["region"]["startLine"]
        for result in log["results"]
    ]
    assert lines == [2, 3, 4, 4]
    assert {result["ruleId"] for result in log["results"]} <= {
        rule["id"] for rule in log["tool"]["driver"]["rules"]
    }
    capsys.readouterr()
    assert run(["check", str(xliff), "--report", "junit"]) == 1
    suite = ElementTree.fromstring(capsys.readouterr().out)
    assert suite.attrib["failures"] == "4" and len(suite.findall("testcase/failure")) == 4


def test_a_memory_file_needs_its_languages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, terms = tmp_path / "pairs.tsv", tmp_path / "terms.csv"
    path.write_text("src\ttgt\nIn thirty days.\tDans 45 jours.\n", encoding="utf-8")
    terms.write_text("source,target\ndays,journées\n", encoding="utf-8")
    assert run(["check", str(path)]) == 2
    assert "give --src-lang, --tgt-lang" in capsys.readouterr().err
    languages = ["--src-lang", "en", "--tgt-lang", "fr"]
    assert run(["check", str(path), *languages, "--terms", str(terms)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{path}:2: segment 1: numbers: thirty",
        f"{path}:2: segment 1: terms: journées for days",
    ]
    assert run(["check", str(tmp_path / "none.xlf")]) == 1
    assert "no such file" in capsys.readouterr().err


def test_what_cannot_be_checked_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, empty = tmp_path / "pairs.tsv", tmp_path / "new.po"
    path.write_text("en\tfr\nYes.\tOui.\nNo.\nMaybe.\tPeut-être.\n", encoding="utf-8")
    empty.write_text('msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid "Yes."\nmsgstr ""\n', "utf-8")
    languages = ["--src-lang", "en", "--tgt-lang", "fr"]
    assert run(["check", str(path), *languages]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("2 translations checked, 0 findings\n")
    assert f"{path}, line 3: " in captured.err
    assert run(["check", str(empty), *languages]) == 1
    assert f"tmnmt: {empty}: has no translation that can be checked" in capsys.readouterr().err


def test_names_of_checks() -> None:
    assert set(FINDINGS) - set(NAMES) <= {
        "answer",
        "replay",
        "words",
        "meaning",
    }  # which `translate` alone tells
    assert set(NAMES) <= set(FINDINGS) and set(CHECKS) < set(NAMES)
    assert check_names(["ends"], []) == ("ends",) and "ends" not in check_names([], ["ends"])
    with pytest.raises(UsageError, match="check 'foo'; allowed: empty, numbers"):
        check_names(["foo"], [])
    assert Checker().pairs == 0
