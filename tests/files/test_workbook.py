"""The rows of a workbook are a memory."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import openpyxl
import pytest

from tmnmt.cli import run
from tmnmt.errors import FormatError
from tmnmt.files.as_memory import read_memories
from tmnmt.formats import Columns

Row = Sequence[str | int | None]


def workbook(path: Path, *sheets: Sequence[Row]) -> Path:
    book = openpyxl.Workbook()
    for name in book.sheetnames:
        del book[name]
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"Sheet {number}")
        for row in rows:
            sheet.append(list(row))
    book.save(path)
    return path


def test_its_first_row_names_the_languages(tmp_path: Path) -> None:
    rows: list[Row] = [
        ("id", "note", "en-GB", "fr"),
        ("a", None, "Open <the> file & close it.", "Ouvrez le fichier et fermez-le."),
        (),
        ("b", "x", "Two\nlines", "Deux\nlignes"),
        ("c", None, "No target", None),
        (None, None, 12, "douze"),
    ]
    path = workbook(tmp_path / "terms.xlsx", rows)
    reader = read_memories([path], "en", "fr")
    segments = list(reader)
    assert [(s.src, s.tgt) for s in segments] == [
        ("Open <the> file & close it.", "Ouvrez le fichier et fermez-le."),
        ("Two lines", "Deux lignes"),
        ("12", "douze"),
    ]
    assert [s.properties for s in segments] == [(("x-context", "a"),), (("x-context", "b"),), ()]
    assert {s.document for s in segments} == {"terms"}
    assert reader.report.units == 4 and "line 5: no target" in str(reader.report)


def test_sheets_without_the_languages_are_passed_over(tmp_path: Path) -> None:
    path = workbook(tmp_path / "m.xlsx", [("a", "b"), ("x", "y")], [("fr", "en"), ("Un", "One")])
    reader = read_memories([path], "en", "fr")
    assert [(s.src, s.tgt) for s in reader] == [("One", "Un")]
    assert "the sheet is passed over" in str(reader.report)
    with pytest.raises(FormatError, match="names no column for en"):
        list(read_memories([path], "en", "de"))


def test_columns_can_be_told(tmp_path: Path) -> None:
    path = workbook(tmp_path / "m.xlsx", [("x", "One", "Un"), ("y", "Two", "Deux")])
    reader = read_memories([path], "en", "fr", columns=Columns(2, 3, 1))
    assert [(s.src, s.document) for s in reader] == [("One", "x"), ("Two", "y")]


def test_cells_stand_in_their_columns_and_readings_are_left_out(tmp_path: Path) -> None:
    path = workbook(tmp_path / "m.xlsx", [("en", None, "fr"), ("One", None, "Un")])
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet, inline = "xl/worksheets/sheet1.xml", b't="inlineStr"><is><t>One</t></is></c>'
    assert inline in parts[sheet]

    def changed(cell: bytes) -> list[tuple[str, str]]:
        shared = (
            '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><r><t>O</t>'
            '</r><r><t>ne</t></r><rPh sb="0" eb="1"><t>read</t></rPh></si></sst>'
        )
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in parts.items():
                archive.writestr(name, data.replace(inline, cell) if name == sheet else data)
            archive.writestr("xl/sharedStrings.xml", shared)
        return [(s.src, s.tgt) for s in read_memories([path], "en", "fr")]

    assert changed(b't="s"><v>0</v></c>') == [("One", "Un")]
    with pytest.raises(FormatError, match=r"sheet1\.xml, behind row 2: cell A2: no shared"):
        changed(b't="s"><v>7</v></c>')


def test_what_is_no_workbook_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.xlsx").write_bytes(b"PK\x03\x04 damaged")
    command = ["build-index", "--src-lang", "en", "--tgt-lang", "fr"]
    assert run([*command, "--index", str(tmp_path / "i"), str(tmp_path / "m.xlsx")]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("tmnmt: error:") and "m.xlsx" in told


def test_a_workbook_is_a_memory_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = workbook(tmp_path / "m.xlsx", [("en", "fr"), ("Save", "Enregistrer")])
    (tmp_path / "a.txt").write_text("Save\n")
    command = ["translate", "--memory", str(path), "--src-lang", "en", "--tgt-lang", "fr"]
    assert run([*command, str(tmp_path / "a.txt")]) == 0
    assert capsys.readouterr().out == "Enregistrer\n"
