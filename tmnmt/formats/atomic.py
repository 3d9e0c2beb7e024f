"""A file that is either the old one or the whole new one, never half of it."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from tmnmt.errors import FormatError

REPORT_EVERY = 1000  # units between two calls of a writer's progress


@dataclass(frozen=True, slots=True)
class Written:
    """What a writer did: segments written, and texts that had to lose characters which the format cannot hold."""

    segments: int
    cleaned: int


@contextmanager
def writing(path: Path, keep_interrupted: bool = False) -> Iterator[TextIO]:
    """A UTF-8 text file that takes the place of `path` when the block ends well; .gz and .xz are packed by their name.

    It is written beside `path`, synced and renamed; when the block fails nothing is left and `path` is as it was.
    `keep_interrupted`: on Ctrl-C what was written so far is kept as PATH.partial.
    FormatError when the folder cannot be written to. The same text always gives the same bytes.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {error.strerror}") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as raw:
            with _packed(raw, path.name) as packed:
                text = io.TextIOWrapper(packed, encoding="utf-8", newline="")
                try:
                    yield text
                finally:
                    text.detach()
            raw.flush()
            os.fsync(raw.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except KeyboardInterrupt:
        if keep_interrupted:
            temporary.replace(partial_of(path))
        raise
    except OSError as error:
        raise FormatError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def partial_of(path: Path) -> Path:
    """Where an interrupted writing of `path` keeps what it has."""
    return path.with_name(f"{path.name}.partial")


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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
