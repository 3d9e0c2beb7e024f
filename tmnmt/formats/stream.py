"""The bytes of a memory: plain, .gz, .xz, or a member of a .zip, unpacked as they are read and
never on disk."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from tmnmt.errors import FormatError
from tmnmt.formats.clean import excerpt

BLOCK = 1 << 20
# Real memories shrink to a fortieth at best; deflate can reach a thousandth and xz far less, which
# is what bombs do.
MAX_EXPANSION = 100
ALWAYS_ALLOWED = 8 << 20
# Real units take 20 bytes packed (subtitles) to 260 (laws); a unit costs about as long to read as
# 400 bytes.
PACKED_BYTES_A_UNIT = 4
UNITS_ALWAYS_ALLOWED = 50_000
XZ_MEMORY = 256 << 20  # bytes that unpacking may ask for; the strongest preset, xz -9, needs 65 MB

_GZIP, _XZ, _ZIP = b"\x1f\x8b", b"\xfd7zXZ\x00", b"PK\x03\x04"
PACKED = (".gz", ".xz")
_XZ_BLOCK = 1 << 16
_ZIP_HEADER = 30  # bytes before a member's name and data
_LONGEST_NAME = 255
# What the modules of the standard library raise for damaged bytes.
_DAMAGE = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    OSError,
    ValueError,
    IndexError,
    OverflowError,
    struct.error,
    RuntimeError,
)


class NoMemory(FormatError):
    """The file is whole but no memory in these languages: in an archive such a member is passed
    over."""

    def __init__(self, label: str, why: str, allowed: str = "") -> None:
        """label: what messages call the file.
        why: what is wrong, in a few words.
        allowed: what is allowed, in words; "" says nothing of it."""
        super().__init__(f"{label}: {why}{allowed and '; '}{allowed}")
        self.why = why


@dataclass(slots=True)
class Allowance:
    """How much one file or archive may unpack to: all its members and layers together, in bytes and
    in units.

    label: what messages call it.
    packed: gives its bytes as they lie on disk, all or those read so far."""

    label: str
    packed: Callable[[], int]
    _bytes: int = 0
    _units: int = 0

    def take(self, count: int) -> None:
        """Counts unpacked bytes.

        count: how many there are.

        Raises FormatError when they are more than real memories hold."""
        self._bytes += count
        if self._bytes > ALWAYS_ALLOWED and self._bytes > MAX_EXPANSION * self.packed():
            raise self._bomb(f"more than {MAX_EXPANSION} times its size")

    def take_unit(self) -> None:
        """Counts a unit, where anything was unpacked.

        Raises FormatError when there are more than real memories hold."""
        self._units += 1
        if (
            self._units > UNITS_ALWAYS_ALLOWED
            and self._bytes
            and self._units * PACKED_BYTES_A_UNIT > self.packed()
        ):
            raise self._bomb(f"more than a unit for every {PACKED_BYTES_A_UNIT} bytes of its size")

    def _bomb(self, size: str) -> FormatError:
        return FormatError(
            f"{self.label}: unpacks to {size}: refused as a decompression bomb; if it is none, "
            "unpack it first"
        )


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a memory.

    label: what messages call it.
    name: what records call it, without .gz or .xz.
    open: opens it.
    size: how many bytes `open` gives.
    allowance: how much it may unpack to, which all sources of an archive share."""

    label: str
    name: str
    open: Callable[[], BinaryIO]
    size: int
    allowance: Allowance

    @property
    def stem(self) -> str:
        """The name without its last suffix: what a document is called that has no other name."""
        return self.name if self.name.count(".") == 0 else self.name.rsplit(".", 1)[0]

    @property
    def suffix(self) -> str:
        """The last suffix of the name, in lower case: ".tmx"."""
        return PurePosixPath(self.name).suffix.lower()

    @contextmanager
    def stream(self, may_be_empty: bool = False) -> Iterator[io.BufferedReader]:
        """Gives the unpacked bytes.

        may_be_empty: whether an empty file is right.

        Raises FormatError, here or on reading, where the file is missing, empty, damaged, or a
        decompression bomb."""
        with self.open() as raw:
            unpacked = _unpacked(raw, self.label, self.allowance)
            if not may_be_empty and not unpacked.peek(1):
                raise NoMemory(self.label, "the file is empty")
            yield unpacked


