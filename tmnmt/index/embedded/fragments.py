"""The segments that together cover most of a text's rare phrases, where none is like the text.

A phrase is 2 to 5 match tokens of the text in a row, one of which at least is rare in the memory.
It weighs n log(N / df), of n tokens, N distinct sources and df of them that have it. Segments are
taken one after another: always the one that has most weight that is not covered yet, over the root
of its length in tokens.

What is read lies beside the postings (`positions.py`): where every word stands. Of the places of
every rare word it is seen how far the memory goes on as the text does, to both sides. A memory of
several parts is looked at as one: only the numbers of its sequences are those of a part."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.embedded.packed import PackedLists, unpacked, width_of
from tmnmt.index.embedded.positions import POSITION

SHORTEST, LONGEST = 2, 5  # tokens of a phrase
RARE = 1000  # places in a memory, at most, of a word that is rare

Int64 = NDArray[np.int64]
Floats = NDArray[np.float64]


class Runs(NamedTuple):
    """Where the memory has tokens of the text in a row, as many as there are: one entry each.

    group: (runs,), the sequence of the memory.
    size: (runs,), how many tokens that sequence has.
    begin: (runs,), the first token in the text.
    end: (runs,), behind the last one."""

    group: Int64
    size: Int64
    begin: Int64
    end: Int64


class _Phrases(NamedTuple):
    """Which sequences have which phrases of the text, each once."""

    candidate: Int64  # into `groups`
    phrase: Int64
    groups: Int64
    sizes: Int64  # of groups, in tokens
    weights: Floats  # of all phrases


class Fragments:
    """The part of a memory whose postings have these arrays. Its methods raise ValueError and
    IndexError where what is read is damaged."""

    def __init__(self, parts: Mapping[str, NDArray[Any]]) -> None:
        """parts: the arrays of the postings, by their names."""
        self._text, self._tokens = parts["vocabulary"], parts["tokens"]
        self._positions = PackedLists.of_parts(parts, POSITION)
        self._width = width_of(len(self._positions.start) - 1)  # bits of a token
        self._length_start, self._token_start = parts["length_start"], parts["token_start"]
        self._offsets, self._members = parts["member_offsets"], parts["members"]
        self._ids = parts["ids"]

    @property
    def sources(self) -> int:
        """How many distinct token sequences the sources have."""
        return len(self._offsets) - 1

    def places(self, words: Sequence[str]) -> Int64:
        """(words,), how often each word stands in the distinct sources.

        words: the match tokens of a text."""
        text, start = self._text_of(words), self._positions.start
        return np.where(text < 0, 0, start[text + 1] - start[text])

    def runs(self, words: Sequence[str], is_rare: NDArray[np.bool_]) -> Runs:
        """All runs of two tokens or more of a text that have a rare one.

        words: the match tokens of the text.
        is_rare: (words,), which of them are rare."""
        text, start = self._text_of(words), self._positions.start
        rare = np.flatnonzero(is_rare & (text >= 0))
        place = self._positions.numbers(text[rare])
        positions = np.repeat(rare, start[text[rare] + 1] - start[text[rare]])
        group, first, last = self._sequences(place)
        leftward = self._reach(text, positions, place, first, -1)
        rightward = self._reach(text, positions, place, last, 1)
        begin, end = positions - leftward, positions + rightward + 1
        # of a run with several rare words that of the first counts
        previous = np.full(len(text) + 1, -1)
        previous[rare[1:]] = rare[:-1]
        is_first = (end - begin >= SHORTEST) & (previous[positions] < begin)
        return Runs(*(of[is_first] for of in (group, last - first + 1, begin, end)))

    def newest_of(self, group: int, is_meant: Callable[[int], bool]) -> int | None:
        """The id of the newest segment of a token sequence that is meant; None where none is.

        group: the number of the sequence.
        is_meant: says of an id whether the segment may be taken."""
        ranks = self._members[self._offsets[group] : self._offsets[group + 1]]
        return next((number for number in self._ids[ranks].tolist() if is_meant(number)), None)

    def _text_of(self, words: Sequence[str]) -> Int64:
        """The numbers of words, -1 where the part does not have one."""
        return np.array([self._numbers.get(word, -1) for word in words], np.int64)

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

    def _sequences(self, place: Int64) -> tuple[Int64, Int64, Int64]:
        """Of every position its sequence, and the positions of that one's first and last token."""
        lengths, starts = self._lengths
        stretch = np.searchsorted(starts, place, "right") - 1
        if place.size and (place.min() < 0 or place.max() >= self._token_start[-1]):
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
            tokens = unpacked(self._tokens, source_index * self._width, self._width)
            active = active[tokens == text[text_index]]
            if not len(active):
                return reach
            reach[active] = distance
        return reach


