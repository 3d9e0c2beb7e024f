"""Tables of comma-separated or semicolon-separated values as memories, as spreadsheets write them:
cells may be quoted, and a quoted cell may have several lines. The columns are those of TSV."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator
from contextlib import closing
from io import BufferedReader
from itertools import chain

from tmnmt.errors import FormatError
from tmnmt.formats.clean import excerpt
from tmnmt.formats.encoding import MARK, byte_order_mark, lines
from tmnmt.formats.report import EMPTY, Report
from tmnmt.formats.stream import Source
from tmnmt.formats.tsv import MAX_LINE, Columns, Rows, places_of
from tmnmt.segments import Segment

CSV_SUFFIXES = (".csv",)
DELIMITERS = ",;\t"


def read_csv(
    stream: BufferedReader,
    source: Source,
    src_lang: str,
    tgt_lang: str,
    report: Report,
    columns: Columns | None,
) -> Iterator[tuple[int, Segment]]:
    """The pair of every row with the line in which the row ends. The delimiter is the one by which
    the first line has most cells.

    stream: the bytes of the table.
    source: the file, for names and messages.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    report: counts the rows, and says what is wrong with those that are skipped.
    columns: which columns are read; None finds them by their names.

    Raises FormatError where there is no usable header, where the file does not have a column, and
    for a quoted cell that never ends."""
    encoding = byte_order_mark(stream.peek(4))[0].upper()
    reader: Rows | None = None
    with closing(_rows(stream, source.label)) as rows:
        for number, cells in rows:
            if not any(cells):
                if reader is not None:
                    report.skip(EMPTY, number, "no text")
                continue
            if reader is None:
                places = places_of(cells, src_lang, tgt_lang, columns, source.label)
                reader = Rows(source, report, places)
                if columns is None or columns.by_name:
                    continue
            if any(MARK in cell for cell in cells):
                report.skip_undecodable(number, encoding)
            elif (segment := reader.segment(number, cells)) is not None:
                yield number, segment
    report.end_file(encoding)


def _rows(stream: BufferedReader, label: str) -> Generator[tuple[int, list[str]], None, None]:
    """The cells of every row, and the line in which it ends."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE))
    line_number = 0
    with closing(lines(stream, MAX_LINE)) as texts:
        first = next(texts, "")
        whole = (f"{text}\n" for text in chain([first], texts))
        reader = csv.reader(whole, delimiter=delimiter_of(first), strict=True)
        try:
            for cells in reader:
                line_number = reader.line_num
                yield line_number, cells
        except csv.Error as error:
            raise FormatError(
                f"{label}, line {line_number + 1}: the row that begins here cannot be read: "
                f'{excerpt(str(error), 100)}; a cell that begins with " must end with one'
            ) from error


def delimiter_of(line: str) -> str:
    """What separates the cells of a table: that by which its first line has most.

    line: the first line."""
    counts = {mark: _count(line, mark) for mark in DELIMITERS}
    return max(counts, key=lambda mark: counts[mark])


def _count(line: str, delimiter: str) -> int:
    try:
        return len(next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error:
        return 0