def file_source(path: Path) -> Source:
    """A file as one source, whatever it holds.

    path: the file, or a pipe."""
    size = path.stat().st_size if path.is_file() else 0  # opening says what is wrong
    label, name = str(path), bare_name(path.name)
    if size:
        return Source(label, name, lambda: open_file(path), size, Allowance(label, lambda: size))
    streams: list[BinaryIO] = []  # a pipe, which has no size

    def open_pipe() -> BinaryIO:
        streams[:] = [_buffered(open_file(path), label, None)]
        return streams[0]

    return Source(label, name, open_pipe, size, Allowance(label, lambda: streams[0].tell()))


def open_file(path: Path) -> BinaryIO:
    """The bytes of a file as they lie on disk.

    path: the file.

    Raises FormatError where it cannot be opened."""
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise FormatError(f"{path}: no such file") from error
    except OSError as error:
        if path.is_dir():  # which Windows refuses as it does what may not be read
            raise FormatError(f"{path}: a folder, where a file is wanted") from error
        raise FormatError(f"{path}: cannot be opened: {error.strerror}") from error


def copy_bytes(stream: BinaryIO, destination: BinaryIO, limit: int, label: str) -> None:
    """Copies all that is left of a stream.

    stream: the stream.
    destination: where the bytes go.
    limit: how many bytes are copied at most.
    label: what messages call the stream.

    Raises FormatError for more bytes."""
    while block := stream.read(BLOCK):
        limit -= len(block)
        if limit < 0:
            raise FormatError(f"{label}: unpacks to more than is read at once: unpack it first")
        destination.write(block)


def bare_name(name: str) -> str:
    """The name of a file without the folder and without .gz or .xz; its end where it is longer than
    a file's name can be.

    name: the name or path."""
    name = PurePosixPath(name.replace("\\", "/")).name[-_LONGEST_NAME:]
    return name[:-3] if name.lower().endswith(PACKED) else name


def is_pipe(path: Path) -> bool:
    """Whether a path is that of a pipe or a device, which can be read once only.

    path: the path."""
    return path.exists() and not path.is_file() and not path.is_dir()


def is_zip(path: Path) -> bool:
    """Whether a file begins as a zip archive does. A pipe or a device is none: it can be read once
    only, and the directory of an archive is at its end.

    path: the file.

    Raises FormatError where it cannot be opened."""
    if is_pipe(path):
        return False
    with open_file(path) as file:
        return file.read(4) == _ZIP


@contextmanager
def zip_sources(path: Path) -> Iterator[list[Source]]:
    """Gives the members of a zip archive in their order, without folders and hidden files. They can
    be read inside the block.

    path: the archive.

    Raises FormatError where it is damaged."""
    size = path.stat().st_size
    allowance = Allowance(str(path), lambda: size)
    try:
        archive = zipfile.ZipFile(path)
    except _DAMAGE as error:
        raise FormatError(f"{path}: a damaged zip archive: {excerpt(str(error), 200)}") from error
    with archive:
        _need_own_bytes(archive, str(path))
        yield [
            Source(label, name, _member(archive, info, label, allowance), info.file_size, allowance)
            for info in archive.infolist()
            for label, name in [
                (f"{path}: {excerpt(info.filename, 300)}", bare_name(info.filename))
            ]
            if not info.filename.endswith("/")
            and not name.startswith(".")
            and not info.filename.startswith("__MACOSX/")
        ]


