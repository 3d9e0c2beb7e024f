"""How much a place in the source has to do with a place in the target, by the links of words.

T, S: words of target and source. A place in the target is a boundary of words, 0 to T. One in the
source is a number from 0 to S, and not whole inside a word."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Mass = NDArray[np.float64]
Words = Sequence[tuple[int, int]]  # where every word begins and ends, in characters


class Links:
    """How much words of two texts have to do with each other."""

    def __init__(self, mass: NDArray[np.floating]) -> None:
        """mass: (T, S), how much of every target word comes from every source word, none below
        0."""
        self.mass: Mass = np.asarray(mass, np.float64)
        self._total = self.mass.sum(1)
        self._words = np.arange(self.mass.shape[1])

    def gain(self, start: float, end: float) -> Mass:
        """For every target word the mass that links it to a part of the source, less the mass that
        links it to the rest, (T,).

        start: the place in the source where the part begins.
        end: the place where it ends."""
        gain: Mass = 2 * self.span_mass(start, end) - self._total
        return gain

    def span_mass(self, start: float, end: float) -> Mass:
        """For every target word the mass that links it to a part of the source, (T,).

        start: the place in the source where the part begins.
        end: the place where it ends."""
        mass: Mass = self._prefix_mass(end) - self._prefix_mass(start)
        return mass

    def crossing(self, place: float) -> Mass:
        """For every boundary of the target the mass of the links that cross where it is joined to a
        place in the source, (T + 1,).

        place: the place in the source."""
        preceding = self._prefix_mass(place)
        following = self._total - preceding
        leftward = np.concatenate([[0.0], np.cumsum(following)])
        right = np.concatenate([[0.0], np.cumsum(preceding[::-1])])[::-1]
        crossing: Mass = leftward + right
        return crossing

    def _prefix_mass(self, place: float) -> Mass:
        share = np.clip(place - self._words, 0.0, 1.0)
        prefix: Mass = self.mass @ share
        return prefix


def place_of(position: int, words: Words) -> float:
    """The place among the words of a text.

    position: the place in characters; what stands before it counts.
    words: where each word begins and ends, in characters."""
    number = bisect_right(words, position, key=lambda word: word[1])
    if number == len(words):
        return number
    start, end = words[number]
    return number + max(0, position - start) / (end - start)


def best_stretch(gain: Mass, lo: int, hi: int) -> tuple[int, int]:
    """The stretch of words of the greatest sum: at least one word, where there is one; among equals
    the shortest, then the first.

    gain: (T,), what each word adds.
    lo: the first word that may be in it.
    hi: the word behind the last one that may be in it."""
    best, stretch = -np.inf, (lo, lo)
    sum_ = 0.0
    start = lo
    for position in range(lo, hi):
        if sum_ <= 0:
            sum_ = 0.0
            start = position
        sum_ += gain[position]
        if sum_ > best:
            best, stretch = sum_, (start, position + 1)
    return stretch


def grow_stretch(gain: Mass, start: int, end: int, lo: int, hi: int) -> tuple[int, int]:
    """The stretch of words of the greatest sum that has some words.

    gain: (T,), what each word adds.
    start: the first word that it has.
    end: the word behind the last one that it has.
    lo: the first word that may be in it.
    hi: the word behind the last one that may be in it."""
    leftward = np.concatenate([[0.0], np.cumsum(gain[lo:start][::-1])])
    right = np.concatenate([[0.0], np.cumsum(gain[end:hi])])
    return start - int(np.argmax(leftward)), end + int(np.argmax(right))
