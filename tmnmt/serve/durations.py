"""How long requests took, as histograms in the text form of Prometheus: only counts are kept."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

# Seconds; a request of up to a bound is counted at it. What needs no model ends within some
# milliseconds, and a long list of segments within a minute.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Durations:
    """Durations of requests by route. It is used by one thread alone."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def observe(self, route: str, seconds: float) -> None:
        """Counts a request.

        route: the route that it took.
        seconds: how long it took."""
        counts = self._counts.setdefault(route, [0] * (len(BOUNDS) + 1))
        counts[bisect_left(BOUNDS, seconds)] += 1
        self._sums[route] = self._sums.get(route, 0.0) + seconds

    def lines(self, name: str) -> Iterator[str]:
        """The samples of all routes, without their head.

        name: the name of the histogram."""
        for route, counts in sorted(self._counts.items()):
            total = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                total += count
                yield f'{name}_bucket{{route="{route}",le="{bound}"}} {total}'
            yield f'{name}_sum{{route="{route}"}} {self._sums[route]:.6f}'
            yield f'{name}_count{{route="{route}"}} {total}'
