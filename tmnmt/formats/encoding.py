"""From bytes to UTF-8 and to lines: byte-order marks, XML declarations, and bytes that cannot be
decoded."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Generator, Iterator
from typing import NamedTuple, Protocol

from tmnmt.errors import FormatError
from tmnmt.formats.clean import excerpt
from tmnmt.system import has_more

# What stands for bytes that cannot be decoded: no decoder gives a lone surrogate, so it cannot be
# in a good text.
MARK = "\udcff"
_MARKING = "tmnmt-mark"
BLOCK = 1 << 16  # bytes: what a pipe holds

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Python's own ways of writing text, which no file is in: one takes quadratic time, others no errors
# handler. UTF-7 is for mail, and its decoder keeps a run of base64 however long it is and begins it
# again with every block.
_NO_CHARSETS = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)
_LONGEST_DECLARATION = 1000  # bytes
_DECLARED = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([^"']*)["']""")

_CLOSED_BY = {"<?": "?>", "<!--": "-->", "<!DOCTYPE": ">"}
_ASIDE = re.compile(r"\s*(<\?|<!--|<!DOCTYPE)")
_SUBSET_END = re.compile(r"\]\s*+>")
_ROOT = re.compile(r"\s*<([^\s<>/!?]{1,100})")


def _mark(error: UnicodeError) -> tuple[str, int]:
    if isinstance(error, UnicodeDecodeError):
        return MARK, error.end
    raise error


codecs.register_error(_MARKING, _mark)


class Bytes(Protocol):
    """Whatever gives the next bytes, b"" at the end."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, b"" at the end.

        size: how many bytes are given at most."""


