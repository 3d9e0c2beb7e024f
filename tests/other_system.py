"""Runs a program as on a system that is not POSIX: `python other_system.py -c CODE` or `-m MODULE`.

What Windows does not have is taken away before tmnmt is imported: modules such as fcntl, functions
and flags of os, and signals. A lock of bytes, as its module msvcrt has it, is put in. Other
packages are imported before that: theirs are those of this system."""

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
from typing import Any

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "syslog")
OF_OS = (
    *("O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "O_NOATIME"),
    *("pread", "pwrite", "preadv", "pwritev", "fchmod", "fchown", "chown", "fork", "forkpty"),
    *("getuid", "geteuid", "getgid", "sched_getaffinity", "posix_fadvise", "killpg", "setsid"),
    *("sync", "mkfifo", "getloadavg", "sendfile", "statvfs", "fchdir", "uname"),
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


def take_away() -> None:
    """From here on none of that is there."""
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

    select.select = sockets_alone


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
