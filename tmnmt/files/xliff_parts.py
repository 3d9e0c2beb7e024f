"""An XLIFF file cut into parts, in order and in constant memory: bytes that are nobody's business,
start and end tags of what has units inside, and whole units.

expat reads the file once from start to end, so what is no XML is found, with its line. It says at
which byte a tag begins; the bytes themselves are what is handed on. All of it is in UTF-8: a file
in another encoding is transcoded on the way in, and back on the way out."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from xml.parsers import expat

from tmnmt.errors import FormatError, short_repr
from tmnmt.formats.encoding import BLOCK, MARK, utf8, xml_encoding
from tmnmt.formats.encoding import Bytes as ByteStream

MAX_BYTES = 10_000_000  # of a unit, or a tag
MAX_DEPTH = 200  # elements inside one another
MAX_NESTED = 100  # of these in a source or a target, as many as spans of codes may be

CORE = "urn:oasis:names:tc:xliff:document:"  # the namespaces of XLIFF begin so
_CONTAINERS = frozenset({"xliff", "file", "group", "bin-unit"})  # what has units inside
_CONTENT = frozenset({"source", "target", "seg-source"})  # whose inside is not looked into here
_UNDECODABLE = MARK.encode("utf-8", "surrogatepass")
_ASCII = re.compile(
    rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["'](?:us-ascii|ascii|ansi_x3\.4-1968)["']""",
    re.IGNORECASE,
)
START_TAG = re.compile(rb"""<[^\s<>/"']++(?:[^<>"']|"[^<"]*"|'[^<']*')*+>""")


@dataclass(slots=True)
class Node:
    """An element of a unit: where in the unit's bytes its tags are. Without content, `<a/>`,
    `inside` and `inside_end` are its end."""

    name: str  # without prefix where it is of XLIFF itself, else with its namespace
    attributes: dict[str, str]
    line: int
    start: int
    inside: int = 0
    inside_end: int = 0
    end: int = 0
    children: list[Node] = field(default_factory=list)
    nested: int = 0  # elements inside one another in the sources and targets of a unit, at most

    @property
    def empty(self) -> bool:
        """Whether it is one tag, <a/>."""
        return self.inside == self.end

    def find_children(self, name: str) -> Iterator[Node]:
        """Its children of a name.

        name: the name."""
        return (child for child in self.children if child.name == name)

    def first(self, name: str) -> Node | None:
        """The first of its children of a name; None where there is none.

        name: the name."""
        return next(self.find_children(name), None)


@dataclass(frozen=True, slots=True)
class Bytes:
    """What is handed on as it is."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Start:
    """The start tag of what has units inside: the root, a file, a group. An end follows even where
    the tag is all of it."""

    name: str
    namespace: str
    attributes: dict[str, str]
    line: int
    data: bytes


@dataclass(frozen=True, slots=True)
class End:
    """The end of the last of them that has not ended; its bytes come by themselves."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A unit. `data` is None where it is longer than 10 MB: its bytes come by themselves, before
    and after."""

    node: Node
    data: bytes | None


Part = Bytes | Start | End | Whole


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file is encoded, the byte-order mark that it begins with, and whether what is put in
    must be ASCII. (A file that declares ASCII is read as UTF-8, which some of them are.)"""

    name: str
    mark: bytes
    ascii: bool


def encoding_of(path: Path) -> Encoding:
    """How a file is encoded.

    path: the file.

    Raises FormatError where it cannot be read, or is in an encoding that nobody knows."""
    with reading(path) as file:
        head = file.peek(1)
        name, length = xml_encoding(head, str(path))
        return Encoding(name, head[:length], _ASCII.match(head) is not None)


def reading(path: Path) -> io.BufferedReader:
    """A file, opened.

    path: the file.

    Raises FormatError where it cannot be read."""
    try:
        return path.open("rb")
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error


