"""The passes over all tokens that make postings, compiled by numba; what they write may be files
mapped to memory.

Together they need a few bytes a group and a feature, however many tokens there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.compiling import announced, compiled
from tmnmt.index.kernels.tokens import NewWords

Int16 = NDArray[np.int16]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]
_ONE, _FACTOR, _SHIFT = np.uint64(1), np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


@compiled
def hashes(tokens: Int32, starts: Int64) -> UInt64:
    """A hash of every sequence; `starts` has one item more than there are sequences. Equal hashes
    prove nothing."""
    hashed = np.empty(starts.size - 1, np.uint64)
    for i in range(hashed.size):
        mixed = _FACTOR
        for token in tokens[starts[i] : starts[i + 1]]:
            mixed = (mixed ^ np.uint64(token)) * _FACTOR
            mixed ^= mixed >> _SHIFT
        hashed[i] = mixed
    return hashed


@compiled
def number_groups(tokens: Int32, starts: Int64, order: Int64) -> tuple[Int32, int]:
    """The group of every sequence, and how many groups there are: `order` has equal sequences side
    by side; what is equal is compared token by token."""
    of, groups = np.empty(order.size, np.int32), 0
    for i in range(order.size):
        this = tokens[starts[order[i]] : starts[order[i] + 1]]
        new = i == 0
        if not new:
            before = tokens[starts[order[i - 1]] : starts[order[i - 1] + 1]]
            new = this.size != before.size or bool(np.any(this != before))
        groups += new
        of[order[i]] = groups - 1
    return of, groups


@compiled
def lay_out(tokens: Int32, starts: Int64, order: Int64, of: Int32, laid: Int32) -> None:
    """Writes the tokens of every group, end to end, into `laid`."""
    end, group = 0, -1
    for i in order:
        if of[i] > group:
            group = of[i]
            length = starts[i + 1] - starts[i]
            laid[end : end + length] = tokens[starts[i] : starts[i + 1]]
            end += length


@compiled
def most_occurrences(tokens: Int32, lengths: Int32, vocabulary: int) -> Int32:
    """How often every token occurs in the group that has it most often."""
    most, seen = np.zeros(vocabulary, np.int32), np.zeros(vocabulary, np.int32)
    start = 0
    for length in lengths:
        sequence = tokens[start : start + length]
        for token in sequence:
            seen[token] += 1
            most[token] = max(most[token], seen[token])
        for token in sequence:
            seen[token] = 0
        start += length
    return most


@compiled
def count_features(tokens: Int32, lengths: Int32, feature_start: Int32) -> Int64:
    """In how many groups every feature occurs."""
    counts, seen = np.zeros(feature_start[-1], np.int64), np.zeros(feature_start.size, np.int32)
    start = 0
    for length in lengths:
        sequence = tokens[start : start + length]
        for token in sequence:
            counts[feature_start[token] + seen[token]] += 1
            seen[token] += 1
        for token in sequence:
            seen[token] = 0
        start += length
    return counts


@compiled
def fill(
    tokens: Int32,
    lengths: Int32,
    feature_start: Int32,
    column_of: Int16,
    posting_start: Int64,
    columns: UInt64,
    postings: Int32,
) -> None:
    """Enters every group into the column or the postings of each of its features."""
    seen, place = np.zeros(feature_start.size, np.int32), posting_start.copy()
    start = 0
    for group in range(lengths.size):
        sequence = tokens[start : start + lengths[group]]
        for token in sequence:
            feature = feature_start[token] + seen[token]
            seen[token] += 1
            if column_of[feature] >= 0:
                columns[column_of[feature], group // 64] |= _ONE << np.uint64(group % 64)
            else:
                postings[place[feature]] = group
                place[feature] += 1
        for token in sequence:
            seen[token] = 0
        start += lengths[group]


@compiled
def place(tokens: Int32, next_of: Int64, positions: Int32) -> None:
    """Writes where every token stands, ascending, from the places on that `next_of` has for it."""
    for at in range(tokens.size):
        token = tokens[at]
        positions[next_of[token]] = at
        next_of[token] += 1


def compile_all() -> None:
    """Compiles what is above by inverting one token; says so where that was not done before on this
    machine."""
    one, starts, order = np.zeros(1, np.int32), np.arange(2, dtype=np.int64), np.zeros(1, np.int64)
    with announced("building of postings"):
        NewWords().encode(["one"])
        hashes(one, starts)
        lay_out(one, starts, order, number_groups(one, starts, order)[0], one.copy())
        feature_start = starts.astype(np.int32)
        most_occurrences(one, one + 1, 1)
        count_features(one, one + 1, feature_start)
        fill(
            one,
            one + 1,
            feature_start,
            np.zeros(1, np.int16),
            starts,
            np.zeros((2, 8), np.uint64),
            one.copy(),
        )
        place(one, starts[:1].copy(), one.copy())
