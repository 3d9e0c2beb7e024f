"""What a DOCX, XLSX or PPTX, and other archives, must be like before anything reads what is in it.

It comes from anywhere: one that unpacks to more than such files do, holds macros, or declares
document types, which could have entities, is refused. All of it is unpacked once, to nowhere: what
an archive says of its sizes need not be true."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path, PurePosixPath
from xml.etree.ElementTree import ParseError, fromstring

from tmnmt.errors import FormatError
from tmnmt.formats.stream import ALWAYS_ALLOWED, BLOCK, MAX_EXPANSION

MAX_PARTS = 20_000
MAX_UNPACKED = 1 << 30  # bytes
CONTENTS = "[Content_Types].xml"

_OLD = b"\xd0\xcf\x11\xe0"  # begins files of Office before 2007, and encrypted ones
_TYPES = (b"wordprocessingml", b"spreadsheetml", b"presentationml")
_MACROS = re.compile(rb"macroEnabled|vbaProject", re.IGNORECASE)
_DOCTYPE = re.compile(rb"<\0?!\0?D\0?O\0?C\0?T\0?Y\0?P\0?E")  # UTF-16 too
_ENTITY = re.compile(rb"<\0?!\0?E\0?N\0?T\0?I\0?T\0?Y")
_OVERLAP = 32  # bytes; longer than what is searched for
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@contextmanager
def open_archive(path: Path, damaged: str) -> Iterator[zipfile.ZipFile]:
    """An archive whose parts are no more, and no larger, than such files have. All of it is
    unpacked once. No part declares entities.

    path: the file.
    damaged: what messages say of a file that is no archive.

    Raises FormatError with the reason where the file is not to be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            for name in _parts_with(_ENTITY, archive, path):
                raise FormatError(f"{path}: {name} declares entities")
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise FormatError(f"{path}: {damaged}: {error}") from error
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error


def check_archive(path: Path) -> None:
    """Checks that a file of Office can be read safely.

    path: the file.

    Raises FormatError with the reason where it is not to be read."""
    try:
        with path.open("rb") as file:
            if file.read(4) == _OLD:
                raise FormatError(
                    "{file}: encrypted, or of Office before 2007; save it as .docx, .xlsx or "
                    ".pptx without a password",
                    file=str(path),
                )
        with zipfile.ZipFile(path) as archive:
            _check(archive, path)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise FormatError(
            "{file}: no file of Office, or a damaged one: {reason}",
            **{"file": str(path), "reason": str(error)},
        ) from error
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error


def _parts_with(pattern: re.Pattern[bytes], archive: zipfile.ZipFile, path: Path) -> list[str]:
    """The names of the parts in which a pattern is found. All of them are unpacked once."""
    parts = archive.infolist()
    if len(parts) > MAX_PARTS:
        raise FormatError(f"{path}: {len(parts):,} parts; allowed are {MAX_PARTS:,}")
    names = [part.filename for part in parts]
    if len({*names}) < len(names):
        raise FormatError(f"{path}: two of its parts have one name")
    remaining = min(MAX_UNPACKED, max(ALWAYS_ALLOWED, MAX_EXPANSION * path.stat().st_size))
    names_with_pattern = list[str]()
    for part in parts:
        if part.flag_bits & 1 or part.compress_type not in _METHODS:
            raise FormatError(f"{path}: {part.filename} is encrypted or packed in an unknown way")
        length, is_there = _unpacked(archive, part, remaining, pattern)
        remaining -= length
        if remaining < 0:
            raise FormatError(
                f"{path}: refused as a decompression bomb: it unpacks to more than "
                f"{MAX_EXPANSION} times its size, or {MAX_UNPACKED >> 20:,} MB"
            )
        if length != part.file_size:
            raise FormatError(f"{path}: damaged: {part.filename} is longer than it says")
        names_with_pattern += [part.filename] * is_there
    return names_with_pattern


def _check(archive: zipfile.ZipFile, path: Path) -> None:
    names = archive.namelist()
    if CONTENTS not in names:
        raise FormatError(f"{path}: no file of Office: it lacks {CONTENTS}")
    declared = _parts_with(_DOCTYPE, archive, path)
    if CONTENTS in declared:
        raise _with_type(path, CONTENTS)
    contents = archive.read(CONTENTS)
    if not any(kind in contents for kind in _TYPES):
        raise FormatError(f"{path}: no file of Word, Excel or PowerPoint")
    if _MACROS.search(contents) or any(_MACROS.search(name.encode()) for name in names):
        raise FormatError("{file}: it has macros; save it without them first", file=str(path))
    is_xml = _xml_parts(contents, path)
    for name in filter(is_xml, declared):
        raise _with_type(path, name)


def _unpacked(
    archive: zipfile.ZipFile, part: zipfile.ZipInfo, limit: int, pattern: re.Pattern[bytes]
) -> tuple[int, bool]:
    """The length of a part, and whether it has a pattern; stops where it is longer than
    `limit`."""
    whole = copy(part)
    whole.file_size = MAX_UNPACKED + BLOCK  # to its end, whatever length it says, as Java does
    tail, length, is_there = b"", 0, False
    with archive.open(whole) as stream:
        while length <= limit and (data := stream.read(BLOCK)):
            length += len(data)
            is_there = is_there or pattern.search(tail + data) is not None
            tail = data[-_OVERLAP:]
    return length, is_there


def _xml_parts(contents: bytes, path: Path) -> Callable[[str], bool]:
    """Says of a part by its name whether it is read as XML; one of no known type may be."""
    try:
        entries = list(fromstring(contents))
    except ParseError as error:
        raise FormatError(f"{path}: {CONTENTS}: broken XML: {error}") from error
    types = {
        (entry.get("PartName") or f".{entry.get('Extension')}").lower(): entry.get("ContentType")
        for entry in entries
    }

    def is_xml(name: str) -> bool:
        content_type = types.get(f"/{name}".lower()) or types.get(
            PurePosixPath(name).suffix.lower()
        )
        return content_type is None or content_type.endswith("xml")

    return is_xml


def _with_type(path: Path, name: str) -> FormatError:
    return FormatError(f"{path}: {name} has a document type declaration")
