"""Plain text to translate: one segment a line, an empty line between documents."""

from __future__ import annotations

import io
import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath

from tmnmt.counted import counted
from tmnmt.errors import FormatError
from tmnmt.formats.clean import excerpt
from tmnmt.formats.encoding import (
    MARK,
    byte_order_mark,
    head_text,
    lines,
    lines_as_they_come,
    root_element,
)
from tmnmt.formats.stream import bare_name, file_source
from tmnmt.formats.tsv import NAMES, TSV_SUFFIXES

_log = logging.getLogger(__name__)
_LOOKED_AT = 4096  # bytes, or characters
_CONTROL_BYTES = [bytes([code]) for code in (*range(9), *range(14, 27), *range(28, 32))]
_READS_MEMORIES = "`tmnmt translate --memory` and `tmnmt build-index` read it"
_EXTRACTS_TEXT = "a CAT tool (OmegaT, Okapi Rainbow) extracts its segments"
_SAVES_AS_TEXT = "an office program, or `pandoc -t plain --wrap=none`, saves it as plain text"
# What other files begin with, and what would read them.
_DOCUMENTS = {
    b"PK\x03\x04": f"an archive, as .docx, .xlsx, .odt and .zip are: {_SAVES_AS_TEXT}",
    b"\xd0\xcf\x11\xe0": f"an office document, as .doc and .xls are: {_SAVES_AS_TEXT}",
    b"{\\rtf": f"RTF: {_SAVES_AS_TEXT}",
    b"%PDF-": "PDF: `pdftotext` reads it",
    b"\x1f\x8b": "packed: `gzip -dc` unpacks it",
    b"\xfd7zXZ\x00": "packed: `xz -dc` unpacks it",
}
_FROM_FILE = "`tmnmt translate` fills such a file, given by its name and not packed"
_GETTEXT = f"gettext messages (PO): {_FROM_FILE}"
_JSON = f"JSON: {_FROM_FILE}"
_SUBTITLES = f"subtitles with their times: {_EXTRACTS_TEXT}"
_HTML = f"HTML: {_FROM_FILE}"
_STRINGS = f"strings of a program with their keys: {_EXTRACTS_TEXT}"
_BY_SUFFIX = {
    ".po": _GETTEXT,
    ".pot": _GETTEXT,
    ".json": _JSON,
    ".srt": _SUBTITLES,
    ".vtt": _SUBTITLES,
    ".html": _HTML,
    ".htm": _HTML,
    ".properties": f"Java properties: {_FROM_FILE}",
    ".strings": _STRINGS,
    ".resx": _STRINGS,
    ".yaml": _STRINGS,
    ".yml": _STRINGS,
    ".toml": _STRINGS,
    ".csv": f"a table (CSV): {_EXTRACTS_TEXT}",
}
# What has text between marks of its own. JSON: an object with a key, or a list of such objects or
# of strings.
_BY_CONTENT = (
    (re.compile(r'^msgid "', re.MULTILINE), _GETTEXT),
    (re.compile(r"^\d\d:\d\d:\d\d,\d{3} --> \d\d:", re.MULTILINE | re.ASCII), _SUBTITLES),
    (re.compile(r"\AWEBVTT[ \t\r]*$", re.MULTILINE), _SUBTITLES),
    (re.compile(r'\A\s*+(?:\[\s*+)*+\{\s*+"(?:[^"\\\n]|\\.)*+"\s*+:'), _JSON),
    (re.compile(r'\A\s*+\[\s*+"(?:[^"\\\n]|\\.)*+"\s*+,\s*+"'), _JSON),
)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


