"""Which parts of a new version were in the former one: the same at the same place, moved or
changed."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from difflib import SequenceMatcher

from tmnmt.text import match_tokens

ALIKE = 0.5  # the share of tokens from which a part is taken as another one changed
MOST_COMPARED = 2_500  # pairs of parts that are compared by their tokens, in one place


def counterparts(
    new: Sequence[str],
    former: Sequence[str],
    names: Sequence[str] = (),
    former_names: Sequence[str] = (),
) -> list[int | None]:
    """For every part of a new version its counterpart in the former one, by its number: first those
    that say the same (Heckel 1978, with moves), then those in whose place they stand; None for what
    is new.

    new: what the parts say.
    former: what the parts of the former version say.
    names: the names of the new parts; none where they have none, or not each its own.
    former_names: the names of the former parts."""
    pairs = _Pairs(new, former)
    by_name = {name: number for number, name in enumerate(former_names)} if names else {}
    for number, name in enumerate(names):
        pairs.add(number, by_name.get(name, -1))
    pairs.add_unique()
    pairs.add_adjacent()
    pairs.add_equal()
    for number, name in enumerate(names):
        pairs.add(number, by_name.get(name, -1), is_same=False)
    pairs.add_changed()
    return pairs.found


def equals(new: Sequence[str], former: Sequence[str]) -> list[int | None]:
    """For every part of a new version the number of one in the former version that says the same;
    None where there is none, or others have taken it.

    new: what the parts say.
    former: what the parts of the former version say."""
    pairs = _Pairs(new, former)
    pairs.add_unique()
    pairs.add_adjacent()
    pairs.add_equal()
    return pairs.found


class _Pairs:
    """Pairs of new and former parts, each part in one at most."""

    def __init__(self, new: Sequence[str], former: Sequence[str]) -> None:
        self.found: list[int | None] = [None] * len(new)
        self._new, self._former = new, former
        self._is_free = [True] * len(former)

    def add(self, number: int, former: int, is_same: bool = True) -> None:
        """Pairs two parts, where both are free, and say the same if they must."""
        if not 0 <= number < len(self._new) or not 0 <= former < len(self._former):
            return
        if self.found[number] is not None or not self._is_free[former]:
            return
        if not is_same or self._new[number] == self._former[former]:
            self.found[number] = former
            self._is_free[former] = False

    def add_unique(self) -> None:
        """Those that say what no other part of their version says."""
        counts, former_counts = Counter(self._new), Counter(self._former)
        places = {text: number for number, text in enumerate(self._former)}
        for number, text in enumerate(self._new):
            if counts[text] == 1 == former_counts[text]:
                self.add(number, places[text])

    def add_adjacent(self) -> None:
        """Those beside a pair, and at both ends."""
        self.add(0, 0)
        self.add(len(self._new) - 1, len(self._former) - 1)
        for step in (1, -1):
            for number in range(len(self._new))[::step]:
                former = self.found[number]
                if former is not None:
                    self.add(number + step, former + step)

    def add_equal(self) -> None:
        """All others that say the same, in their order."""
        waiting = defaultdict[str, deque[int]](deque)
        for number, text in enumerate(self._former):
            if self._is_free[number]:
                waiting[text].append(number)
        for number, text in enumerate(self._new):
            if self.found[number] is None and waiting[text]:
                self.add(number, waiting[text].popleft())

    def add_changed(self) -> None:
        """Those that stand between the same neighbours: as many on both sides in their order, else
        what is alike."""
        start = 0
        while start < len(self._new):
            end = start
            while end < len(self._new) and self.found[end] is None:
                end += 1
            if end > start:
                self._add_changed(range(start, end))
            start = end + 1

    def _add_changed(self, numbers: range) -> None:
        before = self.found[numbers.start - 1] if numbers.start else -1
        behind = self.found[numbers.stop] if numbers.stop < len(self._new) else len(self._former)
        if before is None or behind is None:
            return
        candidates = [n for n in range(before + 1, behind) if self._is_free[n]]
        if len(candidates) == len(numbers):
            for number, former in zip(numbers, candidates, strict=True):
                self.add(number, former, is_same=False)
        elif len(candidates) * len(numbers) <= MOST_COMPARED:
            self._add_alike(numbers, candidates)

    def _add_alike(self, numbers: range, candidates: list[int]) -> None:
        for number in numbers:
            likeness = [_likeness(self._new[number], self._former[n]) for n in candidates]
            if likeness and max(likeness) >= ALIKE:
                place = likeness.index(max(likeness))
                self.add(number, candidates[place], is_same=False)
                candidates = candidates[place + 1 :]


def _likeness(first: str, second: str) -> float:
    """The share of tokens that two texts have in common, in order."""
    return SequenceMatcher(None, match_tokens(first), match_tokens(second), False).ratio()


def moved(found: Sequence[int | None]) -> set[int]:
    """The numbers of new parts that stand in another order than their counterparts: as few as make
    the rest one order.

    found: the counterparts of all new parts."""
    ends, last, previous = list[int](), list[int](), dict[int, int]()
    for number, former in enumerate(found):
        if former is None:
            continue
        place = bisect_left(ends, former)
        ends[place : place + 1], last[place : place + 1] = [former], [number]
        previous[number] = last[place - 1] if place else -1
    in_order, number = set[int](), last[-1] if last else -1
    while number >= 0:
        in_order.add(number)
        number = previous[number]
    return {n for n, former in enumerate(found) if former is not None and n not in in_order}
