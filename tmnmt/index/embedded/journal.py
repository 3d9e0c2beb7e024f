"""What was changed since a generation was built: an append-only file, on disk before a change is
acknowledged.

One frame a call, whole or not at all: a header line of three hexadecimal numbers (bytes of the
body, its CRC-32, and the CRC-32 of those two and the frame's place), then the body, one line of
JSON a changed segment. A frame that a killed writer left unfinished was never acknowledged: readers
stop before it, the next writer cuts it off. So is one of which a power cut left zeros: all of it,
or from a sector on that was never written, at a multiple of 512 bytes of the file. Everything else
that is not as it was written is damage, for a frame has no zeros in it: also zeros in the middle of
the last frame, though a file system that writes sectors in any order could leave them of a change
that was cut off. So is a file that is missing, for a build makes an empty one, and a link, a pipe
or whatever else is no regular file: what a link leads to is never read nor cut off. A last byte
that stands alone in its sector could become a zero unnoticed, so no frame ends that way. What
cannot be seen: a file cut off where a frame ends, or emptied, is one of fewer changes; cut off
within its last frame, one whose last change was never acknowledged.

A whole frame that its writer has not synced yet is synced by whoever reads it: nobody sees a change
that a power cut takes back."""

from __future__ import annotations

import errno
import json
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tmnmt.codes.stored import codes_of, listed
from tmnmt.errors import DataError, MemoryIndexError
from tmnmt.index.embedded.small_json import is_count, is_text, pairs_of, parsed
from tmnmt.segments import Segment
from tmnmt.system import NO_WAIT, flush, flush_file, open_file, write_at

JOURNAL_FILE = "changes.log"
_HEADER_BYTES = 27  # three numbers of eight digits, each with a separator
# of a file system or a file that nobody, or not this process, can write to: nothing waits to be put
# on disk, or whoever wrote it does that
_CANNOT_WRITE = (errno.EROFS, errno.EINVAL, errno.EACCES)
_FIELDS = 10  # of a segment without codes; with them it has two more
SECTOR = 512  # bytes that a disk writes as a whole, or a multiple of them

Change = tuple[int, Segment | None]  # the segment that the id has from now on; None: deleted


class Journal:
    """The changes in a file. `offset` says how many bytes have been read, and `unfinished` how many
    are behind them, of a change that was never acknowledged."""

    def __init__(self, path: Path) -> None:
        """path: the file."""
        self.path = path
        self._name = str(path)
        self.offset = self.unfinished = 0
        self._synced = 0  # where the last change of our own ended, which is on disk
        self._pending: int | None = None  # where one begins that is being put on disk

    def read(self, last_id: int | None = None) -> list[Change]:
        """The changes made since the last call, in order. What it gives is on disk, for no reader
        may see a change that a power cut takes back.

        last_id: the greatest id that was given before. With it, an error is raised where an id
        leaves others out, which no writer does. None does not look at ids.

        Raises MemoryIndexError where the file is missing, damaged or no regular file."""
        try:
            status = os.lstat(self._name)  # every search asks: half the time of Path.lstat
            self._check_kind(status.st_mode)
            size = status.st_size if self._pending is None else self._pending
            if size == self.offset:
                self.unfinished = 0
                return []
            if size < self.offset:
                raise self._damaged(f"damaged at byte {size:,}")
            with os.fdopen(self._open(os.O_RDONLY), "rb") as file:
                if size != self._synced:
                    # its writer may not have done it yet, or was killed before
                    self._sync()
                file.seek(self.offset)
                content = file.read(size - self.offset)
        except FileNotFoundError:
            raise self._damaged("is missing") from None
        except OSError as error:
            raise MemoryIndexError(f"{self.path}: cannot be read: {error.strerror}") from error
        frames = content.rstrip(b"\0")
        changes, length = self._frames(frames)
        zeros = self.offset + len(frames)
        if length < len(frames) < len(content) and zeros % SECTOR:
            raise self._damaged(f"damaged at byte {zeros:,}")
        if last_id is not None:
            self._expect_no_gap([number for number, _ in changes], last_id)
        self.offset += length
        self.unfinished = len(content) - length
        return changes

    def _expect_no_gap(self, ids: Sequence[int], last_id: int) -> None:
        """Raises MemoryIndexError where an id leaves others out: memory would be asked for all
        between."""
        for number in ids:
            if number > last_id + 1:
                raise self._damaged(f"damaged (segment {number} follows segment {last_id})")
            last_id = max(last_id, number)

    @contextmanager
    def appending(self, lock: AbstractContextManager[object]) -> Iterator[None]:
        """While the block appends, this process reads no further than before, and waits for no
        disk. The caller holds the index's lock on the folder, and has read everything.

        lock: what whoever reads holds."""
        with lock:
            self._pending = self.offset
        try:
            yield
        finally:
            with lock:
                self._pending = None

    def append(self, body: bytes) -> None:
        """Puts changes on disk behind what was read, as one. The caller holds the index's lock and
        has read everything.

        body: the changes, as `encoded` gives them.

        Raises MemoryIndexError where they cannot be written (disk full, no regular file); then none
        is. Raises DataError for more than a frame can hold."""
        frame, start = _frame(body, self.offset), self.offset
        try:
            handle = self._open(os.O_RDWR)
        except OSError as error:
            raise MemoryIndexError(
                f"{self.path}: cannot be written to: {error.strerror}"
            ) from error
        try:
            os.ftruncate(handle, start)  # what a killed writer left
            _write(handle, frame, start)
            flush(handle)
            self._synced = start + len(frame)
        except OSError as error:
            os.ftruncate(handle, start)
            raise MemoryIndexError(f"{self.path}: nothing was changed: {error.strerror}") from error
        finally:
            os.close(handle)

    def _open(self, flags: int) -> int:
        """A handle of the file, which is a regular one; nothing is waited for, and no link is
        followed."""
        try:
            handle = open_file(self._name, flags | NO_WAIT)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._damaged("is a link, which no journal may be") from error
            raise
        try:
            self._check_kind(os.fstat(handle).st_mode)
        except MemoryIndexError:
            os.close(handle)
            raise
        return handle

    def _sync(self) -> None:
        """Puts what others wrote on disk, where this process may."""
        try:
            flush_file(self.path)
        except OSError as error:
            if error.errno not in _CANNOT_WRITE:
                raise

    def _check_kind(self, mode: int) -> None:
        if not stat.S_ISREG(mode):
            raise self._damaged(
                f"is {'a link' if stat.S_ISLNK(mode) else 'no regular file'}, which no journal "
                "may be"
            )

    def _frames(self, content: bytes) -> tuple[list[Change], int]:
        changes: list[Change] = []
        offset = 0
        while offset + _HEADER_BYTES <= len(content):
            size, checksum = self._header(
                content[offset : offset + _HEADER_BYTES], self.offset + offset
            )
            body = content[offset + _HEADER_BYTES : offset + _HEADER_BYTES + size]
            if len(body) < size:
                break
            if zlib.crc32(body) != checksum:
                raise self._damaged(f"damaged at byte {self.offset + offset:,}")
            try:
                changes += [_change(line) for line in body.splitlines()]
            except ValueError as error:  # the checksum is right, and no writer of ours wrote it
                raise self._damaged(
                    f"damaged at byte {self.offset + offset:,} ({error})"
                ) from error
            offset += _HEADER_BYTES + size
        return changes, offset

    def _header(self, header: bytes, offset: int) -> tuple[int, int]:
        try:
            size, checksum = int(header[:8], 16), int(header[9:17], 16)
        except ValueError:
            raise self._damaged(f"damaged at byte {offset:,}") from None
        if header != _header(size, checksum, offset):
            raise self._damaged(f"damaged at byte {offset:,}")
        return size, checksum

    def _damaged(self, how: str) -> MemoryIndexError:
        return MemoryIndexError(
            f"{self.path}: {how}; take the file from a backup, or put an empty one in its place "
            "and lose the changes "
            "made since the index was built or compacted"
        )


