"""Runs a program as on a system that is not POSIX: `python other_system.py -c CODE` or `-m MODULE`.

What Windows does not have is taken away before tmnmt is imported: modules such as fcntl, functions
and flags of os, and signals. What it refuses is refused: fsync of a file that is open for reading
alone, and deleting and renaming files that this process has open or mapped. A lock of bytes, as its
module msvcrt has it, is put in. Other packages are imported before that: theirs are those of this
system."""

from __future__ import annotations

import errno
import importlib
import importlib.abc
import os
import runpy
import select
import signal
import sys
import types
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "syslog")
OF_OS = (
    *("O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "O_NOATIME"),
    *("pread", "pwrite", "preadv", "pwritev", "fchmod", "fchown", "chown", "fork", "forkpty"),
    *("getuid", "geteuid", "getgid", "sched_getaffinity", "posix_fadvise", "killpg", "setsid"),
    *("posix_fallocate", "sync", "mkfifo", "getloadavg", "sendfile", "statvfs", "fchdir", "uname"),
)
SIGNALS = ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGCONT")
PACKAGES = (
    *("numpy", "torch", "numba", "llvmlite.binding", "lxml.etree", "sentencepiece", "rapidfuzz"),
    *("typer", "rich.progress", "safetensors.torch", "subprocess"),
)
VARIABLE = "OTHER_PACKAGES"  # of the environment: names of more packages, with blanks between them
OF_SIGNAL = ("pthread_kill", "pthread_sigmask", "setitimer", "alarm", "pause", "siginterrupt")


class _Refusing(importlib.abc.MetaPathFinder):
    """Finds that the modules are not there."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _locking() -> types.ModuleType:
    """The module msvcrt, as far as it locks."""
    import fcntl

    module: Any = types.ModuleType("msvcrt")
    module.LK_NBLCK = 2

    def locking(handle: int, mode: int, size: int) -> None:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, size, 0, os.SEEK_CUR)
        except OSError as error:
            raise PermissionError(errno.EACCES, "Permission denied") from error

    module.locking = locking
    return module


def _in_use(*paths: Any) -> str | None:
    """The first of these files, or of the files in these folders, that this process has open or
    mapped."""
    maps = [line.split(maxsplit=5)[5:] for line in Path("/proc/self/maps").read_text().splitlines()]
    used = {name for names in maps for name in names}
    for handle in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            used.add(str(handle.readlink()))
    for path in map(os.path.realpath, paths):
        for name in used:
            if name == path or name.startswith(f"{path}{os.sep}"):
                return name
    return None


def of_unused(change: Any) -> Any:
    """A function of os that deletes or renames, which refuses files that this process has open or
    mapped."""

    def refusing(path: Any, *others: Any, **options: Any) -> Any:
        if not options.get("dir_fd") and (used := _in_use(path, *others)):
            raise PermissionError(errno.EACCES, "in use by this process", used)
        return change(path, *others, **options)

    return refusing


def take_away() -> None:
    """From here on none of that is there, no file is put on disk that was opened for reading
    alone, and none is deleted or renamed that is open."""
    import fcntl

    flags, read_flags = fcntl.fcntl, fcntl.F_GETFL
    for name in (*PACKAGES, *os.environ.get(VARIABLE, "").split()):
        with suppress(ImportError):
            importlib.import_module(name)
    sys.modules["msvcrt"] = _locking()
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Refusing())
    for module, names in ((os, OF_OS), (signal, (*SIGNALS, *OF_SIGNAL))):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)

    def sockets_alone(read: Any, write: Any, other: Any, timeout: float | None = None) -> Any:
        raise OSError(errno.ENOTSOCK, "not a socket")

    sync = os.fsync

    def sync_written(handle: Any) -> None:
        if flags(handle, read_flags) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        sync(handle)

    select.select = sockets_alone
    changes = ("unlink", "remove", "rename", "replace")
    refusing = {name: of_unused(getattr(os, name)) for name in changes}
    for name, function in {**refusing, "fsync": sync_written}.items():
        setattr(os, name, function)
    system: Any = importlib.import_module("tmnmt.system")
    system.IS_WINDOWS, system.MOVES_OPEN_FILES = True, False


def main() -> None:
    take_away()
    kind, what, *arguments = sys.argv[1:]
    if kind == "-c":
        sys.argv = ["-c", *arguments]
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = [what, *arguments]
        runpy.run_module(what, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