def parts(
    path: Path,
    unit: str,
    block: int = BLOCK,
    on_undeclared: Callable[[str, int], None] = lambda prefix, line: None,
) -> Iterator[Part]:
    """The parts of a file. Their bytes, one after another, are the file in UTF-8 without its mark.

    path: the file.
    unit: the name of the elements that are its units.
    block: how many bytes are read at once.
    on_undeclared: called with every prefix that is used and declared nowhere, and with its line.

    Raises FormatError with file, line and what is wrong there."""
    encoding = encoding_of(path)
    with reading(path) as file:
        stream = utf8(file, encoding.name, len(encoding.mark))
        cutter = _Cutter(str(path), unit, on_undeclared)
        while data := stream.read(block):
            yield from cutter.feed(data)
        yield from cutter.ended()


class Decodable:
    """A file in UTF-8, of which every byte could be decoded. `read` raises FormatError with the
    line where one could not: the file would not come back as it is. What is in UTF-8 itself goes
    through as it is."""

    def __init__(self, stream: ByteStream, path: Path, encoding: str) -> None:
        """stream: the bytes in UTF-8.
        path: the file, for messages.
        encoding: the encoding that the file is in."""
        self._stream, self._path, self._encoding = stream, path, encoding
        self._line = 1

    def read(self, size: int, /) -> bytes:
        """The next bytes, b"" at the end.

        size: how many bytes are given at most.

        Raises FormatError with the line where a byte could not be decoded."""
        data = self._stream.read(size)
        if self._encoding != "utf-8":
            offset = data.find(_UNDECODABLE)
            self._line += data.count(b"\n", 0, offset if offset >= 0 else len(data))
            if offset >= 0:
                name = self._encoding.upper()
                raise FormatError(
                    f"{self._path}, line {self._line}: bytes that are not {name}, as the file "
                    "should be"
                )
        return data


class Output:
    """UTF-8 bytes written in a file's own encoding; a character that it lacks as a reference."""

    def __init__(self, destination: BinaryIO, encoding: Encoding) -> None:
        """destination: where the bytes go.
        encoding: the encoding of the file."""
        self._destination, self._encoding = destination, encoding
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._encoder = codecs.getincrementalencoder(encoding.name)("xmlcharrefreplace")
        destination.write(encoding.mark)

    def write(self, data: bytes) -> None:
        """Writes bytes, which may be cut anywhere.

        data: the bytes, in UTF-8."""
        if self._encoding.name == "utf-8":
            self._destination.write(data)
        else:
            self._destination.write(self._encoder.encode(self._decoder.decode(data)))

    def end(self) -> None:
        """What the encoding needs behind the last character."""
        if self._encoding.name != "utf-8":
            self._destination.write(self._encoder.encode("", True))


def check_comes_back(path: Path) -> None:
    """Checks that a file can be written as it was read.

    path: the file.

    Raises FormatError where the file's encoding has several ways to write a character, and the file
    does not use the usual one."""
    encoding = encoding_of(path)
    if encoding.name.startswith("utf-"):
        return  # has one way, or else is refused when it is read
    decoder = codecs.getincrementaldecoder(encoding.name)()
    encoder = codecs.getincrementalencoder(encoding.name)()
    waiting = b""
    with reading(path) as file:
        file.read(len(encoding.mark))
        while block := file.read(BLOCK):
            waiting += block
            try:
                encoded = encoder.encode(decoder.decode(block))
            except UnicodeDecodeError:
                return  # reading it says where
            if not waiting.startswith(encoded):
                raise FormatError(f"{path}: cannot be written again as it is in {encoding.name}")
            waiting = waiting[len(encoded) :]


