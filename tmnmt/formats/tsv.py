"""Tables as memories: columns by the names in the first line, or as told by `--columns
src=5,tgt=6,doc=1`. Other readers of tables share `Rows`.

TSV has no quoting: a tab always separates, a line end always ends. So a text that holds one cannot
be written (FormatError); as TMX it can, on one line. Properties are one column of JSON, [["name",
"value"], ...]."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from difflib import get_close_matches
from io import BufferedReader
from pathlib import Path
from typing import TextIO

from tmnmt.codes.record import Code
from tmnmt.codes.stored import codes_of, listed
from tmnmt.errors import FormatError, UsageError
from tmnmt.formats.atomic import REPORT_EVERY, WriteReport, writing
from tmnmt.formats.clean import clean, clean_name, excerpt
from tmnmt.formats.dates import iso_utc
from tmnmt.formats.encoding import MARK, byte_order_mark, lines
from tmnmt.formats.languages import normal_code, rank
from tmnmt.formats.report import EMPTY, MALFORMED, Report
from tmnmt.formats.stream import NoMemory, Source
from tmnmt.quantities import quantity
from tmnmt.segments import Segment

MAX_LINE = 10_000_000  # characters
MAX_COLUMNS = 1000
TSV_SUFFIXES = (".tsv", ".tab")
SRC_CODES_PROPERTY, TGT_CODES_PROPERTY = "x-source-codes", "x-target-codes"
_LONGEST_POSITION = 18  # digits: no larger number fits into an index

# What a header may call each column; `src` and `tgt` also by their language codes.
NAMES = {
    "src": ("src", "source"),
    "tgt": ("tgt", "target", "trg"),
    "document": (
        "document",
        "doc",
        "doc_id",
        "document_id",
        "celex",
        "celex_doc",
        "filename",
        "file",
    ),
    "position": ("position", "pos", "idx", "index"),
    "origin": ("origin",),
    "created": ("created",),
    "changed": ("changed",),
    "user": ("user",),
    "properties": ("properties",),
    "score": ("score",),
}
# the columns of a table that is written, in which a score stands among the properties
WRITTEN = tuple(name for name in NAMES if name != "score")
# what a header may call the name of a segment in its file, which becomes the property x-context
UNIT_NAMES = ("context", "msgctxt", "key", "id", "segment_id")
_UNIT_NAME = "unit name"  # the field of that column
_EXPECTED = (
    "expected a header with src and tgt (or the language codes), or build-index "
    "--columns src=1,tgt=2,doc=3"
)


@dataclass(frozen=True, slots=True)
class Columns:
    """Where each field of a segment stands: a column counted from 1, or its name in the header;
    None where there is none.

    src: the column of the source.
    tgt: the column of the target.
    document: the column of the document's name.
    position: the column of the place in the document.
    origin: the column of the origin.
    created: the column of the time when it was made.
    changed: the column of the time when it was changed last.
    user: the column of the user.
    properties: the column of the properties.
    score: the column of a score of the pair, which becomes the property `score`."""

    src: int | str
    tgt: int | str
    document: int | str | None = None
    position: int | str | None = None
    origin: int | str | None = None
    created: int | str | None = None
    changed: int | str | None = None
    user: int | str | None = None
    properties: int | str | None = None
    score: int | str | None = None

    @property
    def by_name(self) -> bool:
        """Whether a header is needed; with numbers alone the first line is data."""
        return any(isinstance(getattr(self, field.name), str) for field in fields(self))


def parse_columns(text: str) -> Columns:
    """The columns that a text names.

    text: as "src=5,tgt=6,doc=1,idx=2" or "src=en,tgt=fr,doc=celex_doc".

    Raises UsageError where it names none."""
    fields = {name: field for field, names in NAMES.items() for name in names}
    columns: dict[str, int | str] = {}
    quoted = excerpt(text, 200)
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in fields:
            nearest = get_close_matches(key, fields, 1)
            hint = f"did you mean {nearest[0]}? " if nearest else ""
            raise UsageError(
                f"columns {quoted!r}: unknown column {excerpt(key)!r}; {hint}allowed: {_allowed()}"
            )
        column = _column(value) if equals else None
        if not column:
            needs = (
                f"needs a column counted from 1, {MAX_COLUMNS:,} at most, or its name, as in src=5"
            )
            raise UsageError(f"columns {quoted!r}: {excerpt(part)!r} {needs}")
        columns[fields[key]] = column
    if "src" not in columns or "tgt" not in columns:
        raise UsageError(
            f"columns {quoted!r}: src and tgt are both needed, as in src=5,tgt=6,doc=1"
        )
    if columns["src"] == columns["tgt"]:
        raise UsageError(f"columns {quoted!r}: src and tgt are the same column")
    return Columns(**columns)


def _column(value: str) -> int | str | None:
    """The column that `value` says, by its number or its name; None for a number that no column
    has."""
    if not value.isdecimal():
        return value
    digits = value.lstrip("0")
    if (
        not value.isascii()
        or not digits
        or len(digits) > len(str(MAX_COLUMNS))
        or int(digits) > MAX_COLUMNS
    ):
        return None
    return int(digits)


def _allowed() -> str:
    """The names of columns; of the document the one that is told everywhere, beside its own."""
    return ", ".join("doc (or document)" if name == "document" else name for name in NAMES)


def read_tsv(
    stream: BufferedReader,
    source: Source,
    src_lang: str,
    tgt_lang: str,
    report: Report,
    columns: Columns | None,
) -> Iterator[tuple[int, Segment]]:
    """The pair of every line with its line number. Lines with a column missing or undecodable go to
    the report. Without a document column the document is the file's name; without a position column
    the position counts the document's lines.

    stream: the bytes of the table.
    source: the file, for names and messages.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    report: counts the lines, and says what is wrong with those that are skipped.
    columns: which columns are read; None finds them by their names.

    Raises FormatError where there is no usable header, or the file does not have a column."""
    encoding = byte_order_mark(stream.peek(4))[0].upper()
    reader: Rows | None = None
    quoting = _Quoting()
    for number, line in enumerate(lines(stream, MAX_LINE), 1):
        if not line and reader is not None:
            report.skip(EMPTY, number, "no text")
            continue
        cells = line.split("\t")
        quoting.see(number, line, cells)
        if reader is None:
            reader = Rows(
                source, report, places_of(cells, src_lang, tgt_lang, columns, source.label)
            )
            if columns is None or columns.by_name:
                continue
        if MARK in line:
            report.skip_undecodable(number, encoding)
        elif (segment := reader.segment(number, cells)) is not None:
            yield number, segment
    if quoting.lines:
        report.warnings.append(f"{source.label}: {quoting}")
    report.end_file(encoding)


class _Quoting:
    """Cells that look as a spreadsheet quotes them: one of several lines, or with doubled quotes
    inside."""

    def __init__(self) -> None:
        self.lines = 0
        self._first = self._open_line = 0  # lines

    def see(self, number: int, line: str, cells: Sequence[str]) -> None:
        """Looks at every line in turn."""
        if '"' not in line:
            if "\t" in line:
                self._open_line = 0
            return
        line_cells = cells
        if self._open_line:
            if cells[0].endswith('"') and _odd(cells[0]):
                self._count(self._open_line)
            line_cells = cells[1:]
            self._open_line = 0
        if any(
            cell[0:1] == cell[-1:] == '"' and '""' in cell[1:-1] and not _odd(cell)
            for cell in line_cells
        ):
            self._count(number)
        elif (
            line_cells
            and line_cells[-1].startswith('"')
            and _odd(line_cells[-1])
            and not any(map(_odd, line_cells[:-1]))
        ):
            self._open_line = number

    def _count(self, line: int) -> None:
        self.lines += 1
        self._first = self._first or line

    def __str__(self) -> str:
        lines = (
            f"{quantity(self.lines, 'line')} quoted as a spreadsheet quotes cells (first: "
            f"line {self._first})"
        )
        return (
            f"{lines}; quotes are text here, and a cell of two lines makes a false pair: save "
            "without, or as TMX"
        )


def _odd(cell: str) -> bool:
    return cell.count('"') % 2 == 1


def places_of(
    cells: Sequence[str], src_lang: str, tgt_lang: str, columns: Columns | None, label: str
) -> dict[str, int]:
    """The index of each field's column, from 0.

    cells: the cells of the first line.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    columns: which columns are read; None finds them by their names.
    label: what messages call the file.

    Raises NoMemory where the line names no columns of these languages."""
    if len(cells) > MAX_COLUMNS:
        raise NoMemory(
            label,
            f"{quantity(len(cells), 'column')} in the first line; at most {MAX_COLUMNS:,} are read",
        )
    if columns is None:
        return _from_header(cells, src_lang, tgt_lang, label)
    places: dict[str, int] = {}
    for field in NAMES:
        column = getattr(columns, field)
        if isinstance(column, str):
            if column not in cells:
                raise NoMemory(
                    label, f"no column {column!r} in the first line, which has: {_excerpts(cells)}"
                )
            places[field] = cells.index(column)
        elif column is not None:
            if column > len(cells):
                count = quantity(len(cells), "column")
                raise NoMemory(
                    f"{label}, line 1",
                    f"{count}, but {field}={column} asked for; columns count from 1",
                )
            places[field] = column - 1
    return places


def _from_header(cells: Sequence[str], src_lang: str, tgt_lang: str, label: str) -> dict[str, int]:
    lower = [cell.strip().lower() for cell in cells]
    places = {
        field: lower.index(name)
        for field, names in (*NAMES.items(), (_UNIT_NAME, UNIT_NAMES))
        for name in names[::-1]
        if name in lower
    }
    for field, lang in (("src", normal_code(src_lang)), ("tgt", normal_code(tgt_lang))):
        ranked = [
            (r, index)
            for index, name in enumerate(lower)
            if (r := rank(normal_code(name), lang)) is not None
        ]
        if field not in places and ranked:
            places[field] = min(ranked)[1]
        if field not in places:
            raise NoMemory(
                label, f"the first line names no column for {lang} ({_excerpts(cells)})", _EXPECTED
            )
    return places


def _excerpts(cells: Sequence[str]) -> str:
    return ", ".join(excerpt(cell, 30) for cell in cells[:12])


class Rows:
    """The segments of the rows of a table."""

    def __init__(self, source: Source, report: Report, places: dict[str, int]) -> None:
        """source: the file, for names and messages.
        report: counts the rows, and says what is wrong with those that are skipped.
        places: the index of each field's column, from 0."""
        self._source, self._report = source, report
        self._src, self._tgt = places.pop("src"), places.pop("tgt")
        self._document = places.pop("document", None)
        self._optional = places
        self._dates = [field for field in ("created", "changed") if field in places]
        self.min_cells = max(self._src, self._tgt, self._document or 0, *places.values(), 0) + 1
        self._lines_of: dict[int, int] = {}  # by the hash of a document's name, which may take 4 KB

    def segment(self, line: int, cells: Sequence[str]) -> Segment | None:
        """The pair of a row; None where the report says what is wrong with it.

        line: the line of the row, from 1.
        cells: its cells."""
        if len(cells) < self.min_cells:
            self._report.skip(
                MALFORMED,
                line,
                f"{quantity(len(cells), 'column')} where {self.min_cells} are needed",
            )
            return None
        document = (
            self._source.stem if self._document is None else clean_name(cells[self._document])
        )
        position = self._lines_of.get(hash(document), 0)
        self._lines_of[hash(document)] = position + 1
        src, src_cleaned = clean(cells[self._src])
        tgt, tgt_cleaned = clean(cells[self._tgt])
        self._report.cleaned += src_cleaned + tgt_cleaned
        if not self._optional:
            return Segment(src, tgt, document, position, 0, self._source.name)
        try:
            return self._full(src, tgt, document, position, cells)
        except ValueError as error:
            self._report.skip(MALFORMED, line, str(error))
            return None

    def _full(
        self, src: str, tgt: str, document: str, position: int, cells: Sequence[str]
    ) -> Segment:
        values = {field: cells[index] for field, index in self._optional.items()}
        if "position" in values:
            position = _whole_number(values["position"])
        properties = _pairs(values.get("properties", ""))
        src_codes, properties = _codes(properties, SRC_CODES_PROPERTY, src)
        tgt_codes, properties = _codes(properties, TGT_CODES_PROPERTY, tgt)
        if name := clean_name(values.get(_UNIT_NAME, "")):
            properties += (("x-context", name),)
        if score := clean_name(values.get("score", "")):
            properties += (("score", score),)
        dates = {}
        for field in self._dates:
            date = iso_utc(values[field]) if values[field] else ""
            if date is None:
                properties += ((field, values[field]),)
            dates[field] = date or ""
        return Segment(
            src,
            tgt,
            document,
            position,
            0,
            values.get("origin", self._source.name),
            dates.get("created", ""),
            dates.get("changed", ""),
            values.get("user", ""),
            properties,
            src_codes,
            tgt_codes,
        )


