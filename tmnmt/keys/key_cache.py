"""Pair keys that were computed at need, kept beside their index, so that the next use of the index
reads them.

    INDEX/keys/<model hash>.<layout>.cache/N.log

A log begins with what its keys belong to, and then only grows, frame by frame:

    frame    number of records, CRC-32 of the records, CRC-32 of these two
    records  of every pair: digest of its two texts, target positions, CRC-32 of its rows
    rows     of every pair, column after column, as its layout has them (`layout.py`)

Readers take no lock. They stop before a frame that is not whole, and a pair whose rows are not what
its checksum says counts as missing; it is computed again. So nothing needs to be put on disk at
once, and a writer may be killed at any moment: the next one cuts off what it left. One process
writes at a time. Where one log is half of MOST_BYTES long, the next one begins, and all logs before
the two latest are removed. What is read from the earlier of the two is written to the later one
again, so what is used stays. Keys are found by a digest of the texts that they were computed from:
those of a corrected segment are never read again, and go with their log."""

from __future__ import annotations

import logging
import os
import re
import shutil
import weakref
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tmnmt.durable import make_folder
from tmnmt.errors import LockedError, MemoryIndexError
from tmnmt.index.embedded.lock import writing
from tmnmt.index.embedded.manifest import KEYS_DIR
from tmnmt.keys.layout import Array, Header
from tmnmt.keys.pair import PairKeys
from tmnmt.system import open_file, read_at, write_at

FORMAT = 1
MOST_BYTES = 1 << 28  # of the logs of one model and layout
MODELS = 3  # whose caches an index keeps; the ones used longest ago go first
LOCK_SECONDS = 0.5  # that a writer waits for another one; then nothing is kept
SUFFIX = ".cache"
_LOG = re.compile(r"(\d{1,9})\.log")
_FRAME = np.dtype([("records", "<u4"), ("checksum", "<u4"), ("own", "<u4")])
_RECORD = np.dtype([("digest", "<u8", 2), ("length", "<i4"), ("content", "<u4")])

Digest = tuple[int, int]
log = logging.getLogger(__name__)


def rows_of(header: Header, keys: PairKeys) -> bytes:
    """The rows of a pair.

    header: what the keys belong to.
    keys: the keys of the pair.

    Raises DataError for numbers that cannot be kept."""
    return b"".join(column.tobytes() for column in header.encoded(keys))


def keys_of_rows(header: Header, rows: bytes, length: int) -> PairKeys:
    """The keys of a pair.

    header: what the keys belong to.
    rows: the rows of the pair, as `rows_of` gives them.
    length: how many target positions the pair has."""
    columns, start = list[Array](), 0
    for _, dtype, width in header.columns:
        end = start + length * width * np.dtype(dtype).itemsize
        columns.append(np.frombuffer(rows[start:end], dtype).reshape(length, width))
        start = end
    return header.decoded((*columns[:-1], columns[-1][:, 0]))


def head_of(header: Header) -> bytes:
    """What every log begins with.

    header: what its keys belong to."""
    contents = repr((FORMAT, header.position_bytes, header)).encode()
    return b"tmnmt key cache\n" + blake2b(contents, digest_size=16).digest()


class _Place(NamedTuple):
    """Where the rows of a pair lie."""

    log: int
    offset: int
    length: int
    content: int


