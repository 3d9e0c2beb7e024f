"""The passes over all tokens that make postings, compiled by numba; what they write may be files
mapped to memory.

Together they need a few bytes a group and a feature, however many tokens there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.compiling import announced, compiled
from tmnmt.index.kernels.packed import hash_of, head_blocks, pack, pack_lists
from tmnmt.index.kernels.tokens import NewWords

Int16 = NDArray[np.int16]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]
_ONE = np.uint64(1)


@compiled
def hashes(tokens: Int32, starts: Int64) -> UInt64:
    """A hash of every sequence. Equal hashes prove nothing.

    tokens: (tokens,), the sequences end to end.
    starts: (sequences + 1,), where each begins, and the end of the last."""
    hashed = np.empty(starts.size - 1, np.uint64)
    for i in range(hashed.size):
        hashed[i] = hash_of(tokens, starts[i], starts[i + 1])
    return hashed


@compiled
def number_groups(tokens: Int32, starts: Int64, order: Int64) -> tuple[Int32, int]:
    """The group of every sequence, and how many groups there are. What is equal is compared token
    by token.

    tokens: (tokens,), the sequences end to end.
    starts: (sequences + 1,), where each begins, and the end of the last.
    order: (sequences,), the sequences in an order in which equal ones stand side by side."""
    group_ids, groups = np.empty(order.size, np.int32), 0
    for i in range(order.size):
        sequence = tokens[starts[order[i]] : starts[order[i] + 1]]
        new = i == 0
        if not new:
            previous = tokens[starts[order[i - 1]] : starts[order[i - 1] + 1]]
            new = sequence.size != previous.size or bool(np.any(sequence != previous))
        groups += new
        group_ids[order[i]] = groups - 1
    return group_ids, groups


@compiled
def lay_out(
    tokens: Int32, starts: Int64, order: Int64, group_ids: Int32, group_tokens: Int32
) -> None:
    """Writes the tokens of every group, end to end.

    tokens: (tokens,), the sequences end to end.
    starts: (sequences + 1,), where each begins, and the end of the last.
    order: (sequences,), the sequences in an order in which equal ones stand side by side.
    group_ids: (sequences,), the group of every sequence.
    group_tokens: where the tokens are written."""
    end, group = 0, -1
    for i in order:
        if group_ids[i] > group:
            group = group_ids[i]
            length = starts[i + 1] - starts[i]
            group_tokens[end : end + length] = tokens[starts[i] : starts[i + 1]]
            end += length


@compiled
def most_occurrences(tokens: Int32, lengths: Int32, vocabulary: int) -> Int32:
    """How often every token occurs in the group that has it most often.

    tokens: (tokens,), the groups end to end.
    lengths: (groups,), how many tokens each group has.
    vocabulary: how many distinct tokens there are."""
    maxima, occurrences = np.zeros(vocabulary, np.int32), np.zeros(vocabulary, np.int32)
    start = 0
    for length in lengths:
        sequence = tokens[start : start + length]
        for token in sequence:
            occurrences[token] += 1
            maxima[token] = max(maxima[token], occurrences[token])
        for token in sequence:
            occurrences[token] = 0
        start += length
    return maxima


@compiled
def count_features(tokens: Int32, lengths: Int32, feature_start: Int32) -> Int64:
    """In how many groups every feature occurs.

    tokens: (tokens,), the groups end to end.
    lengths: (groups,), how many tokens each group has.
    feature_start: (vocabulary + 1,), the first feature of every token."""
    counts, occurrences = (
        np.zeros(feature_start[-1], np.int64),
        np.zeros(feature_start.size, np.int32),
    )
    start = 0
    for length in lengths:
        sequence = tokens[start : start + length]
        for token in sequence:
            counts[feature_start[token] + occurrences[token]] += 1
            occurrences[token] += 1
        for token in sequence:
            occurrences[token] = 0
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
    """Enters every group into the column or the postings of each of its features.

    tokens: (tokens,), the groups end to end.
    lengths: (groups,), how many tokens each group has.
    feature_start: (vocabulary + 1,), the first feature of every token.
    column_of: (features,), the column of every feature, -1 where it has postings.
    posting_start: (features + 1,), where the postings of every feature begin.
    columns: the columns, which are written.
    postings: the postings, which are written."""
    occurrences, place = np.zeros(feature_start.size, np.int32), posting_start.copy()
    start = 0
    for group in range(lengths.size):
        sequence = tokens[start : start + lengths[group]]
        for token in sequence:
            feature = feature_start[token] + occurrences[token]
            occurrences[token] += 1
            if column_of[feature] >= 0:
                columns[column_of[feature], group // 64] |= _ONE << np.uint64(group % 64)
            else:
                postings[place[feature]] = group
                place[feature] += 1
        for token in sequence:
            occurrences[token] = 0
        start += lengths[group]


@compiled
def place(tokens: Int32, next_of: Int64, positions: Int32) -> None:
    """Writes where every token stands, ascending.

    tokens: (tokens,), the tokens.
    next_of: (vocabulary,), where the next place of every token is written; it changes.
    positions: (tokens,), where the places are written."""
    for position in range(tokens.size):
        token = tokens[position]
        positions[next_of[token]] = position
        next_of[token] += 1


def compile_all() -> None:
    """Compiles what is above by inverting one token; says so where that was not done before on this
    machine."""
    single, starts, order = (
        np.zeros(1, np.int32),
        np.arange(2, dtype=np.int64),
        np.zeros(1, np.int64),
    )
    with announced("building of postings"):
        NewWords().encode(["one"])
        hashes(single, starts)
        lay_out(single, starts, order, number_groups(single, starts, order)[0], single.copy())
        feature_start = starts.astype(np.int32)
        most_occurrences(single, single + 1, 1)
        count_features(single, single + 1, feature_start)
        fill(
            single,
            single + 1,
            feature_start,
            np.zeros(1, np.int16),
            starts,
            np.zeros((2, 8), np.uint64),
            single.copy(),
        )
        place(single, starts[:1].copy(), single.copy())
        packed = np.zeros(2, np.uint64)
        pack(single, 0, packed)
        head_blocks(single, starts, single.copy(), np.zeros(1, np.int64))
        pack_lists(single, starts, np.zeros(1, np.int64), packed)
