"""A file that is either the old one or the whole new one, never half of it."""

from __future__ import annotations

import gzip
import io
import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from tmnmt.durable import new_beside, put_in_place
from tmnmt.errors import FormatError

REPORT_EVERY = 1000  # units between two calls of a writer's progress


@dataclass(frozen=True, slots=True)
class WriteReport:
    """What a writer did.

    segments: how many segments were written.
    cleaned: how many texts had to lose characters which the format cannot hold."""

    segments: int
    cleaned: int


@contextmanager
def writing(path: Path, keep_unfinished: bool = False) -> Iterator[TextIO]:
    """Gives a UTF-8 text file that takes the place of another when the block ends well; .gz and .xz
    are packed by their name.

    It is written beside `path` (or what that links to), synced and renamed; the mode of a file that
    is there stays. When the block fails nothing is left and `path` is as it was. What is there and
    no regular file (a device, a pipe) is written to as it is. The same text always gives the same
    bytes.

    path: the file whose place it takes.
    keep_unfinished: whether what was written until the block failed is kept as PATH.partial, which
    a note on the exception says. One of an earlier run is removed when the block ends well.

    Raises FormatError where the file cannot be written."""
    with writing_bytes(path, keep_unfinished) as packed, _text(packed) as text:
        yield text


@contextmanager
def writing_bytes(path: Path, keep_unfinished: bool = False) -> Iterator[BinaryIO]:
    """Gives a file of bytes that takes the place of another as with `writing`.

    path: the file whose place it takes.
    keep_unfinished: as in `writing`.

    Raises FormatError where the file cannot be written."""
    with _written_at_once(path) if _is_special(path) else _replacing(path, keep_unfinished) as raw:
        yield raw


def partial_of(path: Path) -> Path:
    """Where an unfinished writing of a file is kept.

    path: the file."""
    target = _target(path)
    return target.parent / f"{target.name}.partial"


@contextmanager
def _written_at_once(path: Path) -> Iterator[BinaryIO]:
    with _errors_named(path), path.open("wb") as raw, _packed(raw, path.name) as packed:
        yield packed


@contextmanager
def _replacing(path: Path, keep_unfinished: bool) -> Iterator[BinaryIO]:
    target = _target(path)
    is_begun = True
    with _errors_named(path):
        new = new_beside(target)
    try:
        with _errors_named(path):
            with os.fdopen(new.handle, "wb") as raw, _packed(raw, path.name) as packed:
                try:
                    yield packed
                finally:
                    is_begun = packed.tell() > 0
            put_in_place(new, target)
        if keep_unfinished:
            partial_of(path).unlink(missing_ok=True)
    except BaseException as error:
        if keep_unfinished and is_begun:
            put_in_place(new, partial_of(path))
            error.add_note(f"what was finished is in {partial_of(path)}")
        raise
    finally:
        new.path.unlink(missing_ok=True)


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextmanager
def _text(packed: BinaryIO) -> Iterator[TextIO]:
    text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
    try:
        yield text
    finally:
        text.detach()


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _target(path: Path) -> Path:
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextmanager
def _packed(raw: BinaryIO, name: str) -> Iterator[BinaryIO]:
    if name.lower().endswith(".gz"):
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
            yield cast(BinaryIO, packed)
    elif name.lower().endswith(".xz"):
        with lzma.LZMAFile(raw, "wb") as packed_xz:
            yield cast(BinaryIO, packed_xz)
    else:
        yield raw
