"""Counts in messages, and the progress lines that hold them."""

from __future__ import annotations

import pytest

from tmnmt import progress
from tmnmt.counted import counted


def test_one_is_singular_and_thousands_are_parted() -> None:
    assert [counted(n, "line") for n in (0, 1, 2, 1234)] == ["0 lines", "1 line", "2 lines", "1,234 lines"]


def test_progress_counts_what_is_done(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with progress.Progress("reading", "units") as reading, progress.Progress("writing", "units", 5) as writing:
        reading.advance()
        reading.advance(2)
        writing.advance()
    lines = [line.rpartition("/s")[0].rpartition(", ")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["reading: 1 unit", "reading: 3 units", "writing: 1 of 5 units"]
