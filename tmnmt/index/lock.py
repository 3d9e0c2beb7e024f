"""One writer: a lock on a folder that ends with its holder, however that ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tmnmt.errors import LockedError, MemoryIndexError

LOCK_FILE = ".lock"


@contextmanager
def writing(folder: Path, seconds: float) -> Iterator[None]:
    """Holds the right to write to `folder`. Raises LockedError with the holder's pid after waiting `seconds`."""
    try:
        handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise MemoryIndexError(f"{folder}: cannot be written to: {error.strerror}") from error
    try:
        _take(handle, folder, time.monotonic() + seconds)
        _check_there(handle, folder)
        _sign(handle, folder)
        yield
    finally:
        os.close(handle)  # the kernel gives the lock back, as it does when the holder is killed


def _check_there(handle: int, folder: Path) -> None:
    """Raises LockedError where the lock went away with an index that was not finished: it locks nothing any more."""
    if not os.fstat(handle).st_nlink:
        raise LockedError(f"{folder}: the process that was building this index gave up; try again")


def _sign(handle: int, folder: Path) -> None:
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
    except OSError as error:
        raise MemoryIndexError(f"{folder}: nothing was changed: {error.strerror}") from error


def _take(handle: int, folder: Path, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                holder = os.pread(handle, 20, 0).decode() or "unknown"
                message = f"{folder}: process {holder} is writing to it; try again when it has ended"
                raise LockedError(message) from None
        time.sleep(0.02)
