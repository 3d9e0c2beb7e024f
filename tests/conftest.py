"""What every test and every process that a test starts find: one thread for torch, temporary files
in memory, and Ctrl-C and SIGHUP that are heard.

The tests' tensors are tiny: on a busy machine two threads wait for each other, and some tests take
twenty times longer. A shell starts what goes in the background with Ctrl-C ignored, and nohup what
it starts with SIGHUP; so would be what these start in their turn. The smallest index is put on disk
by forty calls of fsync, each of which may wait for some milliseconds; in memory none waits."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from required import absent, required

if TYPE_CHECKING:
    from browser import Browser
    from elastic_server import Running
    from firefox import Firefox
    from scheduling import LongestFirst

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["TMNMT_HUNSPELL"] = ""  # what is found in translations must not depend on the machine
settings.register_profile("no deadline", deadline=None)  # a busy machine is no failure
settings.load_profile("no deadline")

SEED = os.environ.get("TMNMT_SEED") or str(
    secrets.randbelow(10**6)
)  # of what tests draw without a seed of their own


MEMORY = Path("/dev/shm")
FREE_MEMORY = 4 * 10**9  # bytes that must be free there


def pytest_configure(config: pytest.Config) -> None:
    required()
    is_large = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= FREE_MEMORY
    if "TMPDIR" not in os.environ and is_large:
        folder = Path(tempfile.mkdtemp(prefix="tests-", dir=MEMORY))
        folder.chmod(0o711)  # Elasticsearch runs as another user
        os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFirst | None:
    """Where several processes run the tests, and each has whole files."""
    if config.getoption("dist") != "loadfile":
        return None
    from scheduling import LongestFirst

    return LongestFirst(config, log)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Packed bytes are named by their number: they hold the time of packing, and processes that
    share the tests have to name them alike."""
    return f"{len(val)} bytes" if isinstance(val, bytes) and not val.isascii() else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Seeds what a test draws from: by its own name, so that it draws the same alone and among
    others."""
    random.seed(f"{SEED} {item.nodeid}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With the seed, where a test has failed."""
    report = yield
    if report.failed:
        report.sections.append(("Seed", f"TMNMT_SEED={SEED} draws the same again"))
    return report


@pytest.fixture(scope="session")
def server() -> Iterator[Running]:
    """One Elasticsearch for all tests that need it (see `required.py`)."""
    from elastic_server import running

    with running() as started:
        yield started


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of pages (see `required.py`)."""
    from browser import INSTALL, browsing, chromium

    if chromium() is None:
        absent("browser", f"no Chromium is installed: {INSTALL}")
    with browsing() as opened:
        yield opened


@pytest.fixture(scope="session")
def firefox() -> Iterator[Firefox]:
    """One Firefox for all tests that need it (see `required.py`)."""
    from firefox import INSTALL, browsing, firefox

    if firefox() is None:
        absent("firefox", f"no Firefox is installed: {INSTALL}")
    with browsing() as opened:
        yield opened
