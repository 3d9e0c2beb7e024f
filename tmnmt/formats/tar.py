"""The files of a tar archive, from a stream, in bounded memory: as much of the format as published
corpora use.

The standard library's reader follows chains of long names by recursion, keeps extended headers of
any size, and raises errors of many kinds for damage; this one knows ustar, GNU long names and the
path of a pax header."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

from tmnmt.errors import FormatError
from tmnmt.formats.clean import excerpt
from tmnmt.formats.stream import BLOCK

MAX_FILE = 64 << 20  # bytes; the longest of the JRC-Acquis has a few MB
MAX_HEADER = 1 << 16  # bytes of a long name or a pax header

_RECORD = 512
_FILES = (b"0", b"\0", b"7")
_LONG_NAME = b"L"
_PAX = b"x"
_SPARSE = b"S"
_PAX_RECORD = re.compile(rb"([0-9]{1,6}) ([^=\n]+)=")


def tar_files(
    stream: BinaryIO, label: str, takes: Callable[[str], bool]
) -> Iterator[tuple[str, bytes]]:
    """The name and content of regular files of a tar archive, in order.

    stream: the bytes of the archive.
    label: what messages call the archive.
    takes: says of a name whether the file is given.

    Raises FormatError where there is no whole tar archive, or where a file that is given is sparse
    or longer than 64 MB."""
    long_name = ""  # by the headers before
    while header := stream.read(_RECORD):
        if not any(header):
            return
        name, size, kind = _fields(header, label)
        if kind in (_LONG_NAME, _PAX):
            if size > MAX_HEADER:
                raise _damaged(label, f"a header of {size:,} bytes")
            content = _content(stream, size, label)
            long_name = (
                _text(content) if kind == _LONG_NAME else _pax_path(content, label)
            ) or long_name
            continue
        name = long_name or name
        long_name = ""
        if not takes(name) or kind not in (*_FILES, _SPARSE):
            _skip(stream, size, label)
        elif kind == _SPARSE or size > MAX_FILE:
            reason = "a sparse file" if kind == _SPARSE else f"longer than {MAX_FILE >> 20} MB"
            raise FormatError(f"{label}: {excerpt(name)}: {reason}")
        else:
            yield name, _content(stream, size, label)


def _fields(header: bytes, label: str) -> tuple[str, int, bytes]:
    """Name, size and kind of the member that a header of 512 bytes begins."""
    if len(header) < _RECORD:
        raise _damaged(label, "it ends inside a header")
    if sum(header[:148]) + 8 * 32 + sum(header[156:]) != _number(header[148:156], label):
        raise _damaged(label, "a header whose sum is wrong")
    name = _text(header[:100])
    prefix = _text(header[345:500]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name, _number(header[124:136], label), header[156:157]


def _number(field: bytes, label: str) -> int:
    """Octal digits, or where the first bit is set a number in base 256."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    digits = field.partition(b"\0")[0].strip()
    if not re.fullmatch(rb"[0-7]*", digits):
        raise _damaged(label, f"a number that is none: {excerpt(repr(digits))}")
    return int(digits or b"0", 8)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "replace")


def _pax_path(content: bytes, label: str) -> str:
    """The last path among the records "LENGTH key=value\\n" of a pax header, LENGTH of the whole
    record; "": none."""
    offset, path = 0, b""
    while offset < len(content):
        record = _PAX_RECORD.match(content, offset)
        end = offset + int(record[1]) if record else 0
        if record is None or end <= record.end() or content[end - 1 : end] != b"\n":
            raise _damaged(label, "a pax header whose records cannot be told apart")
        if record[2] == b"path":
            path = content[record.end() : end - 1]
        offset = end
    return _text(path)


def _content(stream: BinaryIO, size: int, label: str) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise _damaged(label, "it ends inside a file")
    stream.read(-size % _RECORD)
    return content


def _skip(stream: BinaryIO, size: int, label: str) -> None:
    remaining = size + -size % _RECORD
    while remaining:
        block = stream.read(min(remaining, BLOCK))
        if not block:
            raise _damaged(label, "it ends inside a file")
        remaining -= len(block)


def _damaged(label: str, why: str) -> FormatError:
    return FormatError(f"{label}: no whole tar archive: {why}")
