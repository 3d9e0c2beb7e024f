"""Freed memory that the C library keeps is given back to the system.

glibc keeps what a thread has freed for the next request of that thread. With tensors of all sizes
in several threads it kept some 200 MB, and more every minute (`benchmarks/serve_load.py`)."""

from __future__ import annotations

import ctypes
import sys

EVERY = 60.0  # seconds: it takes a few milliseconds, in which no thread of the server gets memory


def give_back() -> None:
    """Nothing where the C library is another one, which has no such call."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
