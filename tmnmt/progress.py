"""Progress on stderr: a bar on a terminal; elsewhere a line every ten seconds, fewer while nothing
is finished."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING

from tmnmt.quantities import quantity
from tmnmt.visible import visible

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 10.0

# units done since the last call; the share of all the work, in [0, 1]
ReadProgress = Callable[[int, float], None]


class Progress:
    """`with Progress("indexing", "segments", total) as progress: progress.advance(n)`.

    Lines come also while nothing is finished."""

    def __init__(self, label: str, unit: str, total: int | None = None, lazy: bool = False) -> None:
        """label: what is done, such as "indexing".
        unit: what is counted, in the plural.
        total: how many there are in all; None where this is not known.
        lazy: whether nothing is shown before the first `advance`, of which there may be none."""
        self.label, self.unit, self.total, self.lazy = label, unit, total, lazy
        self.completed = 0
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._lines: Thread | None = None
        self._ended = Event()
        self._ended.set()  # nothing is shown before `with`, nor after it
        self._start = time.monotonic()

    def __enter__(self) -> Progress:
        self._ended.clear()
        if not self.lazy:
            self._show()
        return self

    def advance(self, n: int = 1, share: float | None = None) -> None:
        """Counts what was done.

        n: how many units were done since the last call.
        share: the share of the work that is done, from 0 to 1, which makes the total an estimate;
        None where only the units are known."""
        self.completed += n
        if share:
            self.total = round(self.completed / share)
        if self._bar is None and self._lines is None and not self._ended.is_set():
            self._show()
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task,
                total=self.total,
                completed=self.completed,
                done=self._units(self.completed),
                rate=self._rate(),
            )

    def leave_out(self, n: int) -> None:
        """Takes off the total what was done before, so that the rate is that of this work.

        n: how many units need not be done."""
        if self.total is not None:
            self.total -= n
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, total=self.total)

    def begin_part(self, label: str, unit: str) -> None:
        """Shows the next part of the work in the place of the last one. Nothing changes where the
        part has begun already.

        label: what is done.
        unit: what is counted, in the plural."""
        if (label, unit) == (self.label, self.unit):
            return
        self.label = label
        self.unit = unit
        self.total = None
        self.completed = 0
        self._start = time.monotonic()
        if self._bar is not None and self._task is not None:
            self._bar.reset(
                self._task, description=visible(label), total=None, done=self._units(0), rate="-"
            )

    def line(self) -> str:
        """What is known now, in one line."""
        if not self.completed:
            amount = f"0 of {self._units(self.total)}" if self.total else self._units(0)
            return f"{self.label}: {amount}, {self._seconds():.0f} s so far"
        if not self.total:
            return f"{self.label}: {self._units(self.completed)}, {self._rate()}/s"
        remaining = max(self.total - self.completed, 0) * self._seconds() / self.completed
        return (
            f"{self.label}: {self.completed:,} of {self._units(self.total)}, {self._rate()}/s, "
            f"{remaining:,.0f} s left"
        )

    def _show(self) -> None:
        if not sys.stderr.isatty():
            self._lines = Thread(target=self._print_lines, daemon=True)
            self._lines.start()
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = [
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[done]}, {task.fields[rate]}/s"),
            TimeRemainingColumn(),
        ]
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(
            visible(self.label), total=self.total, done=self._units(0), rate="-"
        )
        self._bar.start()

    def _print_lines(self) -> None:
        pause = SECONDS_BETWEEN_LINES
        last_count = 0
        while not self._ended.wait(pause):
            print(self.line(), file=sys.stderr, flush=True)
            pause, last_count = (
                2 * pause if self.completed == last_count else SECONDS_BETWEEN_LINES,
                self.completed,
            )

    def _units(self, n: int) -> str:
        return quantity(n, self.unit.removesuffix("s"))

    def _seconds(self) -> float:
        return max(time.monotonic() - self._start, 1e-9)

    def _rate(self) -> str:
        rate = self.completed / self._seconds()
        return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._lines is not None:
            self._lines.join()
        if self._bar is not None:
            self._bar.stop()
