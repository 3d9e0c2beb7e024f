"""Documents by the workers of a real Ray cluster on this machine: its head listens on the loopback
alone, and wants a token."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from ray_head import SECONDS, Head
from required import absent
from tiny_model import PAIRS, segments, write_tiny_model

from tmnmt.batch.workers import SEGMENTS_OF_TASK
from tmnmt.cli import run
from tmnmt.index import build

TASKS = 12


def until(holds: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    """Waits; for what a process does, no longer than that runs."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    if find_spec("ray") is None or find_spec("grpc") is None:
        absent("ray", "Ray is not installed: pip install 'tmnmt[ray]'")
    if not sys.platform.startswith("linux"):
        absent("ray", "the processes of a cluster are found in /proc")
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # names of sockets have to be short
    head = Head(folder)
    try:
        yield head
    finally:
        head.end()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def folder(head: Head, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("ray")
    write_tiny_model(folder / "model")
    build(folder / "index", segments(), "en", "fr")
    ready = [src for src, _ in PAIRS * 20]  # which the memory has
    documents = (
        [*(f"It {number} {line}." for line in range(SEGMENTS_OF_TASK - len(ready))), *ready]
        for number in range(TASKS)
    )
    (folder / "in.txt").write_text("\n\n".join(map("\n".join, documents)) + "\n")
    head.wait()
    return folder


def command(folder: Path, output: str) -> list[str]:
    options = ["--model", "model", "--memory", "index", "--beam", "2", "--threads", "1"]
    return ["translate", *options, "in.txt", "--output", output]


def started(
    head: Head, folder: Path, output: str = "out.txt", version: str = ""
) -> subprocess.Popen[str]:
    """The command in a process of its own, with Ray of another version where one is given."""
    code = f"import ray; ray.__version__ = {version!r}; " if version else ""
    code += "from tmnmt.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *command(folder, output), "--workers", head.address],
        cwd=folder,
        env=head.environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def changed(path: Path) -> int:
    """When a file was written last; looking into it might lock it."""
    with suppress(FileNotFoundError):
        return path.stat().st_mtime_ns
    return 0


def finished(folder: Path) -> int:
    """How many tasks are on disk, where nobody works."""
    with closing(sqlite3.connect(folder / "out.txt.finished")) as database:
        return int(database.execute("SELECT count(*) FROM finished").fetchone()[0])


def test_neither_a_killed_worker_nor_a_killed_command_loses_anything(
    head: Head, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    kept = folder / "out.txt.finished"
    first = started(head, folder)
    try:
        until(lambda: changed(kept), first)
        made = changed(kept)  # and nothing is in it
        until(lambda: changed(kept) != made, first)
        made = changed(kept)
        until(lambda: changed(kept) != made, first)
    finally:
        first.kill()
        first.communicate(timeout=SECONDS)
    assert 1 <= finished(folder) < TASKS and not (folder / "out.txt").exists()
    made = changed(kept)
    second = started(head, folder)
    try:
        until(lambda: changed(kept) != made, second)
        until(head.workers, second)
        os.kill(head.workers()[0], signal.SIGKILL)
        _, told = second.communicate(timeout=SECONDS)
    finally:
        second.kill()
    assert second.returncode == 0, told
    assert run(command(folder, "here.txt")) == 0
    assert (folder / "out.txt").read_bytes() == (folder / "here.txt").read_bytes()
    assert f"{head.address}: 2 workers\n" in told
    assert "of them an earlier run had finished" in told
    assert not (folder / "out.txt.finished").exists()


def test_another_version_of_ray_is_told_in_one_line(head: Head, folder: Path) -> None:
    _, told = started(head, folder, "other.txt", "1.0.0").communicate(timeout=SECONDS)
    line = told.splitlines()[-1]
    assert "another version of Ray or Python: Version mismatch: The cluster was" in line
    assert "Ray: 1.0.0" in line
    assert [*folder.glob("other.*")] == []
