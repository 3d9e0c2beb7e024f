"""The formats of memory files: each says which files it reads, and reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, Protocol

from tmnmt.formats.csv_memory import CSV_SUFFIXES, read_csv
from tmnmt.formats.encoding import root_element
from tmnmt.formats.report import Report
from tmnmt.formats.stream import Source
from tmnmt.formats.tsv import TSV_SUFFIXES, Columns, read_tsv
from tmnmt.registry import Registry
from tmnmt.segments import Segment

Pairs = Iterator[tuple[int, Segment]]  # each with its line


class MemoryFile(NamedTuple):
    """A memory that is read.

    stream: its bytes.
    source: its name, and what its bytes are packed in.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    report: counts the units, and says what is wrong with those that are skipped.
    columns: which columns of a table are read; None finds them by their names.
    folder: the folder that it lies in; None where it is in an archive."""

    stream: BufferedReader
    source: Source
    src_lang: str
    tgt_lang: str
    report: Report
    columns: Columns | None
    folder: Path | None


class MemoryFormat(Protocol):
    """One format.

    title: what messages call it.
    suffixes: how the members of an archive are called that may be of it.
    has_columns: whether somebody can say which of its columns are read."""

    title: str
    suffixes: Sequence[str]
    has_columns: bool

    def accepts(self, head: str, source: Source, columns: Columns | None) -> bool:
        """Whether a file is of this format.

        head: the beginning of the file, as text.
        source: the name of the file and what its bytes are packed in.
        columns: the columns that the user has named; None where none are named."""

    def read(self, file: MemoryFile) -> Pairs:
        """The units that have both languages, in order, each with its line. The others go to the
        report.

        file: the file, with its languages and its report.

        Raises FormatError for what cannot be read."""


class _TSV:
    title = "TSV"
    suffixes: Sequence[str] = TSV_SUFFIXES
    has_columns = True

    def accepts(self, head: str, source: Source, columns: Columns | None) -> bool:
        if source.suffix in TSV_SUFFIXES:
            return True
        is_table = columns is not None or "\t" in head.partition("\n")[0]
        return is_table and source.suffix not in (".tmx", *CSV_SUFFIXES) and not root_element(head)

    def read(self, file: MemoryFile) -> Pairs:
        languages = file.src_lang, file.tgt_lang
        return read_tsv(file.stream, file.source, *languages, file.report, file.columns)


class _CSV:
    title = "CSV"
    suffixes: Sequence[str] = CSV_SUFFIXES
    has_columns = True

    def accepts(self, head: str, source: Source, columns: Columns | None) -> bool:
        return source.suffix in CSV_SUFFIXES

    def read(self, file: MemoryFile) -> Pairs:
        languages = file.src_lang, file.tgt_lang
        return read_csv(file.stream, file.source, *languages, file.report, file.columns)


class _TMX:
    title = "TMX"
    suffixes: Sequence[str] = (".tmx", ".xml")
    has_columns = False

    def accepts(self, head: str, source: Source, columns: Columns | None) -> bool:
        return root_element(head) == "tmx"

    def read(self, file: MemoryFile) -> Pairs:
        from tmnmt.formats.tmx import read_tmx

        return read_tmx(file.stream, file.source, file.src_lang, file.tgt_lang, file.report)


class _JRC:
    title = "a JRC-Acquis alignment (.xml)"
    suffixes: Sequence[str] = (".xml",)
    has_columns = False

    def accepts(self, head: str, source: Source, columns: Columns | None) -> bool:
        return root_element(head) == "TEI.2"

    def read(self, file: MemoryFile) -> Pairs:
        from tmnmt.formats.jrc import read_jrc

        languages = file.src_lang, file.tgt_lang
        return read_jrc(file.stream, file.source, *languages, file.report, file.folder)


# the first that accepts a file reads it
MEMORY_FORMATS: Registry[MemoryFormat] = Registry(
    "memory format", {"tsv": _TSV(), "csv": _CSV(), "tmx": _TMX(), "jrc": _JRC()}
)
