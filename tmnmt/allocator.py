"""What the C library does with freed memory: keeps it for the next request, or gives it back to the
system.

glibc keeps small blocks and gives large ones back. Both can be wrong. With tensors of all sizes in
several threads a server kept some 200 MB, and more every minute (`benchmarks/serve_load.py`); a
training of a Transformer kept 6 GB after 8 minutes. A batch's tensors, on the other hand, are of
the size of the batch before: to get them anew from the system, page by page, took a tenth of a
training's time, and a twentieth to a fifth of that of translating in batches."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

INTERVAL = 60.0  # seconds, of a server: it takes a few milliseconds, in which no thread gets memory


# parameters of mallopt, from glibc's malloc.h: the free memory above which the end of the heap is
# given back, and the size from which a block is mapped on its own
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
THRESHOLD = 1 << 30  # bytes
LARGE = 1 << 17  # bytes: glibc's own MMAP_THRESHOLD, which it raises with what is freed


def map_large() -> None:
    """From here on every large block is mapped on its own, until `keep_freed`: it goes back when it
    is freed, and a part of it that is never written to takes no memory. For a process that loads a
    model: fbgemm takes twice the memory that it fills, and a table of words is filled at need.
    Nothing where the C library has no such call."""
    mallopt = _of_libc("mallopt")
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, LARGE)


def keep_freed() -> None:
    """From here on large blocks are kept, too, until `give_back`. For a process that computes batch
    after batch, and whose memory is its own. Nothing where the C library has no such call."""
    mallopt = _of_libc("mallopt")
    if mallopt is not None:
        mallopt(MMAP_THRESHOLD, THRESHOLD)
        mallopt(TRIM_THRESHOLD, THRESHOLD)


def give_back() -> None:
    """Nothing where the C library is another one, which has no such call."""
    trim = _of_libc("malloc_trim")
    if trim is not None:
        trim(0)


def _of_libc(name: str) -> Callable[..., int] | None:
    """glibc's function, on Linux."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
