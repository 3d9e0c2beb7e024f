"""Compiled code: its decorator, and the notice that the first use on a machine compiles it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])

FAST = ("nnan", "nsz", "arcp", "contract", "reassoc")
_NO_CONTEXT = nullcontext()
_ready_labels: set[str] = set()
_first_use = threading.Lock()
log = logging.getLogger(__name__)


def compiled(function: Function) -> Function:
    """Machine code that runs without Python's lock, compiled at its first use and kept for later
    processes."""
    import numba

    return cast(Function, numba.njit(cache=True, nogil=True)(function))


def inner(function: Function) -> Function:
    """For what is small and called by compiled code: it is put into its callers before numba looks
    at types, which costs numba time that grows with the square of what is put in."""
    import numba

    return cast(Function, cast(Any, numba.njit)(inline="always", nogil=True, _nrt=False)(function))


def part(
    function: Function, *, called_often: bool = False, liberties: Collection[str] = ()
) -> Function:
    """For what is larger and called by `inner` functions or kept machine code (`native.py`) only:
    it can allocate nothing, and so counts no references to arrays, which would take longer than its
    work. Python cannot call it, for what makes that possible takes longer to compile than it
    does. `liberties`: with arithmetic, as LLVM names them."""
    import numba

    return cast(
        Function,
        cast(Any, numba.njit)(
            nogil=True,
            error_model="numpy",
            forceinline=called_often,
            fastmath=set(liberties),
            _nrt=False,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
        )(function),
    )


def hot(function: Function) -> Function:
    """A part that is called for every block or candidate: LLVM puts it into its caller, since to
    pass it so many arrays takes a tenth of the time of a search."""
    return part(function, called_often=True)


def fast(function: Function) -> Function:
    """A hot part whose sums may be made in any order, and whose numbers are never NaN."""
    return part(function, called_often=True, liberties=FAST)


def announced(label: str) -> AbstractContextManager[None]:
    """Around the use of compiled code: the first one of a process says so on the log where numba
    has to compile it, and others wait for it."""
    return _NO_CONTEXT if label in _ready_labels else _announced(label)


@contextmanager
def _announced(label: str) -> Iterator[None]:
    from numba.core import event

    class Notice(event.Listener):
        is_announced = False

        def on_start(self, _: object) -> None:
            if not self.is_announced:  # every function is an event
                log.info("compiling the %s, once on this machine; some 20 s ...", label)
            self.is_announced = True

        def on_end(self, _: object) -> None:
            pass

    with _first_use, event.install_listener("numba:compile", Notice()):
        yield
        _ready_labels.add(label)
