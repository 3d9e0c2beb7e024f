"""Counts in messages, and the progress lines that hold them."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from tmnmt import progress
from tmnmt.quantities import quantity


def test_one_is_singular_and_thousands_are_parted() -> None:
    assert [quantity(n, "line") for n in (0, 1, 2, 1234)] == [
        "0 lines",
        "1 line",
        "2 lines",
        "1,234 lines",
    ]


def test_progress_counts_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 2.0, 0.0, 8.0, 8.0])
    monkeypatch.setattr("tmnmt.progress.time", SimpleNamespace(monotonic=lambda: next(now)))
    with progress.Progress("reading", "units") as reading:
        reading.advance()
        reading.advance(2)
    assert reading.line() == "reading: 3 units, 1.5/s"
    with progress.Progress("writing", "units", 5) as writing:
        writing.advance()
    assert writing.line() == "writing: 1 of 5 units, 0.1/s, 32 s left"


def test_lines_come_while_nothing_is_finished(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.01)
    with (
        progress.Progress("translating", "segments", 1),
        progress.Progress("indexing", "segments", lazy=True),
    ):
        first = printed(capsys)
    assert set((first + capsys.readouterr().err).splitlines()) == {
        "translating: 0 of 1 segment, 0 s so far"
    }


def test_nothing_is_shown_before_with_nor_after_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.01)
    shown = progress.Progress("translating", "segments", 2)
    threads = threading.active_count()
    shown.advance()
    assert threading.active_count() == threads and capsys.readouterr().err == ""
    with shown:
        assert printed(capsys).startswith("translating: 1 of 2 segments, ")
    capsys.readouterr()
    shown.advance()
    assert threading.active_count() == threads and capsys.readouterr().err == ""


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """What another thread printed, waited for as long as it may take on a loaded machine."""
    deadline = time.monotonic() + 60
    while not (err := capsys.readouterr().err):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return err


def test_progress_goes_on_to_the_next_part_of_the_work() -> None:
    with progress.Progress("indexing", "units", lazy=True) as build:
        build.advance(7)
        for _ in range(2):
            build.begin_part("sending", "segments")
            build.advance(1, 0.25)
        assert build.line().startswith("sending: 2 of 8 segments, ")
