"""Stretches of a document whose translations are those of their neighbours.

What translates what is learned from the memory itself (IBM model 1). A segment counts as shifted
where its neighbour's translation fits it clearly better than its own does, in several segments one
after another."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from tmnmt.eval.measures.align import PAIRS, Aligner, tokens
from tmnmt.segments import Segment

OFFSETS = (1, -1)  # where the right translation is, in segments
OFTEN = 5  # pairs that a word stands in; rarer ones are learned from the very pair that is in doubt
FLOOR = 1e-4  # chance of a word that nothing in the source explains
COPIED = 4.0  # nats of a rare word or number that the source has, too
MARGIN = 0.5  # nats a word by which the neighbour's translation must fit better, on average
ENOUGH = 2.0  # nats a word, summed over the stretch
SHORTEST = 2  # segments of a stretch


class Fitness:
    """How well a translation fits a source, in nats a word more than it fits any source."""

    def __init__(self, segments: Iterable[Segment], total: int) -> None:
        step = max(1, total // PAIRS)
        pairs = [(s.src, s.tgt) for index, s in enumerate(segments) if index % step == 0]
        sides = list(zip(*pairs, strict=True)) or [(), ()]
        src, tgt = (Counter(w for text in side for w in set(tokens(text))) for side in sides)
        words = max(sum(tgt.values()), 1)
        self._src = frozenset(["", *(word for word, count in src.items() if count >= OFTEN)])
        self._tgt = {word: count / words for word, count in tgt.items() if count >= OFTEN}
        self._dictionary = Aligner(pairs).dictionary(FLOOR)

    def __call__(self, src: Sequence[str], tgt: Sequence[str]) -> float:
        """Of two texts, given as their `tokens`."""
        target = [word for word in tgt if any(map(str.isalnum, word))]
        if not target:
            return 0.0
        whole = set(src)
        candidates = (self._dictionary.get(word) for word in ["", *src] if word in self._src)
        rows = [row for row in candidates if row is not None] or [{}]
        total = 0.0
        for word in target:
            if word in self._tgt and not word.isdigit():
                chance = sum(row.get(word, 0.0) for row in rows) / len(rows)
                total += math.log((chance + FLOOR) / (self._tgt[word] + FLOOR))
            elif word in whole:
                total += COPIED
            elif word.isdigit():
                total -= COPIED
        return total / len(target)


def shifted(
    segments: Iterable[Segment], fitness: Fitness, advance: Callable[[int], None]
) -> Iterator[tuple[Segment, str]]:
    """The shifted segments in order, each with the translation that would fit it."""
    for _, group in groupby(segments, key=lambda segment: segment.document):
        document = list(group)
        sides = [(tokens(segment.src), tokens(segment.tgt)) for segment in document]
        baseline = [fitness(*side) for side in sides]
        fitting: dict[int, str] = {}
        for offset in OFFSETS:
            for first, last in _stretches(_gains(sides, baseline, fitness, offset)):
                for position in range(first, last):
                    fitting.setdefault(position, document[position + offset].tgt)
                fitting.setdefault(last if offset > 0 else first - 1, "")
        advance(len(document))
        yield from ((document[position], fitting[position]) for position in sorted(fitting))


def _gains(
    sides: Sequence[tuple[list[str], list[str]]],
    baseline: Sequence[float],
    fitness: Fitness,
    offset: int,
) -> list[float]:
    """By how much the neighbour's translation fits better; where there is no neighbour, or both
    have one translation, it does not."""
    gains = []
    for position, (src, tgt) in enumerate(sides):
        neighbour = position + offset
        if not 0 <= neighbour < len(sides) or sides[neighbour][1] == tgt:
            gains.append(-MARGIN)
        else:
            gains.append(fitness(src, sides[neighbour][1]) - baseline[position])
    return gains


def _stretches(gains: Sequence[float]) -> Iterator[tuple[int, int]]:
    """First segment, and the one behind the last, of every stretch that is good enough."""
    first, total, best, end = 0, 0.0, 0.0, 0
    for position, gain in enumerate([*gains, -math.inf]):
        total += gain - MARGIN
        if total > best:
            best, end = total, position + 1
        if total <= 0 or best - total > ENOUGH:
            if best >= ENOUGH and end - first >= SHORTEST:
                yield first, end
            first, total, best, end = position + 1, 0.0, 0.0, position + 1
