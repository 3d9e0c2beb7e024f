"""Ctrl-C, SIGTERM and SIGHUP as exceptions, which are not lost in code that takes none.

Modules that are being imported often do not survive one: there the program ends at once. What
compiled code calls back (through ctypes, by llvmlite; `__del__`) drops one: the signal is sent
again, until control is elsewhere."""

from __future__ import annotations

import _thread
import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

from tmnmt.system import ENDING_SIGNALS, send_to_thread

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130
TERMINATED = 128 + 15
HUNG_UP = 128 + 1
STOPPED = "interrupted: stopped before the end"
SECONDS_TO_RESEND = 0.001
_waiting: list[
    list[int]
] = []  # of every `uninterrupted` that has not ended: signals that came meanwhile
_finished: list[bool] = []  # not empty: the work is done


class Terminated(KeyboardInterrupt):
    """SIGTERM leaves what Ctrl-C leaves."""


class HungUp(KeyboardInterrupt):
    """SIGHUP, of a terminal that is gone, leaves what Ctrl-C leaves."""


def exit_code(stop: KeyboardInterrupt) -> int:
    """The exit code of a program that was stopped.

    stop: what has stopped it."""
    return next((code for kind, code in _SIGNALS.values() if type(stop) is kind), INTERRUPTED)


def install() -> None:
    """From now on these signals raise; one that was ignored (as behind nohup) stays ignored."""
    if _stop is not signal.getsignal(signal.SIGINT):
        # first, hence called last: then Python gives up its handlers, and a signal would kill
        atexit.register(_ignore)
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    sys.unraisablehook = _handle_unraisable


def mark_finished() -> None:
    """The work is done and told: from now on a signal ends the process at once, with its own exit
    code."""
    _finished.append(True)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """These signals wait until the end of the block, which they do not divide; also where `install`
    was not called."""
    came: list[int] = []
    _waiting.append(came)
    plain = threading.current_thread() is threading.main_thread()
    plain = plain and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if plain:
        signal.signal(signal.SIGINT, _stop)
    try:
        yield
    finally:
        _waiting[:] = [pending for pending in _waiting if pending is not came]
        if plain:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in came[:1]:
        signal.raise_signal(number)


# what each raises, and the exit code of a program that it ends
_BY_NAME: dict[str, tuple[type[KeyboardInterrupt], int]] = {
    "SIGINT": (KeyboardInterrupt, INTERRUPTED),
    "SIGTERM": (Terminated, TERMINATED),
    "SIGHUP": (HungUp, HUNG_UP),
}
_SIGNALS = {number: _BY_NAME[name] for name, number in ENDING_SIGNALS.items()}


def _stop(number: int, frame: FrameType | None) -> None:
    kind, code = _SIGNALS[number]
    if _finished:
        os._exit(code)
    if _waiting:
        return _waiting[-1].append(number)
    if _importing(frame):
        _leave(code)
    if _called_back(frame):
        return _send_again(number)
    raise kind


def _importing(frame: FrameType | None) -> bool:
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _called_back(frame: FrameType | None) -> bool:
    """Within llvmlite, which needs its callbacks to be run to the end; or where a lost exception is
    dealt with."""
    while frame is not None and frame.f_code is not _handle_unraisable.__code__:
        if frame.f_globals.get("__name__", "").startswith("llvmlite.binding"):
            return True
        frame = frame.f_back
    return frame is not None


def _handle_unraisable(args: UnraisableHookArgs) -> None:
    if isinstance(args.exc_value, KeyboardInterrupt):
        raised = type(args.exc_value)
        numbers = (number for number, (kind, _) in _SIGNALS.items() if kind is raised)
        _send_again(next(numbers, signal.SIGINT))
    else:
        sys.__unraisablehook__(args)


def _send_again(number: int) -> None:
    # From a bare thread: a `Thread` takes locks that the interrupted code may hold.
    _thread.start_new_thread(_send_later, (number, _thread.get_ident()))


def _send_later(number: int, thread: int) -> None:
    time.sleep(SECONDS_TO_RESEND)
    send_to_thread(thread, number)


def _ignore() -> None:
    for number in _SIGNALS:
        if signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_IGN)


def _leave(code: int) -> None:
    # Not by an exception: compiled modules that are being initialised swallow it, or abort.
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    with contextlib.suppress(OSError):  # of a terminal that is gone
        os.write(2, f"{STOPPED}\n".encode())
    os._exit(code)
