"""What a DOCX, XLSX or PPTX must be like before anything reads what is in it.

It comes from anywhere: one that unpacks to more than such files do, holds macros, or declares
document types, which could have entities, is refused. All of it is unpacked once, to nowhere: what
an archive says of its sizes need not be true."""

from __future__ import annotations

import re
import zipfile
import zlib
from copy import copy
from pathlib import Path

from tmnmt.errors import FormatError
from tmnmt.formats.stream import ALWAYS_ALLOWED, BLOCK, MAX_EXPANSION

MAX_PARTS = 20_000
MAX_UNPACKED = 1 << 30  # bytes
CONTENTS = "[Content_Types].xml"

_OLD = b"\xd0\xcf\x11\xe0"  # begins files of Office before 2007, and encrypted ones
_TYPES = (b"wordprocessingml", b"spreadsheetml", b"presentationml")
_MACROS = re.compile(rb"macroEnabled|vbaProject", re.IGNORECASE)
_DOCTYPE = re.compile(rb"<\0?!\0?D\0?O\0?C\0?T\0?Y\0?P\0?E")  # UTF-16 too
_OVERLAP = 32  # bytes; longer than what is searched for
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def check_archive(path: Path) -> None:
    """Raises FormatError with the reason where the file is not to be read."""
    try:
        with path.open("rb") as file:
            if file.read(4) == _OLD:
                raise FormatError(
                    f"{path}: encrypted, or of Office before 2007; save it as .docx, .xlsx or "
                    ".pptx without a password"
                )
        with zipfile.ZipFile(path) as archive:
            _check(archive, path)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise FormatError(f"{path}: no file of Office, or a damaged one: {error}") from error
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error


def _check(archive: zipfile.ZipFile, path: Path) -> None:
    parts = archive.infolist()
    if len(parts) > MAX_PARTS:
        raise FormatError(f"{path}: {len(parts):,} parts; allowed are {MAX_PARTS:,}")
    names = [part.filename for part in parts]
    if len({*names}) < len(names):
        raise FormatError(f"{path}: two of its parts have one name")
    allowed = min(MAX_UNPACKED, max(ALWAYS_ALLOWED, MAX_EXPANSION * path.stat().st_size))
    unpacked = 0
    for part in parts:
        if part.flag_bits & 1 or part.compress_type not in _METHODS:
            raise FormatError(f"{path}: {part.filename} is encrypted or packed in an unknown way")
        if _MACROS.search(part.filename.encode()):
            raise _with_macros(path)
        before, length = b"", 0
        with archive.open(_all_of(part)) as stream:
            while data := stream.read(BLOCK):
                length += len(data)
                if unpacked + length > allowed:
                    raise FormatError(
                        f"{path}: refused as a decompression bomb: it unpacks to more than "
                        f"{MAX_EXPANSION} times its size, or {MAX_UNPACKED >> 20:,} MB"
                    )
                if _DOCTYPE.search(before + data):
                    raise FormatError(f"{path}: {part.filename} has a document type declaration")
                before = data[-_OVERLAP:]
        if length != part.file_size:
            raise FormatError(f"{path}: damaged: {part.filename} is longer than it says")
        unpacked += length
    if CONTENTS not in names:
        raise FormatError(f"{path}: no file of Office: it lacks {CONTENTS}")
    contents = archive.read(CONTENTS)
    if not any(kind in contents for kind in _TYPES):
        raise FormatError(f"{path}: no file of Word, Excel or PowerPoint")
    if _MACROS.search(contents):
        raise _with_macros(path)


def _all_of(part: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """The part, to be unpacked to its end, whatever length it says, as Java does."""
    whole = copy(part)
    whole.file_size = MAX_UNPACKED + BLOCK
    return whole


def _with_macros(path: Path) -> FormatError:
    return FormatError(f"{path}: it has macros; save it without them first")