def _need_own_bytes(archive: zipfile.ZipFile, label: str) -> None:
    """FormatError where two members share bytes, as those of bombs do, and those of no archive that
    a tool writes."""
    end = 0
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise FormatError(
                f"{label}: a damaged zip archive: {excerpt(info.filename, 200)!r} begins inside "
                "another member"
            )
        end = info.header_offset + _ZIP_HEADER + info.compress_size


def _member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, label: str, allowance: Allowance
) -> Callable[[], BinaryIO]:
    def open_member() -> BinaryIO:
        # The other ways of packing are unpacked with no limit on memory, and no tool writes
        # memories in them.
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FormatError(
                f"{label}: cannot be unpacked: method {info.compress_type}; allowed: stored or "
                "deflated"
            )
        try:
            member = archive.open(info)
        except _DAMAGE as error:  # encrypted, or not where the archive says
            raise FormatError(f"{label}: cannot be unpacked: {excerpt(str(error), 200)}") from error
        return _buffered(cast(BinaryIO, member), label, allowance)

    return open_member


def _unpacked(raw: BinaryIO, label: str, allowance: Allowance) -> io.BufferedReader:
    packed = raw if isinstance(raw, io.BufferedReader) else _buffered(raw, label, None)
    head = packed.peek(6)
    if head.startswith(_GZIP):
        return _buffered(cast(BinaryIO, gzip.GzipFile(fileobj=packed)), label, allowance)
    if head.startswith(_XZ):
        return _buffered(cast(BinaryIO, _Xz(packed, label)), label, allowance)
    return packed


def _buffered(raw: BinaryIO, label: str, allowance: Allowance | None) -> io.BufferedReader:
    return io.BufferedReader(_Guarded(raw, label, allowance), BLOCK)


class _Xz:
    """One xz stream after another, with zeros between them: lzma.LZMAFile, but with a limit on
    memory."""

    def __init__(self, packed: BinaryIO, label: str) -> None:
        self._packed, self._label = packed, label
        self._decoder: lzma.LZMADecompressor | None = None

    def read(self, size: int) -> bytes:
        while True:
            if self._decoder is None or self._decoder.eof:
                block = self._next_stream(self._decoder.unused_data if self._decoder else b"")
                if not block:
                    return b""
                self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
            elif self._decoder.needs_input:
                block = self._packed.read(_XZ_BLOCK)
                if not block:
                    raise EOFError("the file ends before the end of its packed data")
            else:
                block = b""
            if data := self._unpack(self._decoder, block, size):
                return data

    def _next_stream(self, block: bytes) -> bytes:
        while not (block := block.lstrip(b"\0")):
            block = self._packed.read(_XZ_BLOCK)
            if not block:
                break
        return block

    def _unpack(self, decoder: lzma.LZMADecompressor, block: bytes, size: int) -> bytes:
        try:
            return decoder.decompress(block, size)
        except lzma.LZMAError as error:
            if "limit" in str(error):
                raise FormatError(
                    f"{self._label}: asks for more than {XZ_MEMORY >> 20} MB of memory to be "
                    "unpacked; "
                    "pack it again, with xz -9 or less"
                ) from error
            raise

    def close(self) -> None:
        self._packed.close()


class _Guarded(io.RawIOBase):
    """Reads through to `raw`, turns damage into FormatError and stops at a decompression bomb."""

    def __init__(self, raw: BinaryIO, label: str, allowance: Allowance | None) -> None:
        self._raw, self._label, self._allowance = raw, label, allowance
        self._delivered = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._delivered

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._raw.read(len(buffer))
        except _DAMAGE as error:
            raise FormatError(
                f"{self._label}: damaged, cannot be read on: {excerpt(str(error), 200)}"
            ) from error
        buffer[: len(data)] = data
        self._delivered += len(data)
        if self._allowance is not None:
            self._allowance.take(len(data))
        return len(data)

    def close(self) -> None:
        self._raw.close()
        super().close()
