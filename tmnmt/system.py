"""Calls of the operating system that Linux, macOS and Windows have under other names, or lack.

Everything else in the package calls these, and asks nowhere on which system it runs."""

from __future__ import annotations

import errno
import os
import select
import signal
import stat
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

with suppress(ImportError):  # which Windows has not
    import fcntl

_HAS_FCNTL = "fcntl" in globals()
IS_WINDOWS = sys.platform == "win32"
MOVES_OPEN_FILES = not IS_WINDOWS  # whether a folder can be renamed while a file in it is open
SECONDS_IN_USE = 2.0  # how long Windows is asked again for a file that another program has open
# Bytes stay as they are, and other programs do not get the handle.
_ALWAYS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # a flag for `open_file`: not even for who writes to a pipe
_FOLDER = getattr(os, "O_DIRECTORY", 0)
_BLOCK = 1 << 20  # bytes of a file that are read and written at a time
_LOCKED_BYTE = 1 << 30  # of a file that is locked on Windows
# what a folder answers that its file system, or its mode, cannot put on disk
_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)
# what a byte answers on Windows that another program has locked; under Wine nothing is said of why
_LOCK_REFUSALS = (errno.EACCES, getattr(errno, "EDEADLOCK", errno.EDEADLK), 0)
# signals that end a program, by name, as far as the system has them
ENDING_SIGNALS = {
    name: getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
}


def open_file(path: str | Path, flags: int, mode: int = 0o666, follows: bool = False) -> int:
    """Opens a file as `os.open` does, and returns its handle. Its content is bytes, and programs
    that are started do not get the handle.

    path: the file.
    flags: how it is opened, such as os.O_RDWR | os.O_CREAT.
    mode: the mode of a new file, less what the umask takes.
    follows: whether the path may be a link.

    Raises OSError, with ELOOP for a link."""
    if not follows and not _NO_LINK and Path(path).is_symlink():
        raise OSError(errno.ELOOP, "is a link", str(path))
    return os.open(path, flags | _ALWAYS | (0 if follows else _NO_LINK), mode)


def read_at(handle: int, size: int, offset: int) -> bytes:
    """Bytes of a file, fewer where it ends before.

    handle: the file.
    size: how many bytes.
    offset: where they begin."""
    if hasattr(os, "pread"):
        return os.pread(handle, size, offset)
    os.lseek(handle, offset, os.SEEK_SET)
    return os.read(handle, size)


def write_at(handle: int, content: bytes | memoryview, offset: int) -> int:
    """Writes bytes into a file. Returns how many were written, which may be fewer.

    handle: the file.
    content: the bytes.
    offset: where they begin."""
    if hasattr(os, "pwrite"):
        return os.pwrite(handle, content, offset)
    os.lseek(handle, offset, os.SEEK_SET)
    return os.write(handle, content)


def reserve(handle: int, size: int) -> None:
    """Takes the room on disk that a file needs, whose content stays. Without that, writing to a
    mapped file ends the process where the disk is full.

    handle: the file, open for reading and writing.
    size: its size in bytes.

    Raises OSError where there is no room."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
        return
    for offset in range(0, size, _BLOCK):
        content = read_at(handle, min(_BLOCK, size - offset), offset)
        if write_at(handle, content, offset) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def flush(handle: int) -> None:
    """Puts the content of an open file on disk. On macOS fsync leaves it in the disk's memory.

    handle: the file, open for writing where the system is Windows."""
    if _HAS_FCNTL and sys.platform == "darwin":
        with suppress(OSError):  # of a file system that cannot do it
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
            return
    os.fsync(handle)


def flush_file(path: Path) -> None:
    """Puts the content of a file on disk.

    path: the file."""
    handle = open_file(path, os.O_RDWR if IS_WINDOWS else os.O_RDONLY, follows=True)
    try:
        flush(handle)
    finally:
        os.close(handle)


def flush_folder(folder: Path) -> None:
    """Puts the names in a folder on disk, where the system and the file system can do that.

    folder: the folder."""
    if not _FOLDER:
        return
    try:
        handle = open_file(folder, os.O_RDONLY | _FOLDER, follows=True)
    except PermissionError:
        return
    try:
        flush(handle)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(handle)


def set_mode(handle: int, mode: int) -> None:
    """Gives an open file a mode, where files have modes.

    handle: the file.
    mode: the mode."""
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)


def rename(path: Path, target: Path) -> None:
    """Gives a file or folder another name, in the place of what has it. Windows refuses that while
    a program has the other file open, so there it is tried again for a while.

    path: the file or folder.
    target: its new path."""
    deadline = time.monotonic() + SECONDS_IN_USE
    while True:
        try:
            path.replace(target)
            return
        except PermissionError:
            if not IS_WINDOWS or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def take_lock(handle: int, waits: bool) -> bool:
    """Takes the lock of an open file, which ends with the handle or with the process. Returns
    whether it was taken.

    handle: the file.
    waits: whether to wait until it can be taken.

    Raises OSError where the file system has no locks."""
    if not _HAS_FCNTL:
        return _take_byte(handle, waits)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _take_byte(handle: int, waits: bool) -> bool:
    """The same on Windows, which locks bytes: one far behind the content, so that others can read
    that."""
    msvcrt: Any = import_module("msvcrt")
    while True:
        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            return True
        except OSError as error:
            if error.errno not in _LOCK_REFUSALS:
                raise
        if not waits:
            return False
        time.sleep(0.02)


def is_regular(handle: int) -> bool:
    """Whether an open file is a regular one.

    handle: the file."""
    return stat.S_ISREG(os.fstat(handle).st_mode)


def has_more(stream: IO[bytes]) -> bool:
    """Whether more can be read from a pipe or a terminal at once. Windows does not say so of a
    pipe: there it is False.

    stream: the pipe or the terminal."""
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except OSError:
        return False


def send_to_thread(thread: int, number: int) -> None:
    """Sends a signal to a thread of this process, or to the process where threads get none.

    thread: the thread.
    number: the signal."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(thread, number)
    else:
        signal.raise_signal(number)
