"""What the C library keeps of freed memory."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from tmnmt.allocator import give_back

MB = 1_000_000


def resident() -> float:
    """MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MB


def test_freed_memory_goes_back_to_the_system() -> None:
    """Blocks too small to be mapped on their own, with one behind them that stays."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    libc.malloc.argtypes = [ctypes.c_size_t]
    give_back()
    before = resident()
    blocks = [libc.malloc(100_000) for _ in range(1_000)]
    for block in blocks:
        ctypes.memset(block, 1, 100_000)
    for block in blocks[:-1]:
        libc.free(block)
    assert resident() > before + 90, "glibc gives it back on its own: is it still needed?"
    give_back()
    assert resident() < before + 30
    libc.free(blocks[-1])
