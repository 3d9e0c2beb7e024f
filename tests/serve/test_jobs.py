"""Jobs in slices: a long one of one tenant, or two, hold up no short one of another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tmnmt.serve.clock import Clock
from tmnmt.serve.jobs import OF_TENANT, Advance, Jobs, Steps
from tmnmt.serve.keys import Caller
from tmnmt.serve.storage.opening import open_storage, place_of

LOUD, QUIET = (Caller(name, name, "write", frozenset()) for name in ("loud", "quiet"))
BEGIN = 6  # slices of long jobs, after which a short one comes
SECONDS = 60.0  # at most, for what takes some milliseconds


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    storage = open_storage(place_of(str(tmp_path / "states.db")))
    made = Jobs(storage.jobs, Clock(storage.clock))
    yield made
    made.stop()
    storage.close()


def work(note: Callable[[], object]) -> Callable[[Path, Advance], Steps]:
    """Work of one slice."""

    def steps(path: Path, advance: Advance) -> Steps:
        note()
        yield
        return {}, None

    return steps


def state(jobs: Jobs, id: str, caller: Caller) -> str:
    deadline = time.monotonic() + SECONDS
    while (job := jobs.get(id, caller)).state not in ("done", "failed"):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return job.state


def test_jobs_of_one_tenant_that_wait_for_a_model_hold_up_none_of_another(jobs: Jobs) -> None:
    answered = threading.Event()
    long = [jobs.make("document", {}, LOUD) for _ in range(20)]
    for id in long:
        jobs.start(id, LOUD.tenant, b"x", "a.txt", work(lambda: answered.wait(SECONDS)))
    short = jobs.make("document", {}, QUIET)
    jobs.start(short, QUIET.tenant, b"x", "a.txt", work(lambda: None))
    assert state(jobs, short, QUIET) == "done"
    answered.set()
    assert [state(jobs, id, LOUD) for id in long] == ["done"] * 20


@pytest.mark.parametrize("caller", [QUIET, LOUD])
def test_long_jobs_hold_up_no_short_one(jobs: Jobs, caller: Caller) -> None:
    """One of the same tenant neither: long ones have slices to do for as long as it is not done."""
    is_done, slices = threading.Event(), threading.Semaphore(0)

    def endless(path: Path, advance: Advance) -> Steps:
        while not is_done.wait(0.005):
            slices.release()
            yield
        return {}, None

    long = [jobs.make("document", {}, LOUD) for _ in range(OF_TENANT + 1)]
    for id in long:
        jobs.start(id, LOUD.tenant, b"x", "a.txt", endless)
    try:
        assert all(slices.acquire(timeout=SECONDS) for _ in range(BEGIN))
        short = jobs.make("document", {}, caller)
        jobs.start(short, caller.tenant, b"x", "a.txt", work(lambda: None))
        assert state(jobs, short, caller) == "done"
    finally:
        is_done.set()
    assert [state(jobs, id, LOUD) for id in long] == ["done"] * len(long)


def test_a_job_that_fails_in_a_way_nobody_expected_ends_no_thread(jobs: Jobs) -> None:
    def broken(path: Path, advance: Advance) -> Steps:
        yield
        raise RuntimeError("unheard of")

    for _ in range(4):
        id = jobs.make("document", {}, LOUD)
        jobs.start(id, LOUD.tenant, b"", "a", broken)
        assert state(jobs, id, LOUD) == "failed"
    id = jobs.make("document", {}, LOUD)
    jobs.start(id, LOUD.tenant, b"", "a", work(lambda: None))
    assert state(jobs, id, LOUD) == "done"
