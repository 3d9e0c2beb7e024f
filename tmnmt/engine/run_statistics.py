"""Counts what a translator does, and measures where its time goes."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tmnmt.segments import Translation

CONTROL = "had control characters, taken out"  # a key of `Tally.changed`
_NUMBERS = ("low", "total", "unknown", "with_unknown")


@dataclass
class Tally:
    """The counts and times of one translator, over all threads that use it."""

    # segments that had to be changed before they could be translated, by what was done
    changed: Counter[str] = field(default_factory=Counter)
    low: int = 0  # translations that scored lower than nearly all dev text (`Translation.low`)
    total: int = 0  # translations that were scored or taken from a memory: all but blank ones
    unknown: int = 0  # characters of sources that were not in the vocabulary
    with_unknown: int = 0  # segments that had such
    # by what took them: "search", "keys", "decode", "links"
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def count(self, translation: Translation) -> Translation:
        """Counts a finished translation, and gives it back.

        translation: the translation."""
        with self._lock:
            self.low += translation.low
            self.total += bool(translation.src.strip())
            self.unknown += translation.unknown
            self.with_unknown += translation.unknown > 0
        return translation

    def drained(self) -> dict[str, Any]:
        """All that was counted, {"changed", "low", "total", "unknown", "with_unknown", "seconds"};
        the counts begin anew."""
        with self._lock:
            counts = {
                "changed": dict(self.changed),
                **{name: getattr(self, name) for name in _NUMBERS},
                "seconds": dict(self.seconds),
            }
            self.changed.clear()
            self.seconds.clear()
            for name in _NUMBERS:
                setattr(self, name, 0)
        return counts

    def add(self, counts: Mapping[str, Any]) -> None:
        """Adds what another translator has counted.

        counts: what `drained` gave there."""
        with self._lock:
            self.changed.update(counts["changed"])
            for name in _NUMBERS:
                setattr(self, name, getattr(self, name) + counts[name])
            for phase, seconds in counts["seconds"].items():
                self.seconds[phase] += seconds

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """A context that adds the seconds that are spent within it.

        phase: the name of what takes the time."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] += time.perf_counter() - start