def byte_order_mark(head: bytes) -> tuple[str, int]:
    """The encoding that a byte-order mark names, and the length of the mark in bytes; UTF-8 and 0
    without a mark.

    head: the first bytes of a file."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, len(mark)
    return "utf-8", 0


def xml_encoding(head: bytes, label: str) -> tuple[str, int]:
    """The encoding of an XML file, from its mark, declaration and first bytes, and the length of
    the mark in bytes. A declaration that says UTF-16 in a file of single bytes is wrong, and passed
    over, as libxml2 does.

    head: the first bytes of the file.
    label: what messages call the file.

    Raises FormatError for what is no encoding of text, or one that nobody knows."""
    encoding, length = byte_order_mark(head)
    if length:
        return encoding, length
    if head[:2] == b"<\x00":
        return "utf-16-le", 0
    if head[:2] == b"\x00<":
        return "utf-16-be", 0
    declared = _DECLARED.match(head[:_LONGEST_DECLARATION])
    if declared is None:
        return "utf-8", 0
    name = declared[1].decode("ascii", "replace")
    codec = charset(name)
    if not codec:
        raise FormatError(
            f"{label}: unknown encoding {excerpt(name)!r}; allowed: a character set, as UTF-8"
        )
    return ("utf-8", 0) if codec.startswith(("utf-16", "utf-32", "ascii")) else (codec, 0)


def charset(name: str) -> str:
    """Python's name of a character set; "" where there is no such character set: it is unknown, or
    a codec of another kind, such as zlib. What Python calls UTF-8 with a signature is UTF-8,
    because its encoder would write a mark that nobody wants.

    name: the name of the character set."""
    try:
        codec = codecs.lookup(name).name
        b"<".decode(codec)
    except UnicodeDecodeError:
        pass  # of more than one byte
    except (LookupError, ValueError):
        return ""
    if codec == "utf-8-sig":
        return "utf-8"
    return "" if codec.replace("_", "-") in _NO_CHARSETS else codec


def head_text(stream: io.BufferedReader) -> str:
    """The beginning of a file as text, by which one tells what it is. Nothing is consumed.

    stream: the bytes of the file."""
    head = stream.peek(1)
    encoding, length = byte_order_mark(head)
    if not length and head[:2] in (b"<\x00", b"\x00<"):
        encoding = "utf-16-le" if head[:1] == b"<" else "utf-16-be"
    return head[length:].decode(encoding, "replace")


def root_element(head: str) -> str:
    """The name of the root element; "" where a text does not begin as XML does.

    head: the beginning of the text."""
    offset = 0
    while aside := _ASIDE.match(head, offset):
        closing = _CLOSED_BY[aside[1]]
        end = head.find(closing, aside.end())
        if closing == ">":
            end = _doctype_end(head, aside.end())
        if end < 0:
            return ""
        offset = end + len(closing)
    root = _ROOT.match(head, offset)
    return root[1] if root else ""


def _doctype_end(head: str, start: int) -> int:
    """Where the ">" of a DOCTYPE stands: behind its internal subset in brackets, where it has one;
    -1: nowhere."""
    end = head.find(">", start)
    subset = head.find("[", start, end)
    if subset < 0:
        return end
    closing = _SUBSET_END.search(head, subset)
    return closing.end() - 1 if closing else -1


def utf8(stream: io.BufferedReader, encoding: str, mark_length: int) -> Bytes:
    """The same text in UTF-8 without its mark. Bytes that cannot be decoded become bytes that no
    UTF-8 decoder takes.

    stream: the bytes of the text, at their beginning.
    encoding: their encoding.
    mark_length: the length of their mark in bytes."""
    stream.read(mark_length)
    return stream if encoding == "utf-8" else _Transcoder(stream, encoding)


def is_misread(text: Bytes) -> bool:
    """Whether what `utf8` gave so far was UTF-8 already, although it was read in another encoding.

    text: what `utf8` gave."""
    return isinstance(text, _Transcoder) and text.is_utf8


class _Transcoder:
    def __init__(self, stream: Bytes, encoding: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)(_MARKING)
        self._as_utf8: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder("utf-8")()
        self._beyond_ascii = False

    @property
    def is_utf8(self) -> bool:
        """Whether what was read is UTF-8 beyond ASCII, which no text in another encoding is by
        chance."""
        return self._beyond_ascii and self._as_utf8 is not None

    def _try_utf8(self, block: bytes) -> None:
        if self._as_utf8 is not None and not (block.isascii() and not self._as_utf8.getstate()[0]):
            self._beyond_ascii = True
            try:
                self._as_utf8.decode(block)
            except UnicodeDecodeError:
                self._as_utf8 = None

    def read(self, size: int, /) -> bytes:
        while block := self._stream.read(size):
            self._try_utf8(block)
            if text := self._decoder.decode(block):
                return text.encode("utf-8", "surrogatepass")
        return self._decoder.decode(b"", True).encode("utf-8", "surrogatepass")


def lines(stream: io.BufferedReader, limit: int = -1) -> Generator[str, None, None]:
    r"""The lines of a text, without their ends. A line ends at \n or \r\n and nowhere else (not
    where `str.splitlines` would: \x0b, \x85, U+2028). The text is in UTF-8, or in what a byte-order
    mark says. Bytes that cannot be decoded become MARK.

    stream: the bytes of the text, at their beginning.
    limit: how many characters a line may have; a longer one is cut there. -1 cuts none."""
    encoding, length = byte_order_mark(stream.peek(4))
    stream.read(length)
    wrapper = io.TextIOWrapper(stream, encoding=encoding, errors=_MARKING, newline="\n")
    try:
        while line := wrapper.readline(limit):
            if line[-1] == "\n":
                yield line[:-2] if line.endswith("\r\n") else line[:-1]
                continue
            yield line
            while line and line[-1] != "\n":
                line = wrapper.readline(limit)
    finally:
        wrapper.detach()


class LineForm(NamedTuple):
    """How a text ends its lines, and what it begins with.

    end: the end of a line.
    mark: the byte-order mark; "" where there is none."""

    end: str = "\n"
    mark: str = ""


def line_form(stream: io.BufferedReader) -> LineForm:
    """How a text ends its lines, by its first line, and what it begins with.

    stream: the bytes of the text, at their beginning."""
    encoding, length = byte_order_mark(stream.peek(4))
    mark = "\ufeff" if length and encoding == "utf-8" else ""
    head = stream.peek(BLOCK).partition(b"\n")
    return LineForm("\r\n" if head[0].endswith((b"\r", b"\r\0")) and head[1] else "\n", mark)


def utf8_or(data: bytes, legacy: str) -> str:
    """The name of the encoding of a text that is in Unicode as its byte-order mark says, in UTF-8,
    or in the encoding that such files used to have.

    data: the bytes of the text.
    legacy: the name of the encoding that they have where they are no UTF-8."""
    marked, length = byte_order_mark(data)
    if length:
        return marked
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return legacy
    return "utf-8"


def lines_as_they_come(stream: io.BufferedReader, limit: int) -> Iterator[list[str]]:
    """The lines of a pipe or a terminal as `lines` gives them, in lists that are not empty: all
    that have come. A list is given before more bytes are waited for.

    stream: the bytes of the text, at their beginning.
    limit: how many lines a list has at most, and a few more."""
    encoding, length = byte_order_mark(stream.peek(4))
    stream.read(length)
    decoder = codecs.getincrementaldecoder(encoding)(_MARKING)
    lines: list[str] = []
    fragments: list[str] = []  # the parts of a line whose end has not come
    while block := stream.read1(
        BLOCK
    ):  # what is buffered, else one read: so `select` sees all that is left
        *ended, rest = decoder.decode(block).split("\n")
        if ended:
            ended[0] = "".join([*fragments, ended[0]])
            lines += [line.removesuffix("\r") for line in ended]
            fragments = []
        fragments.append(rest)
        if lines and (len(lines) >= limit or not has_more(stream)):
            yield lines
            lines = []
    if last := "".join([*fragments, decoder.decode(b"", True)]):
        lines.append(last)
    if lines:
        yield lines
