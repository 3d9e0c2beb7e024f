"""Where every word of a side stands: what a concordance is answered from.

The distinct token sequences of a side lie end to end, the shortest first. A position counts their
tokens from 0. The vocabulary is sorted by how its words are spelt, so that those that differ only
in case stand side by side, and so do all that begin alike. Each has its positions, ascending."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.concordance import Phrase, Word, spelling

POSITION_START, POSITIONS = "position_start", "positions"
TARGET = "target_"  # before the names of a part that is of the targets
_LAST = "\U0010ffff"  # no token has it
_FEW = 16  # lists that are looked into one by one; more are put together
_BITMAP = 1 << 15  # so many positions are looked up in a list one by one, more in a bit each

Int64 = NDArray[np.int64]
Positions = NDArray[Any]  # ascending


def order_of(word: str) -> tuple[str, str]:
    """What words are sorted by."""
    return spelling(word), word


class WordPositions:
    """The positions of the words of one side, by the parts of postings with these names."""

    def __init__(self, parts: Mapping[str, NDArray[Any]], prefix: str) -> None:
        self._text = parts[f"{prefix}vocabulary"]
        self._start, self._positions = parts[prefix + POSITION_START], parts[prefix + POSITIONS]
        self._length_start = parts[f"{prefix}length_start"]
        self._token_start = parts[f"{prefix}token_start"]
        self._offsets, self._members = parts[f"{prefix}member_offsets"], parts[f"{prefix}members"]
        self._ids = parts[f"{prefix}ids"]

    def newest(
        self, phrase: Phrase, k: int, is_meant: Callable[[NDArray[Any]], NDArray[np.bool_]] | None
    ) -> list[int]:
        """The ids of the `k` newest segments that have the phrase. `is_meant`: which of some ids
        count; None: all."""
        groups = self._groups(phrase)
        counts = self._offsets[groups + 1] - self._offsets[groups]
        before = np.cumsum(counts) - counts
        at = np.arange(counts.sum()) + np.repeat(self._offsets[groups] - before, counts)
        ranks = self._members[at]
        if is_meant is not None:
            ranks = ranks[is_meant(self._ids[ranks])]
        if len(ranks) > k:
            ranks = np.partition(ranks, k - 1)[:k]
        found: list[int] = self._ids[np.sort(ranks)].tolist()
        return found

    def _groups(self, phrase: Phrase) -> Int64:
        """The sequences that have the phrase, ascending."""
        numbers = [self._meant(word, phrase.match_case) for word in phrase.words]
        counts = [int((self._start[of + 1] - self._start[of]).sum()) for of in numbers]
        if not all(counts):
            return np.empty(0, np.int64)
        rarest = counts.index(min(counts))
        first = self._of(numbers[rarest]).astype(np.int64)
        others = [at for at in sorted(range(len(counts)), key=counts.__getitem__) if at != rarest]
        if phrase.within is None:
            found = first - rarest
            for at in others:
                found = found[self._has(numbers[at], found + at)]
            found = self._in_one(found, len(phrase.words)) if others else found
        else:
            found = self._near(first, [numbers[at] for at in others], phrase.within)
        groups = self._group_of(found)[0]
        return groups[np.flatnonzero(np.diff(groups, prepend=-1))]

    def _in_one(self, found: Int64, size: int) -> Int64:
        """Those after which `size` tokens are of one sequence."""
        found = found[found >= 0]
        _, begins, lengths = self._group_of(found)
        return found[found + size <= begins + lengths]

    def _near(self, found: Int64, others: Sequence[Int64], within: int) -> Int64:
        """Those that have all others near them: a stretch of `within` + 1 tokens has them all.

        Of every word it is noted in a number of 64 bits where it stands around the position."""
        _, begins, lengths = self._group_of(found)
        low = np.maximum(found - within, begins)
        high = np.minimum(found + within, begins + lengths - 1)
        masks = [self._bits(of, found, low, high, within) for of in others]
        stretch, is_near = (1 << within + 1) - 1, np.zeros(len(found), bool)
        for shift in range(within + 1):
            window = np.uint64(stretch << shift)
            has = ((mask & window) != 0 for mask in masks)
            is_near |= reduce(np.logical_and, has, np.ones(len(found), bool))
        return found[is_near]

    def _bits(
        self, numbers: Int64, found: Int64, low: Int64, high: Int64, within: int
    ) -> NDArray[np.uint64]:
        """For every position where these words stand from `low` to `high`: bit `within` is the
        position itself."""
        places = self._of(numbers)
        at, end = np.searchsorted(places, low), np.searchsorted(places, high, "right")
        bits = np.zeros(len(found), np.uint64)
        rows = np.flatnonzero(at < end)
        while len(rows):
            shift = places[at[rows]].astype(np.int64) - found[rows] + within
            bits[rows] |= np.uint64(1) << shift.astype(np.uint64)
            at[rows] += 1
            rows = rows[at[rows] < end[rows]]
        return bits

    def _has(self, numbers: Int64, wanted: Int64) -> NDArray[np.bool_]:
        """At which of these positions one of the words stands."""
        if len(numbers) <= _FEW and len(wanted) < _BITMAP:
            lists = (self._of(numbers[i : i + 1]) for i in range(len(numbers)))
            return reduce(np.logical_or, (_are_in(places, wanted) for places in lists))
        if len(wanted) >= _BITMAP:
            stands = np.zeros(len(self._positions) + 1, bool)
            for number in numbers.tolist():
                stands[self._positions[self._start[number] : self._start[number + 1]]] = True
            outside = (wanted < 0) | (wanted >= len(self._positions))
            return stands[np.where(outside, len(self._positions), wanted)]
        return _are_in(self._of(numbers), wanted)

    def _of(self, numbers: Int64) -> Positions:
        """The positions of all of these words."""
        lists = [self._positions[self._start[n] : self._start[n + 1]] for n in numbers.tolist()]
        if len(lists) == 1:
            return lists[0]
        # Timsort: each list is a run that ascends
        return np.sort(np.concatenate(lists), kind="stable")

    def _group_of(self, positions: Int64) -> tuple[Int64, Int64, Int64]:
        """The sequence that every position (ascending) is in, where that begins, and its length."""
        counts = np.diff(np.searchsorted(positions, self._token_start))
        lengths = np.repeat(np.arange(len(counts)), counts)
        inside = positions - self._token_start[lengths]
        order = inside // np.maximum(lengths, 1)
        begins = self._token_start[lengths] + order * lengths
        return self._length_start[lengths] + order, begins, lengths

    def _meant(self, word: Word, match_case: bool) -> Int64:
        """The numbers of the words that are meant."""
        text = spelling(word.text)
        first = bisect_left(self._spellings, text)
        end = bisect_left(self._spellings, text + (_LAST if word.is_beginning else "\0"))
        numbers = range(first, end)
        if match_case:
            numbers_of = [n for n in numbers if word.is_in(spelling(self._word(n), True))]
            return np.array(numbers_of, np.int64)
        return np.arange(first, end)

    @cached_property
    def _ends(self) -> Int64:
        """Where every word ends in the text of the vocabulary."""
        return np.append(np.flatnonzero(self._text == ord("\n")), len(self._text))

    def _word(self, number: int) -> str:
        begin = int(self._ends[number - 1]) + 1 if number else 0
        return self._text[begin : int(self._ends[number])].tobytes().decode()

    @cached_property
    def _spellings(self) -> _Spellings:
        return _Spellings(self._word, len(self._start) - 1)


def _are_in(places: Positions, wanted: Int64) -> NDArray[np.bool_]:
    """Which of the positions wanted are among these."""
    if not len(places):
        return np.zeros(len(wanted), bool)
    at = np.searchsorted(places, wanted)
    return np.asarray(places[np.minimum(at, len(places) - 1)] == wanted)


class _Spellings(Sequence[str]):
    """How every word of a vocabulary is spelt, read when it is asked for: few are."""

    def __init__(self, word: Callable[[int], str], size: int) -> None:
        self._word, self._size = word, size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, number: Any) -> Any:
        return spelling(self._word(number))
