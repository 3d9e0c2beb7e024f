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
        """The paths that wait, the next one first.

        waiting: for each path what its next slice costs."""
        slices: dict[TurnPath, float] = {}
        children = defaultdict[TurnPath, set[TurnPath]](set)
        for path, cost in waiting.items():
            for part in _parts(path):
                slices[part] = min(cost, slices.get(part, cost))
                children[part[:-1]].add(part)
        for part in [part for part in slices if part not in self._present]:
            begin = self._clock.get(part[:-1], 0.0)
            self._cost[part] = max(self._cost.get(part, begin), begin)
        self._present = {*slices}
        tags = {part: self._cost[part] + slices[part] / self._weight(part) for part in slices}
        ordered = sorted(
            waiting, key=lambda path: [(tags[part], part[-1]) for part in _parts(path)]
        )
        for parent, parts in children.items():
            minimum = min(self._cost[part] for part in parts)
            self._clock[parent] = max(self._clock.get(parent, 0.0), minimum)
        self._shares = {parent: sum(map(self._weight, parts)) for parent, parts in children.items()}
        self._forget()
        return ordered

    def charge(self, path: TurnPath, cost: float) -> None:
        """Notes what a slice has cost.

        path: the path that had it.
        cost: what it has cost."""
        for part in _parts(path):
            previous = self._cost.get(part, self._clock.get(part[:-1], 0.0))
            self._cost[part] = previous + cost / self._weight(part)
            if (shares := self._shares.get(part[:-1])) is not None:
                self._clock[part[:-1]] += cost / shares

    def _forget(self) -> None:
        """Drops who is away and owes nothing, or whose neighbours are all away, too."""
        for part in [part for part in self._cost if part not in self._present]:
            parent = part[:-1]
            is_alone = bool(parent) and parent not in self._shares
            if is_alone or self._cost[part] <= self._clock.get(parent, 0.0):
                del self._cost[part]
        for parent in [path for path in self._clock if path and path not in self._shares]:
            del self._clock[parent]


def _parts(path: TurnPath) -> list[TurnPath]:
    """The path, and everything above it, from the top."""
    return [path[:depth] for depth in range(1, len(path) + 1)]
