"""Workbooks of Excel as memories: sheets whose first row names the languages, as in CSV."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, iterparse

from tmnmt.errors import FormatError
from tmnmt.files.office_archive import check_archive
from tmnmt.formats.report import Report
from tmnmt.formats.stream import NoMemory, Source
from tmnmt.formats.tsv import MAX_COLUMNS, Columns, Rows, places_of
from tmnmt.segments import Segment

SUFFIXES = (".xlsx",)
_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_STRICT = "{http://purl.oclc.org/ooxml/spreadsheetml/main}"
_SHEET = re.compile(r"xl/worksheets/sheet(\d+)\.xml")
_STRINGS = "xl/sharedStrings.xml"
_CELL = re.compile(r"([A-Z]{1,3})\d+")
_LINE_END = re.compile(r"_x000D_|\r\n?")  # as a cell has them


def pairs_of_workbook(
    path: Path,
    source: Source,
    src_lang: str,
    tgt_lang: str,
    report: Report,
    columns: Columns | None = None,
) -> Iterator[tuple[int, Segment]] | None:
    """The pairs of a workbook, each with its row; None where the file is of another kind. A sheet
    whose first row names no such columns is passed over, with a warning.

    path: the file.
    source: says what the file is called.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    report: counts the rows, and says what is wrong with those that are skipped.
    columns: which columns are read; None finds them by their names.

    Raises FormatError where the file cannot be read, or no sheet has the columns."""
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        return None
    return _pairs(path, source, (src_lang, tgt_lang), report, columns)


def _pairs(
    path: Path,
    source: Source,
    languages: tuple[str, str],
    report: Report,
    columns: Columns | None,
) -> Iterator[tuple[int, Segment]]:
    check_archive(path)
    report.begin_file(source.label, source.allowance)
    problems = list[NoMemory]()
    with zipfile.ZipFile(path) as archive:
        strings = _shared_strings(archive, path)
        sheets = sorted(
            (int(match[1]), match[0])
            for name in archive.namelist()
            if (match := _SHEET.fullmatch(name))
        )
        for _, name in sheets:
            with closing(_rows(archive, name, strings, path)) as rows:
                try:
                    yield from _segments(rows, source, languages, report, columns)
                except NoMemory as error:
                    problems.append(error)
    if len(problems) == len(sheets):
        raise problems[0] if problems else FormatError(f"{path}: a workbook without a sheet")
    report.warnings += [f"{error}; the sheet is passed over" for error in problems]


def _segments(
    rows: Iterator[tuple[int, list[str]]],
    source: Source,
    languages: tuple[str, str],
    report: Report,
    columns: Columns | None,
) -> Iterator[tuple[int, Segment]]:
    reader: Rows | None = None
    for number, cells in rows:
        if not any(cells):
            continue
        if reader is None:
            reader = Rows(source, report, places_of(cells, *languages, columns, source.label))
            if columns is None or columns.by_name:
                continue
        cells += [""] * (reader.min_cells - len(cells))  # those at the end that are left out
        if (segment := reader.segment(number, cells)) is not None:
            yield number, segment


def _shared_strings(archive: zipfile.ZipFile, path: Path) -> list[str]:
    if _STRINGS not in archive.namelist():
        return []
    return [_text(element) for element in _elements(archive, _STRINGS, "si", path)]


def _rows(
    archive: zipfile.ZipFile, name: str, strings: list[str], path: Path
) -> Generator[tuple[int, list[str]], None, None]:
    """The cells of every row, with the number of the row."""
    number = 0
    for row in _elements(archive, name, "row", path):
        try:
            number = int(row.get("r") or number + 1)
            cells = _cells(row, strings)
        except ValueError as error:
            raise FormatError(f"{path}: {name}, behind row {number}: {error}") from error
        yield number, cells


def _cells(row: Element, strings: list[str]) -> list[str]:
    """The texts of a row, with "" for every cell that is left out. Raises ValueError for a cell
    that cannot be read."""
    cells = list[str]()
    for cell in row:
        place = _column(cell.get("r") or "", len(cells))
        if place >= MAX_COLUMNS:
            break
        cells += [""] * (place - len(cells))
        cells.append(_value(cell, strings))
    return cells


def _elements(archive: zipfile.ZipFile, part: str, tag: str, path: Path) -> Iterator[Element]:
    """The elements of this name, one after another, of a part of the archive."""
    names = {f"{_MAIN}{tag}", f"{_STRICT}{tag}"}
    try:
        with archive.open(part) as file:
            for _, element in iterparse(file):
                if element.tag in names:
                    yield element
                    element.clear()
    except (ParseError, ValueError, zipfile.BadZipFile) as error:
        raise FormatError(f"{path}: {part} cannot be read: {error}") from error


def _column(reference: str, default: int) -> int:
    """The number of a cell's column, from 0: that of "B7" is 1."""
    letters = _CELL.fullmatch(reference)
    if letters is None:
        return default
    number = 0
    for letter in letters[1]:
        number = number * 26 + ord(letter) - ord("A") + 1
    return max(number - 1, default)


def _value(cell: Element, strings: list[str]) -> str:
    """The text of a cell; of a formula what it came to."""
    kind = cell.get("t", "n")
    if kind == "inlineStr":
        return _text(cell)
    value = next((child.text or "" for child in cell if child.tag.endswith("}v")), "")
    if kind != "s":
        return value
    number = int(value) if value.isdecimal() else len(strings)
    if number >= len(strings):
        raise ValueError(f"cell {cell.get('r')}: no shared string {value!r}")
    return strings[number]


def _text(element: Element) -> str:
    """The text of a cell or a shared string, without the readings of Japanese words."""
    parts = list[str]()
    for child in element:
        name = child.tag.rpartition("}")[2]
        if name == "t":
            parts.append(child.text or "")
        elif name in ("r", "is"):
            parts.append(_text(child))
    return _LINE_END.sub("\n", "".join(parts))