def encoded(changes: Iterable[Change]) -> bytes:
    """Changes as the journal has them.

    changes: for every change the id of a segment, and the segment; None where it is deleted.

    Raises DataError for what is no Unicode text."""
    try:
        return b"".join(_line(number, segment) for number, segment in changes)
    except UnicodeEncodeError as error:
        raise DataError(f"a segment has a character that is no Unicode text: {error}") from error


def _frame(body: bytes, offset: int) -> bytes:
    if len(body) >= 2**32 - 1:
        raise DataError("more than 4 GB of changes at once; make them in parts")
    if (offset + _HEADER_BYTES + len(body)) % SECTOR == 1:
        body = body[:-1] + b" \n"  # so that the last byte does not stand alone in its sector
    return _header(len(body), zlib.crc32(body), offset) + body


def _header(size: int, checksum: int, offset: int) -> bytes:
    of_header = zlib.crc32(f"{size} {checksum} {offset}".encode())
    return f"{size:08x} {checksum:08x} {of_header:08x}\n".encode()


def _line(number: int, segment: Segment | None) -> bytes:
    fields = None if segment is None else _fields(segment)
    return json.dumps([number, fields], ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _fields(segment: Segment) -> list[Any]:
    fields: list[Any] = [
        segment.src,
        segment.tgt,
        segment.document,
        segment.position,
        segment.id,
        segment.origin,
        segment.created,
        segment.changed,
        segment.user,
        segment.properties,
    ]
    if segment.src_codes or segment.tgt_codes:
        fields += [listed(segment.src, segment.src_codes), listed(segment.tgt, segment.tgt_codes)]
    return fields


def _change(line: bytes) -> Change:
    """What `_line` made this of. Raises ValueError for anything else."""
    content = parsed(line)
    if not isinstance(content, list) or len(content) != 2 or not is_count(content[0], 1):
        raise ValueError("a change is an id and a segment")
    number, fields = content
    if fields is None:
        return number, None
    if not isinstance(fields, list) or len(fields) not in (_FIELDS, _FIELDS + 2):
        raise ValueError(f"a segment has {_FIELDS} fields, and two of codes")
    src, tgt, document, position, _, origin, created, changed, user, properties, *codes = fields
    texts = src, tgt, document, origin, created, changed, user
    if not all(map(is_text, texts)) or type(position) is not int:
        raise ValueError("a field of a segment is not what it should be")
    place, times = (document, position, number, origin), (created, changed)
    side_codes = [codes_of(record, plain) for record, plain in zip(codes, (src, tgt), strict=False)]
    return number, Segment(src, tgt, *place, *times, user, pairs_of(properties), *side_codes)


def _write(handle: int, content: bytes, offset: int) -> None:
    rest = memoryview(content)
    while rest:
        count = write_at(handle, rest, offset)
        rest, offset = rest[count:], offset + count
