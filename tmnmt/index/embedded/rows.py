"""Segments as bytes in a file that is mapped, found by id: a search reads a few of many, in a third
of SQLite's time.

A record is a segment's fields in UTF-8 and a CRC-32 of its id and them. Its last field, of codes,
is left out where there are none. `start[id]` says where it begins, and so where the one before
ends; an id that is missing has no bytes."""

from __future__ import annotations

import json
import mmap
import os
import zlib
from array import array
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np

from tmnmt.codes.stored import codes_of, listed
from tmnmt.errors import MemoryIndexError
from tmnmt.index.embedded.small_json import pairs_of, parsed
from tmnmt.segments import Segment
from tmnmt.system import flush

_HEADER = b"tmnmt rows\n"  # so that the file is never empty, which could not be mapped
_SEPARATOR, _ESCAPE = "\x1f", "\x1e"
_PROPERTIES = 8  # the field that has them
_OFFSET = np.dtype("<i8")
_CHECKSUM_BYTES = 4
_RESIDUE = 0x2144DF1C  # the CRC-32 of whatever ends in its own CRC-32


class OtherSegmentsError(MemoryIndexError):
    """The segments are others than those of the build that was interrupted."""


def record(segment: Segment, number: int) -> bytes:
    """What is written of a segment.

    segment: the segment.
    number: the id that it gets.

    Raises UnicodeEncodeError where a text is no Unicode. Raises DataError where it cannot have its
    codes."""
    properties = json.dumps(segment.properties, ensure_ascii=False) if segment.properties else ""
    fields = [
        segment.src,
        segment.tgt,
        segment.document,
        str(segment.position),
        segment.origin,
        segment.created,
        segment.changed,
        segment.user,
        properties,
    ]
    if segment.src_codes or segment.tgt_codes:
        codes = (
            listed(segment.src, segment.src_codes),
            listed(segment.tgt, segment.tgt_codes),
        )
        fields.append(json.dumps(codes, ensure_ascii=False, separators=(",", ":")))
    text = _SEPARATOR.join(fields)
    if _ESCAPE in text or text.count(_SEPARATOR) >= len(fields):  # hardly ever
        text = _SEPARATOR.join(map(_escaped, fields))
    content = text.encode()
    return content + zlib.crc32(content, _seed(number)).to_bytes(_CHECKSUM_BYTES, "little")


def _of_property(name: str, value: str | None) -> bytes:
    """What stands in the properties of a record that has this one."""
    pair = json.dumps([name, value or ""], ensure_ascii=False)
    return (pair.removesuffix('""]') if value is None else pair).encode()


def segment_of(content: bytes, number: int) -> Segment | None:
    """The segment of a record; None where the record is damaged.

    content: what `record` gave.
    number: the id of the segment."""
    if zlib.crc32(content, _seed(number)) != _RESIDUE:
        return None
    try:
        text = str(content[:-_CHECKSUM_BYTES], "utf-8")
        fields = text.split(_SEPARATOR)
        if _ESCAPE in text:
            fields = list(map(_unescaped, fields))
        src, tgt, document, position, origin, created, changed, user, properties, *codes = fields
        pairs = pairs_of(parsed(properties)) if properties else ()
        place, times = (document, int(position), number, origin), (created, changed)
        if not codes:
            return Segment(src, tgt, *place, *times, user, pairs)
        ((of_src, of_tgt),) = map(parsed, codes)
        side_codes = codes_of(of_src, src), codes_of(of_tgt, tgt)
        return Segment(src, tgt, *place, *times, user, pairs, *side_codes)
    except (ValueError, TypeError):  # no UTF-8, other fields: written so by something else
        return None


def _seed(number: int) -> int:
    return number & 0xFFFFFFFF


def _escaped(field: str) -> str:
    return field.replace(_ESCAPE, _ESCAPE + "0").replace(_SEPARATOR, _ESCAPE + "1")


def _unescaped(field: str) -> str:
    return field.replace(_ESCAPE + "1", _SEPARATOR).replace(_ESCAPE + "0", _ESCAPE)