def _whole_number(text: str) -> int:
    digits = text.strip()
    if not digits.isdecimal():
        raise ValueError(f"position {excerpt(text, 30)!r} is no whole number")
    if len(digits) > _LONGEST_POSITION:
        raise ValueError(f"position {excerpt(text, 30)!r} has more than {_LONGEST_POSITION} digits")
    return int(digits)


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    if not text:
        return ()
    try:
        pairs = tuple((str(name), str(value)) for name, value in json.loads(text))
        "".join(map("".join, pairs)).encode()
    except (ValueError, TypeError, RecursionError) as error:
        half = ": half of a surrogate pair" if isinstance(error, UnicodeEncodeError) else ""
        raise ValueError(
            f"properties {excerpt(text, 30)!r} are no JSON list of pairs{half}"
        ) from error
    return pairs


def _codes(
    properties: tuple[tuple[str, str], ...], name: str, plain: str
) -> tuple[tuple[Code, ...], tuple[tuple[str, str], ...]]:
    """The codes that stand in the property of this name, and the properties without it."""
    values = [value for key, value in properties if key == name]
    if not values:
        return (), properties
    try:
        codes = codes_of(json.loads(values[0]), plain)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} {excerpt(values[0], 30)!r} are no codes of the text") from error
    return codes, tuple(pair for pair in properties if pair[0] != name)


