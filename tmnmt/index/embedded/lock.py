"""One writer: a lock on a folder that ends with its holder, however that ends."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tmnmt.errors import LockedError, MemoryIndexError
from tmnmt.system import is_regular, open_file, read_at, take_lock, write_at

LOCK_FILE = ".lock"


@contextmanager
def writing(folder: Path, seconds: float) -> Iterator[None]:
    """Holds the right to write to a folder.

    folder: the folder.
    seconds: how long another writer is waited for.

    Raises LockedError with the process id of the other writer. Raises MemoryIndexError where nobody
    can write to the folder."""
    try:
        handle = open_file(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise MemoryIndexError(
                f"{folder / LOCK_FILE}: is a link, which no lock may be; remove it"
            ) from error
        raise MemoryIndexError(f"{folder}: cannot be written to: {error.strerror}") from error
    try:
        if not is_regular(handle):
            raise MemoryIndexError(
                f"{folder / LOCK_FILE}: is no file, which a lock must be; remove it"
            )
        _take(handle, folder, time.monotonic() + seconds)
        _check_there(handle, folder)
        _sign(handle, folder)
        yield
    finally:
        os.close(handle)  # the kernel gives the lock back, as it does when the holder is killed


def _check_there(handle: int, folder: Path) -> None:
    """Raises LockedError where the lock that was waited for is no more that of `folder`: it went
    with a folder that was set aside, or with an index that was not finished. It locks nothing any
    more."""
    try:
        status = (folder / LOCK_FILE).lstat()
    except FileNotFoundError:
        status = None
    if status is None or not os.path.samestat(status, os.fstat(handle)):
        raise LockedError(
            f"{folder}: another process gave it up or set it aside just now; try again"
        )


def _sign(handle: int, folder: Path) -> None:
    try:
        os.ftruncate(handle, 0)
        write_at(handle, str(os.getpid()).encode(), 0)
    except OSError as error:
        raise MemoryIndexError(f"{folder}: nothing was changed: {error.strerror}") from error


def _take(handle: int, folder: Path, deadline: float) -> None:
    while not take_lock(handle, waits=False):
        if time.monotonic() >= deadline:
            holder = read_at(handle, 20, 0).decode() or "unknown"
            raise LockedError(
                f"{folder}: process {holder} is writing to it; try again when it has ended"
            )
        time.sleep(0.02)
