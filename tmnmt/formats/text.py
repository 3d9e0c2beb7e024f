"""Plain text to translate: one segment a line, an empty line between documents."""

from __future__ import annotations

import io
import logging
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath

from tmnmt.errors import FormatError
from tmnmt.file_kinds import FILE_KINDS
from tmnmt.formats.clean import excerpt
from tmnmt.formats.encoding import (
    MARK,
    LineForm,
    byte_order_mark,
    head_text,
    line_form,
    lines,
    lines_as_they_come,
    root_element,
)
from tmnmt.formats.stream import bare_name, file_source
from tmnmt.formats.tsv import NAMES, TSV_SUFFIXES
from tmnmt.quantities import quantity

_log = logging.getLogger(__name__)
_LOOKED_AT = 4096  # bytes, or characters
_CONTROL_BYTES = [bytes([code]) for code in (*range(9), *range(14, 27), *range(28, 32))]
_READS_MEMORIES = "`tmnmt translate --memory` and `tmnmt build-index` read it"
_EXTRACTS_TEXT = "a CAT tool (OmegaT, Okapi Rainbow) extracts its segments"
_SAVES_AS_TEXT = "an office program, or `pandoc -t plain --wrap=none`, saves it as plain text"
# What files begin with that are no text, and what would read them.
PACKED_KINDS = {
    b"PK\x03\x04": f"an archive, as .docx, .xlsx, .odt and .zip are: {_SAVES_AS_TEXT}",
    b"\xd0\xcf\x11\xe0": f"an office document, as .doc and .xls are: {_SAVES_AS_TEXT}",
    b"{\\rtf": f"RTF: {_SAVES_AS_TEXT}",
    b"%PDF-": "PDF: `pdftotext` reads it",
    b"\x1f\x8b": "packed: `gzip -dc` unpacks it",
    b"\xfd7zXZ\x00": "packed: `xz -dc` unpacks it",
}
UNREAD = "a format that is not read"
_FROM_FILE = "`tmnmt translate` fills such a file, given by its name and not packed"
_AS_PO = "which `tmnmt translate` fills"
_BY_PO4A = f"`po4a` makes PO of it, {_AS_PO}"
_BY_PANDOC = "`pandoc -t gfm` makes Markdown of it, which `tmnmt translate` fills"
_GETTEXT = f"gettext messages, which a PO file has: {_FROM_FILE}, called .po"
_JSON = f"JSON: {_FROM_FILE}, called .json"
_SUBTITLES = f"subtitles with their times: {_FROM_FILE}, called .srt or .vtt"
_STRINGS = f"strings of a program with their keys: {_EXTRACTS_TEXT}"
_PLAIN_SUFFIXES = frozenset({"", ".txt"})
_SUFFIXES_OF = {  # what a name says that a file is, and what would read it
    f"a memory (TSV): {_READS_MEMORIES}": " ".join(TSV_SUFFIXES),
    f"AsciiDoc: {_BY_PO4A}": ".adoc .asciidoc .asc",
    f"LaTeX: {_BY_PO4A}": ".tex .latex .ltx .sty",
    f"Texinfo: {_BY_PO4A}": ".texi .texinfo",
    f"Perl's documentation: {_BY_PO4A}": ".pod",
    f"a manual page: {_BY_PO4A}": ".man .1 .2 .3 .4 .5 .6 .7 .8 .9",
    f"markup of a text: {_BY_PANDOC}": ".org .textile .mediawiki .wiki .t2t .typ",
    f"XML: {_EXTRACTS_TEXT}": ".dita .ditamap .docbook .dbk .svg",
    "other subtitles: Subtitle Edit saves them as .srt, which `tmnmt translate` fills": (
        ".sub .sbv .ttml .dfxp .lrc .smi"
    ),
    _STRINGS: ".toml .ini .lang",
    f"a table (CSV): {_EXTRACTS_TEXT}": ".csv",
}
_BY_SUFFIX = {suffix: kind for kind, names in _SUFFIXES_OF.items() for suffix in names.split()} | {
    suffix: kind.mismatch or f"{kind.title}: {_FROM_FILE}"
    for kind in FILE_KINDS.values()
    for suffix in kind.suffixes
}
_SUFFIX = re.compile(r"\.\w[\w+~#-]{0,31}\Z")
_UNFINISHED = ".partial"  # the end of what an interrupted run leaves: NAME.partial is as NAME is
Check = Callable[[BufferedReader, str], None]  # of the beginning of a file, and its name
AS_TEXT = "--format text"  # how somebody says that a file is plain text, whatever it looks like
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
    """The lines of one input, without their ends, as many as it has; one can iterate once. At the
    end one logged warning for each kind says how many lines were repaired.

    name: what messages call the input.
    source: the file or the stream.
    check: checks the beginning of the text.
    count: how many lines were read.
    undecodable: how many lines had undecodable bytes, which became U+FFFD.
    control: how many lines lost NUL bytes and other control characters."""

    name: str
    source: Path | BufferedReader
    check: Check
    count: int = 0
    undecodable: int = 0
    control: int = 0
    _first: dict[str, int] | None = None

    def __iter__(self) -> Iterator[str]:
        if isinstance(self.source, Path):
            with file_source(self.source).stream(may_be_empty=True) as stream:
                yield from self._lines(stream)
        else:
            yield from self._lines(self.source)
        self._warn()

    def as_they_come(self, limit: int) -> Iterator[list[str]]:
        """The lines of a stream that is a pipe or a terminal, in lists: all that have come. A list
        is given before more is waited for.

        limit: how many lines a list has at most, and a few more."""
        assert not isinstance(self.source, Path)
        self.check(self.source, self.name)
        for batch in lines_as_they_come(self.source, limit):
            yield list(self._repaired(batch))
        self._warn()

    @property
    def form(self) -> LineForm:
        """How its lines end and begin, where it is a file."""
        if not isinstance(self.source, Path) or not self.source.is_file():
            return LineForm()
        with file_source(self.source).stream(may_be_empty=True) as stream:
            return line_form(stream)

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
            f"{self.name}: {quantity(n, 'line')} {description} (first: line {first[kind]})"
            for kind, n, description in kinds
            if n
        ]

    def _lines(self, stream: BufferedReader) -> Iterator[str]:
        self.check(stream, self.name)
        self._first = {}
        yield from self._repaired(lines(stream))

    def _repaired(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines, counted, with what is damaged in them replaced or taken out."""
        self._first = {} if self._first is None else self._first
        for line in lines:
            self.count += 1
            if MARK in line:
                self.undecodable += 1
                self._first.setdefault("undecodable", self.count)
                line = line.replace(MARK, "\ufffd")
            if not line.isprintable() and _CONTROL.search(line):
                self.control += 1
                self._first.setdefault("control", self.count)
                line = _CONTROL.sub("", line)
            yield line


def check_plain(stream: BufferedReader, name: str) -> None:
    """Checks that something is plain text, which is called NAME.txt, or has no suffix.

    stream: its bytes, at their beginning.
    name: its name.

    Raises FormatError where the name or the beginning says that it is something else."""
    check_text(stream, name)
    head = head_text(stream)
    _refuse(name, _xml(head) or _table(head) or kind_by_name(name) or _marked(head))


def check_content(stream: BufferedReader, name: str) -> None:
    """Checks that something is plain text, whatever its name is.

    stream: its bytes, at their beginning.
    name: what messages call it.

    Raises FormatError where the beginning is that of something else."""
    check_text(stream, name)
    head = head_text(stream)
    _refuse(name, _xml(head) or _table(head) or _marked(head))


def check_text(stream: BufferedReader, name: str) -> None:
    """Checks that something can be read as lines of text at all. It is for a file of which somebody
    has said that it is plain text.

    stream: its bytes, at their beginning.
    name: what messages call it.

    Raises FormatError for packed or binary data."""
    head = stream.peek(4)
    kind = next((kind for start, kind in PACKED_KINDS.items() if head.startswith(start)), "")
    if kind := kind or _binary(head[:_LOOKED_AT]):
        raise FormatError(
            "{file}: no plain text, but {kind}; allowed: one segment a line, UTF-8",
            **{"file": name, "kind": kind},
        )


CHECKS: dict[str | None, Check] = {None: check_plain, "text": check_text}  # by the option --format


def read_document_lines(
    source: Path | BufferedReader, name: str = "", check: Check = check_plain
) -> DocumentLines:
    r"""The lines of a text. They end at \n or \r\n only. The text is in UTF-8, or in UTF-16 with a
    byte-order mark. A stream is read as its lines come. A file or stream that is empty has no
    lines.

    source: a file (also .gz, .xz), or a binary stream such as `sys.stdin.buffer`.
    name: what messages call it; "" takes the path of the file.
    check: checks the beginning of the text.

    Raises FormatError, when the iteration starts, for a file that is missing, and for what `check`
    refuses."""
    label = name or (str(source) if isinstance(source, Path) else "standard input")
    return DocumentLines(label, source, check)


def kind_by_name(name: str) -> str:
    """What a file is by its name if it is no plain text, and what reads it; "" where its name is
    one of plain text.

    name: the name of the file."""
    suffix = PurePosixPath(bare_name(name).removesuffix(_UNFINISHED)).suffix.lower()
    if suffix in _PLAIN_SUFFIXES or not _SUFFIX.match(suffix):
        return ""
    return _BY_SUFFIX.get(suffix, UNREAD)


def _refuse(name: str, kind: str) -> None:
    if kind:
        raise FormatError(
            "{file}: no plain text, but {kind}; plain text (one segment a line, UTF-8) is called "
            "NAME.txt, has no suffix, or is given with {option}",
            **{"file": name, "kind": kind, "option": AS_TEXT},
        )


def _xml(head: str) -> str:
    root = root_element(head)
    if root in ("tmx", "TEI.2"):
        return f"a memory ({'TMX' if root == 'tmx' else 'JRC-Acquis'}): {_READS_MEMORIES}"
    if root and (head.lstrip()[:5] == "<?xml" or root.lower() == "html" or root == "xliff"):
        return f"XML, <{excerpt(root)}>: {_EXTRACTS_TEXT}"
    return ""


def _table(head: str) -> str:
    header = {cell.strip().lower() for cell in head.partition("\n")[0].split("\t")}
    if header.intersection(NAMES["src"]) and header.intersection(NAMES["tgt"]):
        return f"a memory (TSV): {_READS_MEMORIES}"
    return ""


def _marked(head: str) -> str:
    """What has text among keys, times or tags, by its beginning where that is sure."""
    return next((kind for pattern, kind in _BY_CONTENT if pattern.search(head[:_LOOKED_AT])), "")


def _binary(head: bytes) -> str:
    if byte_order_mark(head)[1] or 10 * sum(head.count(byte) for byte in _CONTROL_BYTES) <= len(
        head
    ):
        return ""
    return "binary data (UTF-16 needs a byte-order mark)"


def documents(texts: Iterable[str]) -> Iterator[list[str]]:
    """The lines of each document in turn. An empty line ends a document and is its last element, so
    the lists one after another are the input again, line for line. A line of blanks is an empty
    line.

    texts: the lines."""
    document: list[str] = []
    for line in texts:
        document.append(line)
        if not line.strip():
            yield document
            document = []
    if document:
        yield document
