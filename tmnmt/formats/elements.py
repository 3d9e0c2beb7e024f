"""An XML file cut into its units, so that a broken unit costs that unit and nothing after it.

A parser that meets an error somewhere in a document can promise nothing about the rest. So the file
is cut at the start and end tags of its units (comments, CDATA and processing instructions are seen
and stepped over), and each unit is parsed on its own. Nothing outside the units is ever parsed: no
DOCTYPE, hence no entities and no network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from lxml import etree

from tmnmt.formats.clean import excerpt
from tmnmt.formats.encoding import Bytes
from tmnmt.formats.stream import BLOCK

MAX_BYTES = 10_000_000

_CLOSED_BY = {b"<!--": b"-->", b"<![CDATA[": b"]]>", b"<?": b"?>"}
_ASIDE = rb"<!--|<!\[CDATA\[|<\?"
START_TAG = re.compile(rb"""<[^\s<>/"']++(?:[^<>"']|"[^<"]*"|'[^<']*')*+>""")
_LONGEST_OPENING = 64
# What XML 1.0 allows in no way, as characters and as references to them.
_ILLEGAL = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]"
    rb"|&#(?:0*(?:[0-8]|1[124-9]|2\d|3[01]|6553[45])|x0*(?:[0-8bcef]|1[0-9a-f]|fff[ef]));",
    re.IGNORECASE,
)
_PLACE = re.compile(r",? line \d+, column \d+.*", re.DOTALL)
_UNDECLARED = re.compile(r"Namespace prefix (\S+) .*is not defined")
_TOO_DEEP = "Excessive depth"  # which libxml2 allows no more of
_PARSER = etree.XMLParser(
    resolve_entities=False,
    no_network=True,
    load_dtd=False,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
)


class Element(NamedTuple):
    """A unit's bytes from its start tag to its end tag, or only a start tag, where no more is
    needed.

    line: the line where it starts, from 1.
    name: its name.
    data: its bytes.
    problem: what is wrong with it, in words; "" where it is whole.
    start: where it starts, in bytes of the stream."""

    line: int
    name: bytes
    data: bytes
    problem: str
    start: int


class Malformed(Exception):
    """A unit that is no XML.

    undecodable: whether its bytes are not of the file's encoding.
    prefix: a prefix that is used and declared nowhere; "" where it is something else."""

    def __init__(self, why: str, undecodable: bool = False, prefix: str = "") -> None:
        """why: what is wrong, in words.
        undecodable: whether its bytes are not of the file's encoding.
        prefix: a prefix that is used and declared nowhere; "" where it is something else."""
        super().__init__(why)
        self.undecodable = undecodable
        self.prefix = prefix


def undeclared(prefix: str) -> str:
    """What messages say of a prefix that is used and declared nowhere.

    prefix: the prefix, without its colon."""
    return (
        f"the prefix {excerpt(prefix)}: is not declared, which other programs may refuse; what "
        "has it is kept as it is"
    )


def parsed(data: bytes, namespaces: bytes = b"") -> tuple[etree._Element, bool]:
    """The element of some bytes, and whether characters illegal in XML had to be taken out of them
    first.

    data: the bytes, in UTF-8.
    namespaces: declarations of prefixes that the unit may use.

    Raises Malformed where they are no XML even so."""
    try:
        return _parse(data, namespaces), False
    except etree.XMLSyntaxError as error:
        why = excerpt(_PLACE.sub("", error.msg or "no XML"), 200)
        if why.startswith(_TOO_DEEP):
            why = "more than 256 elements inside one another"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as undecodable:
        raise Malformed("cannot be decoded", undecodable=True) from undecodable
    legal, repairs = _ILLEGAL.subn(b" ", data)
    try:
        return _parse(legal, namespaces), repairs > 0
    except etree.XMLSyntaxError as syntax_error:
        prefix = _UNDECLARED.match(syntax_error.msg or "")
        raise Malformed(why, prefix=prefix[1] if prefix else "") from syntax_error


def _parse(data: bytes, namespaces: bytes) -> etree._Element:
    if not namespaces:
        return etree.fromstring(data, _PARSER)
    return etree.fromstring(b"<unit " + namespaces + b">" + data + b"</unit>", _PARSER)[0]


def elements(
    stream: Bytes, whole: tuple[bytes, ...], tags: tuple[bytes, ...] = ()
) -> Iterator[Element]:
    """Some elements and start tags of a file, in order. It takes the memory of one block and the
    longest unit. An element that never ends, or is longer than 10 MB, comes with its `problem`, and
    the search goes on behind its name.

    stream: the bytes of the file, in UTF-8.
    whole: the names of elements that are given as a whole.
    tags: the names of elements of which only the start tag is given."""
    return _Cutter(stream, whole, tags).run()


class _Cutter:
    """Each byte is looked at a few times at most, whatever the file holds: what a search found out
    is remembered."""

    def __init__(self, stream: Bytes, whole: tuple[bytes, ...], tags: tuple[bytes, ...]) -> None:
        self._stream, self._tags = stream, tags
        names = b"|".join(re.escape(name) for name in (*whole, *tags))
        self._opening = re.compile(rb"<(" + names + rb")(?=[\s/>])|" + _ASIDE)
        self._data, self._position, self._ended = b"", 0, False
        self._line, self._line_offset = 1, 0
        self._buffer_start = 0  # bytes of the stream in front of the buffer
        # an element whose end is not in the buffer: start, searched up to
        self._inside: tuple[int, int] | None = None
        # no such closing mark begins between these places
        self._unclosed: dict[bytes, tuple[int, int]] = {}

    def run(self) -> Iterator[Element]:
        while True:
            match = self._opening.search(self._data, self._position)
            if match is None:
                self._position = max(self._position, len(self._data) - _LONGEST_OPENING)
                if not self._fill():
                    return
                continue
            self._position = match.start()
            end, problem = self._extent(match)
            if not end:
                if len(self._data) - self._position <= MAX_BYTES and self._fill():
                    continue
                end, problem = self._position + len(match[0]), self._why_no_end()
            if match[1] is not None:
                data = self._data[self._position : end]
                yield Element(
                    self._line_here(), match[1], data, problem, self._buffer_start + self._position
                )
            self._position = end

    def _extent(self, match: re.Match[bytes]) -> tuple[int, str]:
        """Where what was found ends, 0 when that is not in the buffer, and what is
        wrong with it."""
        if match[1] is None:
            return self._aside_end(match), ""
        tag = START_TAG.match(self._data, self._position)
        if tag is None and self._data.find(b"<", match.end()) < 0:
            return 0, ""
        after_tag = tag.end() if tag else match.end()
        if match[1] in self._tags or (tag and tag[0].endswith(b"/>")):
            return after_tag, ""
        return self._element_end(match.start(), after_tag, match[1])

    def _fill(self) -> bool:
        if self._ended:
            return False
        self._line_here()
        block = self._stream.read(BLOCK)
        self._ended = not block
        self._data = self._data[self._position :] + block
        self._buffer_start += self._position
        if self._inside is not None:
            self._inside = self._inside[0] - self._position, self._inside[1] - self._position
        self._unclosed = {
            mark: (start - self._position, end - self._position)
            for mark, (start, end) in self._unclosed.items()
            if end > self._position
        }
        self._position = self._line_offset = 0
        return bool(block)

    def _line_here(self) -> int:
        self._line += self._data.count(b"\n", self._line_offset, self._position)
        self._line_offset = self._position
        return self._line

    def _why_no_end(self) -> str:
        if len(self._data) - self._position > MAX_BYTES:
            return f"longer than {MAX_BYTES // 1_000_000} MB"
        return "the file ends inside it"

    def _element_end(self, start: int, position: int, name: bytes) -> tuple[int, str]:
        """Where the element's end tag ends, 0 when that is not in the buffer, and what is wrong
        with the element."""
        if self._inside is not None and self._inside[0] == start:
            position = self._inside[1]
        inside = _inside(name)
        while match := inside.search(self._data, position):
            if match[0].startswith(b"</"):
                return match.end(), ""
            if match[0] not in _CLOSED_BY:
                return match.start(), "no end tag before the next one starts"
            end = self._aside_end(match)
            if not end:
                self._inside = start, match.start()
                return 0, ""
            position = end
        last = self._data.rfind(b"<", position)  # the only one that may be part of a tag
        self._inside = start, last if last >= 0 else len(self._data)
        return 0, ""

    def _aside_end(self, match: re.Match[bytes]) -> int:
        """Where what `match` opens is closed, 0 when that is not in the buffer."""
        closing, start = _CLOSED_BY[match[0]], match.end()
        span = self._unclosed.get(closing)
        if span is not None and span[0] <= start:
            start = max(start, span[1])
        position = self._data.find(closing, start)
        if position >= 0:
            return position + len(closing)
        self._unclosed[closing] = match.end(), max(start, len(self._data) - len(closing) + 1)
        return 0


@cache
def _inside(name: bytes) -> re.Pattern[bytes]:
    name = re.escape(name)
    return re.compile(rb"</" + name + rb"\s*>|<" + name + rb"(?=[\s/>])|" + _ASIDE)
