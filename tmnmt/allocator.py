"""Freed memory that the C library keeps is given back to the system.

glibc keeps what was freed for the next request. With tensors of all sizes in several threads a
server kept some 200 MB, and more every minute (`benchmarks/serve_load.py`). A training of a
Transformer kept 6 GB after 8 minutes."""

from __future__ import annotations

import ctypes
import sys

EVERY = 60.0  # seconds, of a server: it takes a few milliseconds, in which no thread gets memory


def give_back() -> None:
    """Nothing where the C library is another one, which has no such call."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
