"""Ctrl-C and SIGTERM as exceptions, except while modules are being imported: many of them do not survive one."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130
TERMINATED = 128 + 15
STOPPED = "interrupted: stopped before the end"


class Terminated(KeyboardInterrupt):
    """SIGTERM leaves what Ctrl-C leaves."""


def install() -> None:
    """From now on both signals raise; one that was ignored (as behind nohup) stays ignored."""
    for number, handler in ((signal.SIGINT, _interrupt), (signal.SIGTERM, _terminate)):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _importing(frame):
        _leave(INTERRUPTED)
    raise KeyboardInterrupt


def _terminate(number: int, frame: FrameType | None) -> None:
    if _importing(frame):
        _leave(TERMINATED)
    raise Terminated


def _importing(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _leave(code: int) -> None:
    # Not by an exception: compiled modules that are being initialised swallow it, or abort.
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os.write(2, f"{STOPPED}\n".encode())
    os._exit(code)
