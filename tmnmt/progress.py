"""Progress of long work on stderr: a bar on a terminal, a plain line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from tmnmt.counted import counted

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 10.0

ReadProgress = Callable[[int, float], None]  # units read since the last call; the share of all bytes read, in [0, 1]


class Progress:
    """`with Progress("indexing", "segments", total) as progress: progress.advance(n)`; total None when unknown.

    Where only the share of the work that is done is known, `advance(n, share)` makes the total an estimate."""

    def __init__(self, what: str, unit: str, total: int | None = None) -> None:
        self.what, self.unit, self.total = what, unit, total
        self.done = 0
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._start = self._last = time.monotonic()

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = [
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[done]}, {task.fields[rate]}/s"),
                TimeRemainingColumn(),
            ]
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self.what, total=self.total, done=self._units(0), rate="-")
            self._bar.start()
        return self

    def advance(self, n: int = 1, share: float | None = None) -> None:
        self.done += n
        if share:
            self.total = round(self.done / share)
        now = time.monotonic()
        rate = self.done / max(now - self._start, 1e-9)
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task, total=self.total, completed=self.done, done=self._units(self.done), rate=_shown(rate)
            )
        elif now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            done, eta = self._units(self.done), ""
            if self.total:
                left = max(self.total - self.done, 0) / max(rate, 1e-9)
                done, eta = f"{self.done:,} of {self._units(self.total)}", f", {left:,.0f} s left"
            print(f"{self.what}: {done}, {_shown(rate)}/s{eta}", file=sys.stderr, flush=True)

    def _units(self, n: int) -> str:
        return counted(n, self.unit.removesuffix("s"))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _shown(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
