"""The bytes of a memory: plain, .gz, .xz, or a member of a .zip, unpacked as they are read and never on disk."""

from __future__ import annotations

import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from tmnmt.errors import FormatError

BLOCK = 1 << 20
# Real memories shrink to a fortieth at best; deflate can reach a thousandth and xz far less, which is what bombs do.
MAX_EXPANSION = 250
ALWAYS_ALLOWED = 64 << 20

_GZIP, _XZ, _ZIP = b"\x1f\x8b", b"\xfd7zXZ\x00", b"PK\x03\x04"
_PACKED = (".gz", ".xz")
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, gzip.BadGzipFile, OSError)


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a memory, as it is called in messages (`shown`) and in records (`name`, without .gz or .xz); `size`:
    the bytes that `open` gives."""

    shown: str
    name: str
    open: Callable[[], BinaryIO]
    size: int

    @property
    def stem(self) -> str:
        """The name without its last suffix: what a document is called that has no other name."""
        return self.name if self.name.count(".") == 0 else self.name.rsplit(".", 1)[0]

    @property
    def suffix(self) -> str:
        """The last suffix of the name, in lower case: ".tmx"."""
        return PurePosixPath(self.name).suffix.lower()

    @contextmanager
    def stream(self) -> Iterator[io.BufferedReader]:
        """The unpacked bytes. FormatError, here or on reading: missing, empty, damaged, or a decompression bomb."""
        with self.open() as raw:
            unpacked = _unpacked(raw, self.shown)
            if not unpacked.peek(1):
                raise FormatError(f"{self.shown}: the file is empty")
            yield unpacked


def file_source(path: Path) -> Source:
    """`path` as one source, whatever it holds."""
    size = path.stat().st_size if path.is_file() else 0  # opening says what is wrong
    return Source(str(path), bare_name(path.name), lambda: open_file(path), size)


def open_file(path: Path) -> BinaryIO:
    """The file's bytes as they lie on disk; FormatError when it cannot be opened."""
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise FormatError(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise FormatError(f"{path}: a folder, where a file is wanted") from error
    except OSError as error:
        raise FormatError(f"{path}: cannot be opened: {error.strerror}") from error


def bare_name(name: str) -> str:
    """The file name without the folder and without .gz or .xz."""
    name = PurePosixPath(name.replace("\\", "/")).name
    return name[:-3] if name.lower().endswith(_PACKED) else name


def is_zip(path: Path) -> bool:
    """Whether the file starts as a zip archive does; FormatError when it cannot be opened."""
    with open_file(path) as file:
        return file.read(4) == _ZIP


@contextmanager
def zip_sources(path: Path) -> Iterator[list[Source]]:
    """The members of a zip archive in their order, folders and hidden files left out; to be read inside the block."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise FormatError(f"{path}: a damaged zip archive: {error}") from error
    with archive:
        yield [
            Source(shown, name, _member(archive, info, shown), info.file_size)
            for info in archive.infolist()
            for shown, name in [(f"{path}: {info.filename}", bare_name(info.filename))]
            if not info.is_dir() and not name.startswith(".") and not info.filename.startswith("__MACOSX/")
        ]


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, shown: str) -> Callable[[], BinaryIO]:
    def open_member() -> BinaryIO:
        try:
            member = archive.open(info)
        except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:  # encrypted, or packed in another way
            raise FormatError(f"{shown}: cannot be unpacked: {error}") from error
        return _buffered(cast(BinaryIO, member), shown, lambda: info.compress_size)

    return open_member


def _unpacked(raw: BinaryIO, shown: str) -> io.BufferedReader:
    packed = raw if isinstance(raw, io.BufferedReader) else _buffered(raw, shown, None)
    head = packed.peek(6)
    if head.startswith(_GZIP):
        return _buffered(cast(BinaryIO, gzip.GzipFile(fileobj=packed)), shown, packed.tell)
    if head.startswith(_XZ):
        return _buffered(cast(BinaryIO, lzma.LZMAFile(packed)), shown, packed.tell)
    return packed


def _buffered(raw: BinaryIO, shown: str, packed_bytes: Callable[[], int] | None) -> io.BufferedReader:
    return io.BufferedReader(_Guarded(raw, shown, packed_bytes), BLOCK)


class _Guarded(io.RawIOBase):
    """Reads through to `raw`, turns damage into FormatError and stops at a decompression bomb."""

    def __init__(self, raw: BinaryIO, shown: str, packed_bytes: Callable[[], int] | None) -> None:
        self._raw, self._shown, self._packed_bytes = raw, shown, packed_bytes
        self._given = 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._given

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._raw.read(len(buffer))
        except _DAMAGE as error:
            raise FormatError(f"{self._shown}: damaged, cannot be read on: {error}") from error
        buffer[: len(data)] = data
        self._given += len(data)
        if self._packed_bytes and self._given > max(ALWAYS_ALLOWED, MAX_EXPANSION * self._packed_bytes()):
            raise FormatError(
                f"{self._shown}: unpacks to more than {MAX_EXPANSION} times its size: refused as a decompression bomb"
            )
        return len(data)

    def close(self) -> None:
        self._raw.close()
        super().close()