class _Cutter:
    """Bytes are counted from the beginning of the file. What expat tells is in `_data`, since its
    tag was read to the end."""

    def __init__(
        self, shown_path: str, unit: str, on_undeclared: Callable[[str, int], None]
    ) -> None:
        self._path, self._unit = shown_path, unit
        self._namespaces = _Namespaces(on_undeclared)
        self._data, self._offset = b"", 0  # what is not handed on, and where it begins
        self._parts = list[Part]()
        self._depth = 0
        self._container_depths = list[int]()  # depths of the open elements that have units inside
        self._open = list[Node]()  # a unit, and what is open inside it
        self._begin = self._unit_depth = 0  # where the unit begins, and how deep
        self._content = 0  # depth of an element that is not looked into; 0: none
        self._too_long = False  # the unit
        self._names: dict[str, str] = {}
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._started
        self._parser.EndElementHandler = self._ended
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.SkippedEntityHandler = self._skipped

    def feed(self, data: bytes) -> Iterator[Part]:
        self._data += data
        self._parse(data, False)
        if self._open and not self._too_long:
            self._too_long = len(self._data) > MAX_BYTES
        if not self._open or self._too_long:
            # What is not told yet begins there or behind; -1 where expat does not know.
            self._hand_on(self._parser.CurrentByteIndex)
        if len(self._data) > MAX_BYTES:
            raise self._error("longer than 10 MB without an end")
        yield from self._take_parts()

    def ended(self) -> Iterator[Part]:
        self._parse(b"", True)
        self._hand_on(self._offset + len(self._data))
        yield from self._take_parts()

    def _parse(self, data: bytes, last: bool) -> None:
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            offset = self._parser.ErrorByteIndex - self._offset
            why = _why_broken(self._data[offset : offset + 4]) or expat.ErrorString(error.code)
            raise FormatError(
                "{file}, line {line}: broken XML: {reason}",
                **{"file": str(self._path), "line": str(error.lineno), "reason": why},
            ) from error

    def _error(self, problem: str) -> FormatError:
        return FormatError(f"{self._path}, line {self._parser.CurrentLineNumber}: {problem}")

    def _take_parts(self) -> list[Part]:
        parts, self._parts = self._parts, []
        return parts

    def _hand_on(self, end: int) -> None:
        if end > self._offset:
            data, self._data = self._data[: end - self._offset], self._data[end - self._offset :]
            self._offset = end
            self._parts.append(Bytes(data))

    def _tag_end(self, start: int) -> int:
        tag = START_TAG.match(self._data, start - self._offset)
        if tag is None:  # expat took it for one
            raise AssertionError(f"no tag at byte {start} of {self._path}")
        return self._offset + tag.end()

    # --- what expat calls

    def _doctype(
        self, name: str, system: str | None, public: str | None, has_internal_subset: bool
    ) -> None:
        """A DOCTYPE that only names a DTD says nothing that is needed: the DTD is never read."""
        if has_internal_subset:
            raise self._error("a DOCTYPE with declarations in it, which are not read")

    def _skipped(self, name: str, is_parameter: bool) -> None:
        raise self._error(f"broken XML: undefined entity &{short_repr(name)[1:-1]};")

    def _started(self, written_name: str, written_attributes: dict[str, str]) -> None:
        self._depth += 1
        full_name, attributes = self._namespaces.enter(
            written_name, written_attributes, self._parser.CurrentLineNumber
        )
        if self._content and self._open:
            unit = self._open[0]
            unit.nested = max(unit.nested, self._depth - self._content)
        if self._content or self._too_long:
            return
        if self._depth > MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} elements inside one another")
        name = self._names.get(full_name) or self._name(full_name)
        if self._depth == 1 and name != "xliff":
            raise self._error(f"no XLIFF: the root element is {short_repr(name)}")
        if self._open:
            self._inside(name, attributes)
        elif name == self._unit:
            self._hand_on(self._parser.CurrentByteIndex)
            self._begin, self._unit_depth = self._offset, self._depth
            self._open.append(Node(name, attributes, self._parser.CurrentLineNumber, 0))
        elif name in _CONTAINERS:
            start = self._parser.CurrentByteIndex
            self._hand_on(start)
            size = self._tag_end(start) - start
            tag, self._data = self._data[:size], self._data[size:]
            self._offset += size
            self._container_depths.append(self._depth)
            namespace = full_name.rpartition(" ")[0]
            line = self._parser.CurrentLineNumber
            self._parts.append(Start(name, namespace, attributes, line, tag))

    def _name(self, full_name: str) -> str:
        space, _, local = full_name.rpartition(" ")
        name = local if not space or space.startswith(CORE) else full_name
        if len(self._names) < MAX_DEPTH:  # a file may have as many names as it likes
            self._names[full_name] = name
        return name

    def _inside(self, name: str, attributes: dict[str, str]) -> None:
        start = self._parser.CurrentByteIndex - self._begin
        node = Node(name, attributes, self._parser.CurrentLineNumber, start)
        self._open[-1].children.append(node)
        self._open.append(node)
        if name in _CONTENT:
            self._content = self._depth

    def _ended(self, _: str) -> None:
        depth = self._depth
        self._depth -= 1
        self._namespaces.leave()
        if self._content == depth:
            self._content = 0
        if self._content:
            return
        if self._too_long:
            if depth == self._unit_depth:
                self._parts.append(Whole(self._open[0], None))
                self._open, self._too_long = [], False
        elif self._open:
            self._close(self._open.pop())
        elif self._container_depths and self._container_depths[-1] == depth:
            self._container_depths.pop()
            self._parts.append(End())

    def _close(self, node: Node) -> None:
        node.inside = self._tag_end(self._begin + node.start) - self._begin
        node.inside_end = self._parser.CurrentByteIndex - self._begin
        if self._data[node.inside - 2 : node.inside] == b"/>":
            node.inside_end = node.end = node.inside
        else:
            node.end = self._data.index(b">", node.inside_end) + 1
        if not self._open:
            data, self._data = self._data[: node.end], self._data[node.end :]
            self._offset += node.end
            self._parts.append(Whole(node, data))