def rare(places: Int64) -> NDArray[np.bool_]:
    """(words,), which words are rare.

    places: (words,), how often each stands in the memory."""
    return (places > 0) & (places <= RARE)


def select(
    runs: Runs,
    is_rare: NDArray[np.bool_],
    sources: int,
    k: int,
    newest_of: Callable[[int], tuple[int, int] | None],
) -> list[tuple[int, int]]:
    """What `newest_of` gives for the sequences that together cover most of a text's rare phrases,
    in the order in which they are taken. Of equal candidates that of the smallest number is taken.

    runs: all runs of the memory.
    is_rare: (words,), which words of the text are rare.
    sources: how many distinct sequences the memory has.
    k: how many are given at most.
    newest_of: the segment that is taken for a sequence, as the number of its part and its id; None
    where none may be."""
    phrases = _phrases(len(is_rare), runs, is_rare, sources)
    return _selected(phrases, k, newest_of) if len(phrases.groups) else []


def _phrases(size: int, runs: Runs, is_rare: NDArray[np.bool_], sources: int) -> _Phrases:
    """The phrases of the runs in a text of `size` tokens, weighed by their rarity among all
    `sources`; phrase number LONGEST * begin + n - 1 has n tokens."""
    rare_before = np.concatenate([[0], np.cumsum(is_rare)])
    groups, index, candidate = np.unique(runs.group, return_index=True, return_inverse=True)
    size *= LONGEST
    keys = [np.zeros(0, np.int64)]
    for n in range(SHORTEST, LONGEST + 1):
        counts = np.maximum(runs.end - runs.begin - n + 1, 0)
        row = np.repeat(np.arange(len(counts)), counts)
        inside = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        begin = runs.begin[row] + inside
        has_rare = rare_before[begin + n] > rare_before[begin]
        keys.append((candidate[row] * size + LONGEST * begin + n - 1)[has_rare])
    unique_keys = np.unique(np.concatenate(keys))
    owner, phrase = np.divmod(unique_keys, max(size, 1))
    sources_with = np.bincount(phrase, minlength=size)
    tokens = np.arange(size) % LONGEST + 1
    rarity = np.log(sources / np.maximum(sources_with, 1))
    weights = (tokens * rarity).astype(np.float64)
    return _Phrases(owner, phrase, groups, runs.size[index], weights)


def _selected(
    phrases: _Phrases, k: int, newest_of: Callable[[int], tuple[int, int] | None]
) -> list[tuple[int, int]]:
    """Lazily: a candidate's gain only falls as phrases are covered, so one that is the best
    with its gain of now is the best of all."""
    gains = np.bincount(phrases.candidate, phrases.weights[phrases.phrase])
    roots = np.sqrt(phrases.sizes)
    starts = np.searchsorted(phrases.candidate, np.arange(len(phrases.groups) + 1))
    heap = [*zip((-gains / roots).tolist(), range(len(roots)), strict=True)]
    heapq.heapify(heap)
    weights = phrases.weights.copy()
    selected: list[tuple[int, int]] = []
    while heap and len(selected) < k:
        priority, index = heapq.heappop(heap)
        owned = phrases.phrase[starts[index] : starts[index + 1]]
        gain = float(weights[owned].sum() / roots[index])
        if gain <= 0:
            continue
        if heap and (-gain, index) > heap[0] and -gain > priority:
            heapq.heappush(heap, (-gain, index))
        elif (newest := newest_of(int(phrases.groups[index]))) is not None:
            selected.append(newest)
            weights[owned] = 0.0
    return selected