class _Log:
    """A log that is open for reading, and how far it is known."""

    def __init__(self, path: Path, head: bytes) -> None:
        """Raises OSError."""
        self.handle = open_file(path, os.O_RDONLY)
        self.close = weakref.finalize(self, os.close, self.handle)
        self.fits = read_at(self.handle, len(head), 0) == head
        self.end = len(head)

    def new_records(self, position_bytes: int) -> Iterable[tuple[int, Array]]:
        """Of every whole frame that is not known yet: where its rows begin, and its records."""
        size = os.fstat(self.handle).st_size if self.fits else 0
        while self.end + _FRAME.itemsize <= size:
            frame = read_at(self.handle, _FRAME.itemsize, self.end)
            count, checksum, _ = np.frombuffer(frame, _FRAME)[0].tolist()
            start = self.end + _FRAME.itemsize
            rows_at = start + count * _RECORD.itemsize
            if frame != _frame(count, checksum) or rows_at > size:
                return
            content = read_at(self.handle, rows_at - start, start)
            records = np.frombuffer(content, _RECORD)
            lengths = records["length"].astype(np.int64)
            end = rows_at + int(lengths.sum()) * position_bytes
            if zlib.crc32(content) != checksum or (lengths < 0).any() or end > size:
                return
            self.end = end
            yield rows_at, records