def write_tsv(
    path: Path, segments: Iterable[Segment], *, progress: Callable[[int], None] | None = None
) -> WriteReport:
    """Writes segments to a file with a header, which replaces an existing one atomically. Reading
    the file again gives equal segments, `id` excepted; codes travel as properties x-source-codes
    and x-target-codes.

    path: the file: .tsv, .tsv.gz or .tsv.xz.
    segments: the segments.
    progress: is called with the number of segments that were written since the last call; None
    tells nobody.

    Raises FormatError for a field with a tab or a line end in it."""
    count = 0
    with tsv_writer(path) as write:
        for segment in segments:
            write(segment)
            count += 1
            if progress and count % REPORT_EVERY == 0:
                progress(REPORT_EVERY)
    if progress and count % REPORT_EVERY:
        progress(count % REPORT_EVERY)
    return WriteReport(count, 0)


@contextmanager
def tsv_writer(path: Path) -> Iterator[Callable[[Segment], None]]:
    """Gives a function that writes one segment after another into a file as `write_tsv` does.

    path: the file: .tsv, .tsv.gz or .tsv.xz."""
    with writing(path) as file:
        file.write("\t".join(WRITTEN) + "\n")
        yield lambda segment: _write(file, segment)


def _write(file: TextIO, segment: Segment) -> None:
    file.write("\t".join(_cells(segment)) + "\n")


def _code_properties(segment: Segment) -> Iterator[tuple[str, str]]:
    if segment.src_codes:
        yield SRC_CODES_PROPERTY, json.dumps(listed(segment.src, segment.src_codes))
    if segment.tgt_codes:
        yield TGT_CODES_PROPERTY, json.dumps(listed(segment.tgt, segment.tgt_codes))


def _cells(segment: Segment) -> list[str]:
    properties = [*segment.properties, *_code_properties(segment)]
    pairs = json.dumps(properties, ensure_ascii=False) if properties else ""
    cells = [
        segment.src,
        segment.tgt,
        segment.document,
        str(segment.position),
        segment.origin,
        segment.created,
        segment.changed,
        segment.user,
        pairs,
    ]
    for field, cell in zip(WRITTEN, cells, strict=True):
        if "\t" in cell or "\n" in cell or "\r" in cell:
            number = f"segment {segment.id}, " if segment.id else ""
            raise FormatError(
                f"{number}document {segment.document!r}, position {segment.position}: its "
                f"{field} has a tab or a line "
                "end, which TSV cannot hold; correct it, or write TMX instead"
            )
    return cells
