"""What nobody has used for long is forgotten, but not by a clock that is set wrong for a while."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from serving import Server, tiny_server

from tmnmt.serve.clock import LONGEST, STEP, Clock, Looks
from tmnmt.serve.jobs import RETENTION
from tmnmt.serve.keys import ANYBODY
from tmnmt.serve.sessions import IDLE
from tmnmt.serve.storage.opening import open_storage, place_of

DAY = 24 * 3600.0
BEGIN = 1_700_000_000.0


def looks_at(times: list[float]) -> Looks:
    looks = Looks(times[0])
    for one in times[1:]:
        looks = looks.add(one)
    return looks


def counted(times: list[float], since: float) -> float:
    """Oracle: seconds that count between a time and the last look, of times that only grow."""
    pairs = pairwise(times)
    return sum(
        max(0.0, min(begin + STEP, end) - max(begin, since)) for begin, end in pairs if end > since
    )


def test_time_counts_where_it_was_seen_to_pass() -> None:
    draw = random.Random(random.random())
    for _ in range(200):
        times = [BEGIN]
        while len(times) < 40:
            times.append(times[-1] + draw.choice([60.0, 1200.0, 5000.0, DAY, 9 * DAY]))
        looks = looks_at(times)
        age = draw.uniform(0, min(LONGEST, counted(times, BEGIN)))
        assert counted(times, looks.cutoff(age)) == pytest.approx(age, abs=1e-3)
        assert len(looks.gaps) < len(times)


def test_a_regular_clock_counts_as_it_goes() -> None:
    looks = looks_at([BEGIN + 1200.0 * number for number in range(4000)])
    assert not looks.gaps and looks.cutoff(IDLE) == looks.last - IDLE


def test_what_lies_far_back_is_forgotten() -> None:
    looks = looks_at([BEGIN + 2 * STEP * number for number in range(5000)])
    assert len(looks.gaps) <= LONGEST / STEP + 2


@pytest.mark.parametrize("times", [1, 3])
def test_a_clock_ahead_for_a_while_makes_nothing_old(times: int) -> None:
    """A month ahead for some looks, and right again."""
    ahead = [BEGIN + 31 * DAY + 60.0 * number for number in range(times)]
    for looks in (looks_at([BEGIN, *ahead]), looks_at([BEGIN, *ahead, BEGIN + 3600.0])):
        assert looks.cutoff(IDLE) < BEGIN - IDLE + 2 * STEP
        assert looks.cutoff(RETENTION) < BEGIN - RETENTION + 2 * STEP


@pytest.fixture
def dated(folder: Path, states: str) -> Iterator[Server]:
    with tiny_server(folder, ("law=law",), sessions=states) as server:
        yield server


def test_a_request_a_month_ahead_ends_no_session_and_no_job(
    dated: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = dated.ask("POST", "/v1/sessions", {}).json["id"]
    job = dated.service.jobs.make("export", {}, ANYBODY)
    now = time.time
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: now() + 31 * DAY)
        for _ in range(3):
            assert dated.ask("POST", "/v1/sessions", {}).status == 200
            dated.service.jobs.make("export", {}, ANYBODY)
    assert dated.ask("GET", f"/v1/sessions/{session}").status == 200
    assert dated.ask("GET", f"/v1/jobs/{job}").status == 200


def test_what_is_old_is_forgotten_where_time_has_passed(
    dated: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = dated.ask("POST", "/v1/sessions", {}).json["id"]
    now = time.time()
    with monkeypatch.context() as later:
        for number in range(31 * 24 + 1):
            later.setattr(time, "time", lambda at=now + number * STEP: at)
            dated.service.clock.cutoff(0)
        assert dated.ask("POST", "/v1/sessions", {}).status == 200
    assert dated.ask("GET", f"/v1/sessions/{session}").status == 404


def test_servers_share_what_they_have_seen(states: str) -> None:
    """One of them has its clock a month ahead."""
    one, other = (open_storage(place_of(states)) for _ in range(2))
    right = Clock(one.clock, lambda: BEGIN)
    ahead = Clock(other.clock, lambda: BEGIN + 31 * DAY)
    for _ in range(3):
        assert right.cutoff(IDLE) == BEGIN - IDLE
        assert ahead.cutoff(IDLE) == pytest.approx(BEGIN + STEP - IDLE)
    one.close()
    other.close()
