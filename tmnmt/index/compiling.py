"""Compiled code: its decorator, and the notice that the first use on a machine takes longer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])
SECONDS = 1.5  # loading compiled code takes half a second; only compiling takes longer

_used: set[str] = set()
_first_use = threading.Lock()
log = logging.getLogger(__name__)


def compiled(function: Function) -> Function:
    """Machine code that runs without Python's lock, compiled at its first use and kept for later processes."""
    import numba

    return cast(Function, numba.njit(cache=True, nogil=True)(function))


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Around the use of compiled code: the first one of a process says so on the log when it takes long, and
    others wait for it."""
    if what in _used:
        yield
        return
    with _first_use:
        notice = threading.Timer(
            SECONDS, log.info, [f"loading the {what}; its first use on a machine compiles it, some 20 s ..."]
        )
        notice.daemon = True
        notice.start()
        try:
            yield
        finally:
            notice.cancel()
        _used.add(what)
