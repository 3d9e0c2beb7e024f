"""How long ago something was, by a clock that may be set wrong for a while.

What nobody has used for long is forgotten, and the machine's clock says how long. Where it is set
ahead by a month, even for a moment, everything would be old at once. So time counts where the
servers have seen it pass: they look at the clock at least every `LOOK` seconds and note it beside
what they keep. Between two looks at most `STEP` seconds count; the rest is a gap, in which the
machine was off or its clock was set. Where a look finds the clock behind the last one, it was wrong
before, and the gaps that it made are forgotten."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tmnmt.errors import ServerError
from tmnmt.serve.storage.base import ClockStorage

LOOK = 1200.0  # seconds between two looks
STEP = 3600.0  # seconds between two looks that count
LONGEST = 31 * 24 * 3600.0  # seconds that are ever asked about: gaps before that are forgotten
Gap = tuple[float, float]


@dataclass(frozen=True)
class Looks:
    """What looks at the clock have shown.

    last: the time of the last look, in seconds since 1970.
    gaps: from when to when no time counts, in order."""

    last: float
    gaps: Sequence[Gap] = ()

    def add(self, now: float) -> Looks:
        """The looks with another one.

        now: its time, in seconds since 1970."""
        gaps = [(begin, min(end, now)) for begin, end in self.gaps if begin < now]
        if now > self.last + STEP:
            gaps.append((self.last + STEP, now))
        oldest = replace(self, last=now, gaps=gaps).cutoff(LONGEST)
        return Looks(now, [gap for gap in gaps if gap[1] > oldest])

    def cutoff(self, age: float) -> float:
        """The time since which some seconds have counted, in seconds since 1970.

        age: how many seconds."""
        moment = self.last
        for begin, end in reversed(self.gaps):
            if moment - end >= age:
                break
            age -= moment - end
            moment = begin
        return moment - age

    @classmethod
    def read(cls, text: str | None, now: float) -> Looks:
        """The looks that a note holds.

        text: the note; None where nobody has looked yet.
        now: the time, in seconds since 1970, for a first look."""
        if text is None:
            return cls(now)
        last, gaps = json.loads(text)
        return cls(float(last), [(float(begin), float(end)) for begin, end in gaps])

    @property
    def text(self) -> str:
        return json.dumps([self.last, list(self.gaps)])


class Clock:
    """For any thread."""

    def __init__(self, storage: ClockStorage, wall: Callable[[], float] | None = None) -> None:
        """storage: where looks are noted.
        wall: gives the seconds since 1970; None takes the machine's clock."""
        self._storage, self._wall = storage, wall or (lambda: time.time())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="clock", daemon=True)

    def start(self) -> None:
        """Looks at the clock from now on."""
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def cutoff(self, age: float) -> float:
        """The time since which some seconds have counted, in seconds since 1970.

        age: how many seconds.

        Raises ServerError where the looks cannot be read."""
        return self._look().cutoff(age)

    def _look(self) -> Looks:
        now = self._wall()
        note = self._storage.change(lambda text: Looks.read(text, now).add(now).text)
        return Looks.read(note, now)

    def _watch(self) -> None:
        while True:
            with suppress(ServerError):  # a storage that is away is told where it is needed
                self._look()
            if self._ended.wait(LOOK):
                return
