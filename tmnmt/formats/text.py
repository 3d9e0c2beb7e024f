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
from pathlib import Path

from tmnmt.counted import counted
from tmnmt.formats.encoding import MARK, lines, lines_as_they_come
from tmnmt.formats.stream import file_source

_log = logging.getLogger(__name__)
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")


@dataclass(slots=True)
class DocumentLines:
    """The lines of one input, without their ends, as many as it has; iterate once.

    While iterating it counts the lines whose undecodable bytes became U+FFFD (`undecodable`) and those that lost
    NUL bytes and other control characters (`control`); at the end one logged warning for each kind says so.
    """

    name: str
    source: Path | BufferedReader
    read: int = 0
    undecodable: int = 0
    control: int = 0
    _first: dict[str, int] | None = None

    def __iter__(self) -> Iterator[str]:
        if isinstance(self.source, Path):
            with file_source(self.source).stream() as stream:
                yield from self._repaired(lines(stream))
        else:
            yield from self._repaired(lines(self.source))
        self._warn()

    def as_they_come(self, most: int) -> Iterator[list[str]]:
        """The same lines of a stream that is a pipe or a terminal, in lists: all that have come, or `most` and a few. A
        list is given before more is waited for."""
        assert not isinstance(self.source, Path)
        for come in lines_as_they_come(self.source, most):
            yield list(self._repaired(come))
        self._warn()

    @property
    def trickles(self) -> bool:
        """Whether this is a pipe or a terminal, whose lines may come one by one."""
        try:
            mode = os.fstat(self.source.fileno()).st_mode if not isinstance(self.source, Path) else 0
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
        return [f"{self.name}: {counted(n, 'line')} {what} (first: line {first[kind]})" for kind, n, what in kinds if n]

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

    Lines end at \\n or \\r\\n only. UTF-8, or UTF-16 with a byte-order mark. A stream is read as its lines come and
    may be empty; a file that is missing or empty is a FormatError when the iteration starts.
    """
    return DocumentLines(name or (str(source) if isinstance(source, Path) else "standard input"), source)


def documents(texts: Iterable[str]) -> Iterator[list[str]]:
    """The lines of each document in turn; an empty line ends a document and is its last element.

    So the lists one after another are the input again, line for line. A line of blanks is an empty line.
    """
    document: list[str] = []
    for line in texts:
        document.append(line)
        if not line.strip():
            yield document
            document = []
    if document:
        yield document
