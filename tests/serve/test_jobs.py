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
SLICES = 40


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    storage = open_storage(place_of(str(tmp_path / "states.db")))
    made = Jobs(storage.jobs, Clock(storage.clock))
    yield made
    made.stop()
    storage.close()


def work(slices: int, note: Callable[[], object]) -> Callable[[Path, Advance], Steps]:
    def steps(path: Path, advance: Advance) -> Steps:
        for _ in range(slices):
            time.sleep(0.01)
            note()
            yield
        return {"slices": slices}, None

    return steps


def state(jobs: Jobs, id: str, caller: Caller) -> str:
    deadline = time.monotonic() + 30
    while (job := jobs.get(id, caller)).state not in ("done", "failed"):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return job.state


def test_jobs_of_one_tenant_that_wait_for_a_model_hold_up_none_of_another(jobs: Jobs) -> None:
    answered = threading.Event()
    long = [jobs.make("document", {}, LOUD) for _ in range(20)]
    for id in long:
        jobs.start(id, LOUD.tenant, b"x", "a.txt", work(1, lambda: answered.wait(30)))
    short = jobs.make("document", {}, QUIET)
    jobs.start(short, QUIET.tenant, b"x", "a.txt", work(1, lambda: None))
    assert state(jobs, short, QUIET) == "done"
    answered.set()
    assert [state(jobs, id, LOUD) for id in long] == ["done"] * 20


@pytest.mark.parametrize("caller", [QUIET, LOUD])
def test_long_jobs_hold_up_no_short_one(jobs: Jobs, caller: Caller) -> None:
    """One of the same tenant neither."""
    count = [0]

    def noted() -> None:
        count[0] += 1

    long = [jobs.make("document", {}, LOUD) for _ in range(OF_TENANT + 1)]
    for id in long:
        jobs.start(id, LOUD.tenant, b"x", "a.txt", work(SLICES, noted))
    while count[0] < 6:
        time.sleep(0.005)
    short = jobs.make("document", {}, caller)
    jobs.start(short, caller.tenant, b"x", "a.txt", work(1, lambda: None))
    assert state(jobs, short, caller) == "done" and count[0] < SLICES
    assert [state(jobs, id, LOUD) for id in long] == ["done"] * len(long)
    assert count[0] == len(long) * SLICES


def test_a_job_that_fails_in_a_way_nobody_expected_ends_no_thread(jobs: Jobs) -> None:
    def broken(path: Path, advance: Advance) -> Steps:
        yield
        raise RuntimeError("unheard of")

    for _ in range(4):
        id = jobs.make("document", {}, LOUD)
        jobs.start(id, LOUD.tenant, b"", "a", broken)
        assert state(jobs, id, LOUD) == "failed"
    id = jobs.make("document", {}, LOUD)
    jobs.start(id, LOUD.tenant, b"", "a", work(1, lambda: None))
    assert state(jobs, id, LOUD) == "done"