@dataclass(slots=True)
class DocumentLines:
    """The lines of one input, without their ends, as many as it has; iterate once.

    While iterating it counts the lines whose undecodable bytes became U+FFFD (`undecodable`) and
    those that lost NUL bytes and other control characters (`control`); at the end one logged
    warning for each kind says so."""

    name: str
    source: Path | BufferedReader
    read: int = 0
    undecodable: int = 0
    control: int = 0
    _first: dict[str, int] | None = None

    def __iter__(self) -> Iterator[str]:
        if isinstance(self.source, Path):
            with file_source(self.source).stream() as stream:
                yield from self._lines(stream)
        else:
            yield from self._lines(self.source)
        self._warn()

    def as_they_come(self, most: int) -> Iterator[list[str]]:
        """The same lines of a stream that is a pipe or a terminal, in lists: all that have come, or
        `most` and a few. A list is given before more is waited for."""
        assert not isinstance(self.source, Path)
        check_plain(self.source, self.name)
        for come in lines_as_they_come(self.source, most):
            yield list(self._repaired(come))
        self._warn()

    @property
    def trickles(self) -> bool:
        """Whether this is a pipe or a terminal, whose lines may come one by one."""
        try:
            mode = (
                os.fstat(self.source.fileno()).st_mode if not isinstance(self.source, Path) else 0
            )
        except io.UnsupportedOperation:  # a stream in memory
            return False
        return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)

    def _warn(self) -> None:
        for warning in self.warnings():
            _log.warning("%s", warning)

    def warnings(self) -> list[str]:
        """One line for each kind of damage met so far: how many lines, and the first of them."""
        first = self._first or {}
        kinds = (
            ("undecodable", self.undecodable, "had bytes that are not UTF-8, replaced by U+FFFD"),
            ("control", self.control, "had NUL bytes or other control characters, taken out"),
        )
        return [
            f"{self.name}: {counted(n, 'line')} {what} (first: line {first[kind]})"
            for kind, n, what in kinds
            if n
        ]

    def _lines(self, stream: BufferedReader) -> Iterator[str]:
        check_plain(stream, self.name)
        self._first = {}
        yield from self._repaired(lines(stream))

    def _repaired(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines, counted, with what is damaged in them replaced or taken out."""
        self._first = {} if self._first is None else self._first
        for line in lines:
            self.read += 1
            if MARK in line:
                self.undecodable += 1
                self._first.setdefault("undecodable", self.read)
                line = line.replace(MARK, "\ufffd")
            if not line.isprintable() and _CONTROL.search(line):
                self.control += 1
                self._first.setdefault("control", self.read)
                line = _CONTROL.sub("", line)
            yield line


def read_document_lines(source: Path | BufferedReader, name: str = "") -> DocumentLines:
    """The lines of a text file (also .gz, .xz) or of a binary stream such as `sys.stdin.buffer`.

    Lines end at \\n or \\r\\n only. UTF-8, or UTF-16 with a byte-order mark. A stream is read as
    its lines come and may be empty. FormatError when the iteration starts: a file that is missing
    or empty, or no plain text."""
    return DocumentLines(
        name or (str(source) if isinstance(source, Path) else "standard input"), source
    )


def check_plain(stream: BufferedReader, name: str) -> None:
    """Raises FormatError where `stream`, at its beginning, holds a document or a memory and no
    plain text."""
    head = stream.peek(4)
    what = next((what for start, what in _DOCUMENTS.items() if head.startswith(start)), "")
    if not what:
        text = head_text(stream)
        what = _xml(text) or _table(text, name) or _marked(text, name) or _binary(head[:_LOOKED_AT])
    if what:
        raise FormatError(f"{name}: no plain text, but {what}; allowed: one segment a line, UTF-8")


def _xml(head: str) -> str:
    root = root_element(head)
    if root in ("tmx", "TEI.2"):
        return f"a memory ({'TMX' if root == 'tmx' else 'JRC-Acquis'}): {_READS_MEMORIES}"
    if root and (head.lstrip()[:5] == "<?xml" or root.lower() == "html" or root == "xliff"):
        return f"XML, <{excerpt(root)}>: {_EXTRACTS_TEXT}"
    return ""


def _table(head: str, name: str) -> str:
    header = {cell.strip().lower() for cell in head.partition("\n")[0].split("\t")}
    named = PurePosixPath(bare_name(name)).suffix.lower() in TSV_SUFFIXES
    if named or (header.intersection(NAMES["src"]) and header.intersection(NAMES["tgt"])):
        return f"a memory (TSV): {_READS_MEMORIES}"
    return ""


def _marked(head: str, name: str) -> str:
    """What has text among keys, times or tags: by its name, or by its beginning where
    that is sure."""
    named = _BY_SUFFIX.get(PurePosixPath(bare_name(name)).suffix.lower(), "")
    return named or next(
        (what for pattern, what in _BY_CONTENT if pattern.search(head[:_LOOKED_AT])), ""
    )


def _binary(head: bytes) -> str:
    if byte_order_mark(head)[1] or 10 * sum(head.count(byte) for byte in _CONTROL_BYTES) <= len(
        head
    ):
        return ""
    return "binary data (UTF-16 needs a byte-order mark)"


def documents(texts: Iterable[str]) -> Iterator[list[str]]:
    """The lines of each document in turn; an empty line ends a document and is its last element.

    So the lists one after another are the input again, line for line. A line of blanks is an empty
    line."""
    document: list[str] = []
    for line in texts:
        document.append(line)
        if not line.strip():
            yield document
            document = []
    if document:
        yield document