class _Namespaces:
    """Gives names as expat gives them where it knows of namespaces: "NAMESPACE NAME". expat refuses
    the whole file for a prefix that is declared nowhere; here the name keeps it, as in "a:b"."""

    def __init__(self, on_undeclared: Callable[[str, int], None]) -> None:
        self._on_undeclared = on_undeclared
        self._scopes = [{"xml": "http://www.w3.org/XML/1998/namespace"}]  # of the open elements
        self._undeclared = set[str]()

    def enter(self, name: str, attributes: dict[str, str], line: int) -> tuple[str, dict[str, str]]:
        """The names of an element that begins, and of its attributes."""
        scope = self._scopes[-1]
        declared = {
            key: value
            for key, value in attributes.items()
            if key == "xmlns" or key.startswith("xmlns:")
        }
        if declared:
            scope = scope | {key[6:]: value for key, value in declared.items()}
        self._scopes.append(scope)
        prefix = name.partition(":")[0] if ":" in name else ""
        full_name = self._full(name, prefix, scope, line)
        if not declared and not any(":" in key for key in attributes):
            return full_name, attributes
        return full_name, {
            self._full(key, key.partition(":")[0], scope, line) if ":" in key else key: value
            for key, value in attributes.items()
            if key not in declared
        }

    def leave(self) -> None:
        """The element that began last and has not ended ends."""
        self._scopes.pop()

    def _full(self, name: str, prefix: str, scope: dict[str, str], line: int) -> str:
        space = scope.get(prefix, "")
        if prefix and prefix not in scope and prefix not in self._undeclared:
            self._undeclared.add(prefix)
            self._on_undeclared(prefix, line)
        return f"{space} {name.rpartition(':')[2]}" if space else name


def _why_broken(data: bytes) -> str:
    """What is wrong where expat stopped, if the bytes there tell."""
    if data.startswith(codecs.BOM_UTF8):
        return "a byte-order mark between elements"
    if data.startswith(_UNDECODABLE):
        return "bytes that are not of the file's encoding"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        # a character may be cut at the end of what was read
        return "" if error.start else "bytes that are not of the file's encoding"
    return ""