class KeyCache:
    """The keys of one model that an index keeps in one layout. Not for several threads at once, but
    for several processes. A folder that cannot be written to is only read. Where the folder of the
    index is not there, nothing is kept."""

    def __init__(self, index_dir: Path, header: Header, most_bytes: int = MOST_BYTES) -> None:
        """index_dir: the folder of the index.
        header: what the keys belong to.
        most_bytes: how many bytes two logs have together at most, more or less."""
        self.index_dir, self.header, self.most_bytes = index_dir, header, most_bytes
        self.folder = index_dir / KEYS_DIR / f"{header.model}.{header.layout}{SUFFIX}"
        self.is_writable = index_dir.is_dir()
        self._logs: dict[int, _Log] = {}
        self._places: dict[Digest, _Place] = {}

    def __len__(self) -> int:
        """How many pairs are known."""
        return len(self._places)

    def refresh(self) -> None:
        """Takes over what was written since."""
        numbers = set(sorted(_numbers(self.folder))[-2:])  # earlier ones are on their way out
        for number in self._logs.keys() - numbers:
            self._forget(number)
        for number in sorted(numbers):
            if number not in self._logs:
                with suppress(OSError):  # removed meanwhile, or not for us to read
                    self._logs[number] = _Log(self.folder / f"{number}.log", head_of(self.header))
            if number in self._logs:
                self._read_on(number)

    def _forget(self, number: int) -> None:
        """Closes a log and knows its pairs no more."""
        self._logs.pop(number).close()
        self._places = {d: place for d, place in self._places.items() if place.log != number}

    def find(self, digest: Digest) -> PairKeys | None:
        """The keys of a pair; None where none are known, or they are damaged.

        digest: the digest of its texts."""
        rows = self._rows(digest)
        return (
            None if rows is None else keys_of_rows(self.header, rows, self._places[digest].length)
        )

    def renew(self, digests: Iterable[Digest]) -> None:
        """Keeps those pairs that would go when the next log begins, as they were used.

        digests: the digests of the pairs."""
        old = [digest for digest in digests if self._is_old(digest)]
        rows = [(digest, self._rows(digest)) for digest in old]
        self.add(
            [
                (digest, pair_rows, self._places[digest].length)
                for digest, pair_rows in rows
                if pair_rows is not None
            ]
        )

    def _rows(self, digest: Digest) -> bytes | None:
        place = self._places.get(digest)
        if place is None:
            return None
        size = place.length * self.header.position_bytes
        rows = read_at(self._logs[place.log].handle, size, place.offset)
        if len(rows) != size or zlib.crc32(rows) != place.content:
            del self._places[digest]
            return None
        return rows

    def _is_old(self, digest: Digest) -> bool:
        """Whether the keys of a pair lie in a log that goes when the next one begins."""
        place = self._places.get(digest)
        return place is not None and place.log < max(self._logs)

    def add(self, pairs: Sequence[tuple[Digest, bytes, int]]) -> None:
        """Keeps pairs. Those that are kept already are left out. Where nothing can be written, or
        another process writes for long, nothing is kept.

        pairs: for every pair the digest of its texts, its rows, and how many target positions it
        has."""
        if not self.is_writable or not pairs:
            return
        try:
            self._make_folder()
            with writing(self.folder, LOCK_SECONDS):
                self.refresh()
                new = [
                    pair for pair in pairs if pair[0] not in self._places or self._is_old(pair[0])
                ]
                if new:
                    self._append(new)
        except LockedError:
            return
        except (OSError, MemoryIndexError) as error:
            self.is_writable = False
            log.info("%s: keys that are computed at need are not kept: %s", self.folder, error)

    def _append(self, pairs: Sequence[tuple[Digest, bytes, int]]) -> None:
        records = np.zeros(len(pairs), _RECORD)
        records["digest"] = [digest for digest, _, _ in pairs]
        records["length"] = [length for _, _, length in pairs]
        records["content"] = [zlib.crc32(rows) for _, rows, _ in pairs]
        body = records.tobytes()
        frame = _frame(len(pairs), zlib.crc32(body)) + body
        content = frame + b"".join(rows for _, rows, _ in pairs)
        number = self._log_for(len(content))
        handle = open_file(self.folder / f"{number}.log", os.O_RDWR)
        offset = self._logs[number].end
        try:
            os.ftruncate(handle, offset)  # what a killed writer left
            try:
                _write_all(handle, content, offset)
            except OSError:
                os.ftruncate(handle, offset)
                raise
        finally:
            os.close(handle)
        self._read_on(number)

    def _log_for(self, size: int) -> int:
        """The number of the log that so many bytes are added to: a new one where the latest is
        full, or is of other keys. Earlier ones than the latest two are removed."""
        latest = max(self._logs, default=0)
        fits = latest and self._logs[latest].fits
        if fits and self._logs[latest].end + size <= self.most_bytes // 2:
            return latest
        number = latest + 1
        path = self.folder / f"{number}.log"
        path.write_bytes(head_of(self.header))
        for log_number in _numbers(self.folder):
            if log_number < latest or (log_number == latest and not fits):
                if log_number in self._logs:
                    self._forget(log_number)  # Windows deletes no file that is open
                with suppress(PermissionError):  # in another process: it goes the next time
                    (self.folder / f"{log_number}.log").unlink(missing_ok=True)
        self.refresh()
        return number

    def _read_on(self, number: int) -> None:
        position_bytes = self.header.position_bytes
        for rows_at, records in self._logs[number].new_records(position_bytes):
            offset = rows_at
            for digest, length, content in records.tolist():
                place = _Place(number, offset, length, content)
                self._places[digest[0], digest[1]] = place
                offset += length * position_bytes

    def _make_folder(self) -> None:
        """Raises OSError."""
        if self.folder.is_dir():
            return
        if not self.index_dir.is_dir():
            raise FileNotFoundError(f"{self.index_dir}: the index is not there any more")
        make_folder(self.folder)
        caches = [path for path in self.folder.parent.glob(f"*{SUFFIX}") if path.is_dir()]
        for path in sorted(caches, key=_last_use, reverse=True)[MODELS:]:
            shutil.rmtree(path, ignore_errors=True)


def _last_use(folder: Path) -> float:
    """When a cache was last written to."""
    times = [folder.stat().st_mtime]
    for number in _numbers(folder):
        with suppress(OSError):
            times.append((folder / f"{number}.log").stat().st_mtime)
    return max(times)


def _numbers(folder: Path) -> list[int]:
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return []
    return [int(match[1]) for name in names if (match := _LOG.fullmatch(name))]


def _frame(count: int, checksum: int) -> bytes:
    frame_checksum = zlib.crc32(np.array([count, checksum], "<u4").tobytes())
    return np.array([(count, checksum, frame_checksum)], _FRAME).tobytes()


def _write_all(handle: int, content: bytes, offset: int) -> None:
    rest = memoryview(content)
    while rest:
        count = write_at(handle, rest, offset)
        offset, rest = offset + count, rest[count:]
