"""The segments that together cover most of a text's rare phrases, where none is like the text.

A phrase is 2 to 5 match tokens of the text in a row, one of which at least is rare in the memory.
It weighs n log(N / df), of n tokens, N distinct sources and df of them that have it. Segments are
taken one after another: always the one that has most weight that is not covered yet, over the root
of its length in tokens.

What is read lies beside the postings (`positions.py`): where every word stands. Of the places of
every rare word it is seen how far the memory goes on as the text does, to both sides."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SHORTEST, LONGEST = 2, 5  # tokens of a phrase
RARE = 1000  # places in a memory, at most, of a word that is rare

Int64 = NDArray[np.int64]
Floats = NDArray[np.float64]


class _Runs(NamedTuple):
    """Where the memory has tokens of the text in a row, as many as there are: one entry each."""

    group: Int64  # the sequence of the memory
    begin: Int64  # first token in the text
    end: Int64  # behind the last one


class _Phrases(NamedTuple):
    """Which sequences have which phrases of the text, each once."""

    candidate: Int64  # into `groups`
    phrase: Int64
    groups: Int64
    weights: Floats  # of all phrases


class Fragments:
    """The sources of postings with these parts."""

    def __init__(self, parts: Mapping[str, NDArray[Any]]) -> None:
        """parts: the arrays of the postings, by their names."""
        self._text, self._tokens = parts["vocabulary"], parts["tokens"]
        self._start, self._positions = parts["position_start"], parts["positions"]
        self._length_start, self._token_start = parts["length_start"], parts["token_start"]
        self._offsets, self._members = parts["member_offsets"], parts["members"]
        self._ids = parts["ids"]

    def covering(self, words: Sequence[str], k: int, is_meant: Callable[[int], bool]) -> list[int]:
        """The ids of segments that together cover most of a text's rare phrases, in the order in
        which they are taken; of equal sources the newest.

        words: the match tokens of the text.
        k: how many ids are given at most.
        is_meant: says of an id whether the segment may be taken.

        Raises ValueError and IndexError where what is read is damaged."""
        text = np.array([self._numbers.get(word, -1) for word in words], np.int64)
        phrases = self._phrases(text, self._runs(text))
        return self._select(phrases, k, is_meant) if len(phrases.groups) else []

    @cached_property
    def _numbers(self) -> dict[str, int]:
        words = self._text.tobytes().decode().split("\n")
        return dict(zip(words, range(len(words)), strict=True))

    @cached_property
    def _lengths(self) -> tuple[Int64, Int64]:
        """The lengths that sequences have, and where in the tokens those of each begin."""
        lengths = np.flatnonzero(
            np.diff(self._length_start) * np.arange(self._length_start.size - 1)
        )
        return lengths, self._token_start[lengths]

    def _is_rare(self, text: Int64) -> NDArray[np.bool_]:
        places = np.where(text < 0, 0, self._start[text + 1] - self._start[text])
        return (places > 0) & (places <= RARE)

    def _runs(self, text: Int64) -> _Runs:
        """All runs of two tokens or more that have a rare one."""
        rare = np.flatnonzero(self._is_rare(text))
        begins, ends = self._start[text[rare]], self._start[text[rare] + 1]
        lists = [self._positions[a:b] for a, b in zip(begins, ends, strict=True)]
        if not lists:
            return _Runs(*(np.zeros(0, np.int64) for _ in range(3)))
        positions = np.repeat(rare, ends - begins)
        place = np.concatenate(lists).astype(np.int64)
        group, first, last = self._sequences(place)
        leftward = self._reach(text, positions, place, first, -1)
        rightward = self._reach(text, positions, place, last, 1)
        begin, end = positions - leftward, positions + rightward + 1
        # of a run with several rare words that of the first counts
        previous = np.full(len(text) + 1, -1)
        previous[rare[1:]] = rare[:-1]
        is_first = (end - begin >= SHORTEST) & (previous[positions] < begin)
        return _Runs(group[is_first], begin[is_first], end[is_first])

    def _sequences(self, place: Int64) -> tuple[Int64, Int64, Int64]:
        """Of every position its sequence, and the positions of that one's first and last token."""
        lengths, starts = self._lengths
        stretch = np.searchsorted(starts, place, "right") - 1
        if place.size and (place.min() < 0 or place.max() >= len(self._tokens)):
            raise ValueError("names a position that is not there")
        length = lengths[stretch]
        order = (place - starts[stretch]) // length
        first = starts[stretch] + order * length
        return self._length_start[length] + order, first, first + length - 1

    def _reach(self, text: Int64, positions: Int64, place: Int64, limit: Int64, step: int) -> Int64:
        """How many tokens beside each place are those of the text beside `positions`; `step`: -1
        before it, 1 behind it."""
        reach = np.zeros(len(positions), np.int64)
        active = np.arange(len(positions))
        for distance in count(1):
            source_index, text_index = (
                place[active] + step * distance,
                positions[active] + step * distance,
            )
            inside = (
                (text_index >= 0)
                & (text_index < len(text))
                & (step * (limit[active] - source_index) >= 0)
            )
            active, source_index, text_index = (
                active[inside],
                source_index[inside],
                text_index[inside],
            )
            active = active[self._tokens[source_index] == text[text_index]]
            if not len(active):
                return reach
            reach[active] = distance
        return reach

    def _phrases(self, text: Int64, runs: _Runs) -> _Phrases:
        """The phrases of the runs; phrase number LONGEST * begin + n - 1 has n tokens."""
        rare_before = np.concatenate([[0], np.cumsum(self._is_rare(text))])
        groups, candidate = np.unique(runs.group, return_inverse=True)
        size = len(text) * LONGEST
        keys = [np.zeros(0, np.int64)]
        for n in range(SHORTEST, LONGEST + 1):
            counts = np.maximum(runs.end - runs.begin - n + 1, 0)
            row = np.repeat(np.arange(len(counts)), counts)
            inside = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
            begin = runs.begin[row] + inside
            is_rare = rare_before[begin + n] > rare_before[begin]
            keys.append((candidate[row] * size + LONGEST * begin + n - 1)[is_rare])
        unique_keys = np.unique(np.concatenate(keys))
        owner, phrase = np.divmod(unique_keys, max(size, 1))
        sources = np.bincount(phrase, minlength=size)
        tokens = np.arange(size) % LONGEST + 1
        all_sources = len(self._offsets) - 1
        rarity = np.log(all_sources / np.maximum(sources, 1))
        weights = (tokens * rarity).astype(np.float64)
        return _Phrases(owner, phrase, groups, weights)

    def _select(self, phrases: _Phrases, k: int, is_meant: Callable[[int], bool]) -> list[int]:
        """Lazily: a candidate's gain only falls as phrases are covered, so one that is the best
        with its gain of now is the best of all."""
        gains = np.bincount(phrases.candidate, phrases.weights[phrases.phrase])
        roots = np.sqrt(self._size(phrases.groups))
        starts = np.searchsorted(phrases.candidate, np.arange(len(phrases.groups) + 1))
        heap = [*zip((-gains / roots).tolist(), range(len(roots)), strict=True)]
        heapq.heapify(heap)
        weights = phrases.weights.copy()
        ids: list[int] = []
        while heap and len(ids) < k:
            priority, index = heapq.heappop(heap)
            owned = phrases.phrase[starts[index] : starts[index + 1]]
            gain = float(weights[owned].sum() / roots[index])
            if gain <= 0:
                continue
            if heap and (-gain, index) > heap[0] and -gain > priority:
                heapq.heappush(heap, (-gain, index))
            elif (number := self._newest(int(phrases.groups[index]), is_meant)) is not None:
                ids.append(number)
                weights[owned] = 0.0
        return ids

    def _size(self, groups: Int64) -> Int64:
        """Tokens of sequences."""
        return np.searchsorted(self._length_start, groups, "right") - 1

    def _newest(self, group: int, is_meant: Callable[[int], bool]) -> int | None:
        """The id of the newest segment of a sequence that is meant; None where none is."""
        ranks = self._members[self._offsets[group] : self._offsets[group + 1]]
        return next((number for number in self._ids[ranks].tolist() if is_meant(number)), None)
