"""Who is next among those that wait for the same thing: weighted fair queueing (Demers, Keshav and
Shenker 1989), by what each has cost so far.

What waits has a path, such as (tenant, lane, number). At every level, whoever would have had least
once its next slice is done goes first. Who comes, or comes back, begins with an equal part of what
was given meanwhile, as if it had waited all along: nobody saves turns up, a pause wipes no debt
out, and newcomers do not pass for ever what waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

TurnPath = tuple[str | int, ...]


class Turns:
    """Not for several threads at once."""

    def __init__(self, weight: Callable[[TurnPath], float] = lambda _: 1.0) -> None:
        """weight: of a path, or of what such paths have in common, against others beside it."""
        self._weight = weight
        self._cost: dict[TurnPath, float] = {}  # so far, by path and by everything above it
        self._clock: dict[TurnPath, float] = {}  # what those below begin with
        self._present: set[TurnPath] = set()  # what waited at the last look
        self._shares: dict[TurnPath, float] = {}  # the weights of those below that did

    def order(self, waiting: Mapping[TurnPath, float]) -> list[TurnPath]:
        """The paths that wait, the next one first; `waiting`: what the next slice of each costs."""
        slices: dict[TurnPath, float] = {}
        below = defaultdict[TurnPath, set[TurnPath]](set)
        for path, cost in waiting.items():
            for part in _parts(path):
                slices[part] = min(cost, slices.get(part, cost))
                below[part[:-1]].add(part)
        for part in [part for part in slices if part not in self._present]:
            begin = self._clock.get(part[:-1], 0.0)
            self._cost[part] = max(self._cost.get(part, begin), begin)
        self._present = {*slices}
        tags = {part: self._cost[part] + slices[part] / self._weight(part) for part in slices}
        ordered = sorted(waiting, key=lambda path: [(tags[one], one[-1]) for one in _parts(path)])
        for above, parts in below.items():
            least = min(self._cost[part] for part in parts)
            self._clock[above] = max(self._clock.get(above, 0.0), least)
        self._shares = {above: sum(map(self._weight, parts)) for above, parts in below.items()}
        self._forget()
        return ordered

    def charge(self, path: TurnPath, cost: float) -> None:
        """Notes what a slice has cost."""
        for part in _parts(path):
            before = self._cost.get(part, self._clock.get(part[:-1], 0.0))
            self._cost[part] = before + cost / self._weight(part)
            if (shares := self._shares.get(part[:-1])) is not None:
                self._clock[part[:-1]] += cost / shares

    def _forget(self) -> None:
        """Drops who is away and owes nothing, or whose neighbours are all away, too."""
        for part in [part for part in self._cost if part not in self._present]:
            above = part[:-1]
            is_alone = bool(above) and above not in self._shares
            if is_alone or self._cost[part] <= self._clock.get(above, 0.0):
                del self._cost[part]
        for above in [one for one in self._clock if one and one not in self._shares]:
            del self._clock[above]


def _parts(path: TurnPath) -> list[TurnPath]:
    """The path, and everything above it, from the top."""
    return [path[:depth] for depth in range(1, len(path) + 1)]