class NewRows:
    """Records that are being written, with ascending ids. Those that are there already are
    compared."""

    def __init__(self, path: Path, start: Path, size: int = 0) -> None:
        """path: the file of the records.
        start: the file that says where each begins.
        size: how many bytes are there already of a build that was killed; the rest of the file is
        cut off. Where it is 0, the file is made.

        Raises OtherSegmentsError where the file is shorter."""
        self._start_path, self._size = start, size
        if size:
            if path.stat().st_size < size:
                raise OtherSegmentsError(f"{path}: shorter than it was")
            os.truncate(path, size)
        self._file = path.open("r+b" if size else "xb")
        self._start, self._end = array("q", [0]), 0
        self._put(_HEADER)
        self._start[0] = self._end

    def add(self, number: int, content: bytes) -> None:
        """Writes the record of a segment.

        number: the id of the segment, greater than all before.
        content: what `record` gave.

        Raises ValueError for an id that is not greater, or an empty record. Raises
        OtherSegmentsError where another record is there already."""
        if number < len(self._start) or not content:
            raise ValueError(f"record {number} of {len(content)} bytes: ids ascend from 1")
        self._start.extend([self._end] * (number + 1 - len(self._start)))
        self._put(content)

    def _put(self, content: bytes) -> None:
        """Raises OtherSegmentsError where something else is there already."""
        if self._end < self._size:
            if self._file.read(len(content)) != content:
                raise OtherSegmentsError(f"{self._file.name}: holds other segments")
        else:
            self._file.write(content)
        self._end += len(content)

    def flush(self) -> int:
        """What was added is on disk then; how many bytes that is."""
        self._file.flush()
        flush(self._file.fileno())
        return self._end

    def seal(self) -> None:
        """Everything is on disk, and the files are closed."""
        self._start.append(self._end)
        with self._file, self._start_path.open("xb") as start:
            start.write(np.frombuffer(self._start, np.int64).astype(_OFFSET).tobytes())
            for file in (self._file, start):
                file.flush()
                flush(file.fileno())

    def close(self) -> None:
        """Lets go of the file. What cannot be written any more (disk full) is not
        needed any more."""
        with suppress(OSError):
            self._file.close()


class Rows:
    """Records that were sealed, from any thread; they can be read when the files are gone."""

    def __init__(self, path: Path, start: Path) -> None:
        """path: the file of the records.
        start: the file that says where each begins.

        Raises MemoryIndexError where they cannot be opened."""
        self._path = path
        try:
            with path.open("rb") as file:
                self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._start = np.memmap(start, _OFFSET, "r").data
        except (OSError, ValueError) as error:
            raise MemoryIndexError(f"{path}: the store cannot be opened: {error}") from error
        self._size = len(self._start) - 1

    def __len__(self) -> int:
        """The ids that have a place, those that are missing too."""
        return self._size

    def present(self, ids: Iterable[int]) -> dict[int, Segment]:
        """Those of these segments that are there, by their ids.

        ids: the ids that are looked for.

        Raises MemoryIndexError where one is damaged."""
        content, start, size = self._content, self._start, self._size
        segments = {}
        for number in ids:
            if not 0 < number < size or (begin := start[number]) == (end := start[number + 1]):
                continue
            segment = segment_of(content[begin:end], number)
            if segment is None:
                raise MemoryIndexError(
                    f"{self._path}: segment {number} is damaged (checksum); build the index again"
                )
            segments[number] = segment
        return segments

    def with_property(self, ids: Iterable[int], name: str, value: str | None) -> list[int]:
        """The ids of those segments that have a property. Their texts are not made out, which would
        take twenty times as long.

        ids: the ids of the segments that are looked at.
        name: the name of the property.
        value: its value; None takes any."""
        property_ = _of_property(name, value)
        content = self._content
        start = self._start
        separator = _SEPARATOR.encode()
        return [
            number
            for number in ids
            if property_ in (row := content[start[number] : start[number + 1]])
            and property_ in row.split(separator)[_PROPERTIES]
        ]
