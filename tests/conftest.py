"""What every test and every process that a test starts find: one thread for torch, and Ctrl-C that is heard.

The tests' tensors are tiny: on a busy machine two threads wait for each other, and some tests take twenty times longer.
A shell starts what goes in the background with Ctrl-C ignored, and so would be what that starts in its turn.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from browser import Browser
    from elastic_server import Running

signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("OMP_NUM_THREADS", "1")
settings.register_profile("no deadline", deadline=None)  # a busy machine is no failure
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    """One Elasticsearch for all tests that need it; they are skipped where it cannot run."""
    from elastic_server import running

    with running() as started:
        yield started


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of pages; they are skipped where none is installed."""
    from browser import INSTALL, browsing, chromium

    if chromium() is None:
        pytest.skip(f"no Chromium is installed: {INSTALL}")
    with browsing() as opened:
        yield opened
