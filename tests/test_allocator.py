"""What the C library keeps of freed memory."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT, TESTS

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


BATCHES = """
import ctypes, sys
from tmnmt.allocator import give_back, keep_freed
from test_allocator import MB, resident
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
libc.malloc.argtypes = [ctypes.c_size_t]
if sys.argv[1] == "keep":
    keep_freed()
before = resident()
block = libc.malloc(100 * MB)
ctypes.memset(block, 1, 100 * MB)
libc.free(block)
freed = resident()
give_back()
print(freed - before, resident() - before)
"""


@pytest.mark.parametrize(("how", "kept"), [("keep", 100), ("as it is", 0)])
def test_large_blocks_stay_until_they_are_given_back(how: str, kept: int) -> None:
    shown = subprocess.run(
        [sys.executable, "-c", BATCHES, how],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(TESTS)])},
        capture_output=True,
        text=True,
        check=True,
    )
    freed, given = map(float, shown.stdout.split())
    assert abs(freed - kept) < 10 and given < 10


MODELS = """
import ctypes, sys
from tmnmt.allocator import map_large
from test_allocator import MB, resident
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
libc.malloc.argtypes = [ctypes.c_size_t]
if sys.argv[1] == "map":
    map_large()
libc.free(libc.malloc(30 * MB))
before = resident()
block, behind = libc.malloc(20 * MB), libc.malloc(MB)
ctypes.memset(block, 1, 20 * MB)
libc.free(block)
print(resident() - before)
"""


@pytest.mark.parametrize(("how", "kept"), [("map", 0), ("as it is", 20)])
def test_large_blocks_go_back_where_glibc_would_have_learned_to_keep_them(
    how: str, kept: int
) -> None:
    """A block of 30 MB that is freed makes it keep those that are smaller."""
    shown = subprocess.run(
        [sys.executable, "-c", MODELS, how],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(TESTS)])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert abs(float(shown.stdout) - kept) < 5
