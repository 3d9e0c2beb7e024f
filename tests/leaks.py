"""Test segments that stand in the memory: their translation can be copied, not made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tmnmt.text import normalise


@dataclass(frozen=True, slots=True)
class Leak:
    """A source of the test set that is also in the memory; `number` and `first` count from 1."""

    number: int  # its place in the test set
    src: str  # as it stands in the test set
    first: int  # the place in the memory where it is first met
    memory_src: str  # as it stands there
    times: int  # how often the memory has it


def leaks(test: Iterable[str], memory: Iterable[str]) -> list[Leak]:
    """Every source of `test` that equals one of `memory` as `tmnmt.text.normalise` sees them, in
    the order of `test`.

    A source without any match token equals nothing. Memory: the test sources; `memory` is read
    once, as a stream."""
    wanted: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for number, src in enumerate(test, 1):
        if key := normalise(src):
            wanted[key].append((number, src))
    first: dict[str, tuple[int, str]] = {}
    times: dict[str, int] = defaultdict(int)
    for place, src in enumerate(memory, 1):
        key = normalise(src)
        if key in wanted:
            first.setdefault(key, (place, src))
            times[key] += 1
    found = [
        Leak(number, src, *first[key], times[key]) for key in first for number, src in wanted[key]
    ]
    return sorted(found, key=lambda leak: leak.number)
