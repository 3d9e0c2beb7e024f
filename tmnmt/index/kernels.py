"""The inner loop of retrieval, compiled by numba: shared tokens counted for 512 groups at once, then edit distances.

Everything is exact. A score of at least θ means ED <= (1-θ)·max(|x|, |x'|), hence a window of lengths and at least
⌈θ·max⌉ shared tokens, counted with multiplicity; 1 - (max - shared)/max is an upper bound of the score.

The counters are bit-sliced: plane p holds bit p of the counts of 512 groups, side by side in one value (`Lanes`).

    group         0 1 2 3 4 ...
    ones          1 0 1 1 0        group 0 shares 1 + 4 = 5 tokens with the query, group 1 shares 2 ...
    twos          0 1 0 1 0
    fours         1 0 0 0 0

A frequent feature is a column of one bit a group; two columns and the ones go through a carry-save adder (three bits
in, sum and carry out: a handful of instructions for 512 groups), four columns make one carry into the fours, and so on
up. Rare features come as postings and are added bit by bit before the columns.

numba's cache looks for changes only in this file: after a change in `lanes.py`, change this one too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.compiling import announced, compiled
from tmnmt.index.lanes import BLOCK, WORDS, Lanes, all_set, any_set, load, lowest_set, store

Int16 = NDArray[np.int16]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]
_ZERO, _ONE, _TOP, _ALL = np.uint64(0), np.uint64(1), np.uint64(63), np.uint64(0xFFFFFFFFFFFFFFFF)


class Arrays(NamedTuple):
    """The postings. A group is a distinct token sequence; groups are sorted by length. A feature is a token with the
    number of its occurrence in the segment ("the", the second "the"), which makes a multiset a set. The most frequent
    features are columns, the others have postings. Ranks number the segments from newest (greatest `changed`, then
    smallest id) to oldest."""

    length_start: Int64  # (longest + 2,) first group of every length
    token_start: Int64  # (longest + 2,) where that group's tokens begin
    tokens: Int32  # (all tokens of the groups,)
    feature_start: Int32  # (vocabulary + 1,) first feature of every token
    column_of: Int16  # (features,) -1: it has postings
    columns: UInt64  # (columns + 1, 8 words a block) bit g: group g has the feature; rarest last but for an empty one
    posting_start: Int64  # (features + 1,)
    postings: Int32  # the groups of every feature that has no column, ascending
    member_offsets: Int32  # (groups + 1,)
    members: Int32  # (segments,) ranks of every group's segments, ascending
    document_of: Int32  # (segments,) by rank


@compiled
def add_three(x: Lanes, y: Lanes, z: Lanes) -> tuple[Lanes, Lanes]:
    """A carry-save adder: sum and carry of three bits, 512 times."""
    either = x ^ y
    return either ^ z, (x & y) | (either & z)


@compiled
def at_least(counter: UInt64, ones: Lanes, twos: Lanes, number: int) -> Lanes:
    """The groups whose count is at least `number`; the planes from the fours on stand in `counter`."""
    reached = all_set()
    for plane in range(counter.shape[0]):
        bits = ones if plane == 0 else (twos if plane == 1 else load(counter, plane * WORDS))
        reached = bits & reached if number >> plane & 1 else bits | reached
    return reached


@compiled
def add_columns(columns: UInt64, chosen: Int32, many: int, word: int, counter: UInt64, needed: int) -> bool:
    """Adds the first `many` of the `chosen` columns (more stand there, empty, so that they come by fours) to the
    counter of the block that begins at `word`; False as soon as no group of it can reach `needed`."""
    ones, twos = load(counter, 0), load(counter, WORDS)
    width = columns.shape[1]
    for i in range(0, many, 4):
        if needed > many - i and not any_set(at_least(counter, ones, twos, needed - (many - i))):
            return False
        a, b, c, d = chosen[i] * width, chosen[i + 1] * width, chosen[i + 2] * width, chosen[i + 3] * width
        ones, carry = add_three(ones, load(columns, a + word), load(columns, b + word))
        ones, other = add_three(ones, load(columns, c + word), load(columns, d + word))
        twos, carry = add_three(twos, carry, other)
        for plane in range(2, counter.shape[0]):
            bits = load(counter, plane * WORDS)
            store(counter, plane * WORDS, bits ^ carry)
            carry = bits & carry
    store(counter, 0, ones)
    store(counter, WORDS, twos)
    return True


@compiled
def features(arrays: Arrays, query: Int32) -> tuple[Int32, int, Int32]:
    """The features of the sorted `query` that occur in the memory: columns, rarest first, filled up to fours with the
    empty one; how many they are; those with postings."""
    columns, rare = np.empty(query.size + 3, np.int32), np.empty(query.size, np.int32)
    many, held, occurrence = 0, 0, 0
    for i in range(query.size):
        occurrence = occurrence + 1 if i > 0 and query[i] == query[i - 1] else 0
        if query[i] < 0:
            continue
        feature = arrays.feature_start[query[i]] + occurrence
        if feature >= arrays.feature_start[query[i] + 1]:
            continue
        if arrays.column_of[feature] >= 0:
            columns[many] = arrays.column_of[feature]
            many += 1
        else:
            rare[held] = feature
            held += 1
    columns[:many] = -np.sort(-columns[:many])
    columns[many:] = arrays.columns.shape[0] - 1
    return columns, many, rare[:held]


@compiled
def bit_length(number: int) -> int:
    bits = 0
    while number >> bits:
        bits += 1
    return bits


@compiled
def add_postings(arrays: Arrays, rare: Int32, first: int, end: int) -> tuple[UInt64, NDArray[np.bool_]]:
    """The counters of the blocks of the groups [first, end) after the features with postings, (blocks, planes, 8
    words), and in which blocks anything was counted."""
    start = first // BLOCK
    blocks = (end - 1) // BLOCK + 1 - start if end > first else 0
    counters, touched = np.zeros((blocks, bit_length(rare.size), WORDS), np.uint64), np.zeros(blocks, np.bool_)
    for feature in rare:
        groups = arrays.postings[arrays.posting_start[feature] : arrays.posting_start[feature + 1]]
        for j in range(np.searchsorted(groups, first), groups.size):
            if groups[j] >= end:
                break
            block, word = groups[j] // BLOCK - start, groups[j] // 64 % WORDS
            carry = _ONE << np.uint64(groups[j] % 64)
            touched[block] = True
            plane = 0
            while carry:
                before = counters[block, plane, word]
                counters[block, plane, word] = before ^ carry
                carry &= before
                plane += 1
    return counters, touched


class Candidates(NamedTuple):
    """What can reach a score, in order of group; at the end room for more."""

    groups: Int32
    lengths: Int32
    shared: Int32  # tokens shared with the query, with multiplicity


@compiled
def with_room(held: Candidates, room: int) -> Candidates:
    """The same, followed by so much room."""
    longer = Candidates(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32))
    size = held.groups.size
    longer.groups[:size], longer.lengths[:size], longer.shared[:size] = held.groups, held.lengths, held.shared
    return longer


@compiled
def collect(
    arrays: Arrays, size: int, least: float, window: tuple[int, int], begin: int, length: int,
    counter: UInt64, reached: UInt64, held: Candidates, found: int,
) -> int:  # fmt: skip
    """Appends the groups of a block that can reach `least` with a query of `size` tokens; how many are found then.
    `reached` has all of them, and some outside the window [first, end) or too long; `length` is the block's least."""
    for word in range(WORDS):
        bits = reached[word]
        while bits:
            bit = lowest_set(bits)
            bits &= bits - _ONE
            group = begin + word * 64 + bit
            if group < window[0] or group >= window[1]:
                continue
            while arrays.length_start[length + 1] <= group:
                length += 1
            shared = 0
            for plane in range(counter.shape[0]):
                shared += int(counter[plane, word] >> np.uint64(bit) & _ONE) << plane
            if shared >= math.ceil(least * max(size, length)):
                held.groups[found], held.lengths[found], held.shared[found] = group, length, shared
                found += 1
    return found


@compiled
def candidates(arrays: Arrays, query: Int32, least: float, shortest: int, longest: int) -> Candidates:
    """All groups of these lengths that can reach the score `least`: exact counts for every block that may have any."""
    window = (arrays.length_start[shortest], arrays.length_start[longest + 1])
    held = with_room(Candidates(query[:0], query[:0], query[:0]), 2 * BLOCK)
    found, length = 0, shortest
    columns, many, rare = features(arrays, query)
    counters, touched = add_postings(arrays, rare, *window)
    counter = np.empty((max(2, bit_length(many + rare.size)), WORDS), np.uint64)
    reached = np.empty(WORDS, np.uint64)
    for block in range(touched.size):
        begin = (window[0] // BLOCK + block) * BLOCK
        while arrays.length_start[length + 1] <= begin:
            length += 1
        needed = max(0, math.ceil(least * max(query.size, length)))
        if needed > many + rare.size:
            break  # the longer, the more is needed
        if needed > many and not touched[block]:
            continue
        counter[:] = _ZERO
        counter[: counters.shape[1]] = counters[block]
        if add_columns(arrays.columns, columns, many, begin // 64, counter, needed):
            store(reached, 0, at_least(counter, load(counter, 0), load(counter, WORDS), needed))
            if found + BLOCK > held.groups.size:
                held = with_room(held, 2 * held.groups.size)
            found = collect(arrays, query.size, least, window, begin, length, counter, reached, held, found)
    return Candidates(held.groups[:found], held.lengths[:found], held.shared[:found])


@compiled
def pattern_bits(sequence: Int32) -> tuple[Int32, NDArray[np.uint64]]:
    """The distinct known tokens of `sequence`, ascending, and where each stands: (tokens, words of 64 positions)."""
    distinct = np.unique(sequence[sequence >= 0])
    bits = np.zeros((distinct.size, (sequence.size + 63) // 64), np.uint64)
    for i in range(sequence.size):
        if sequence[i] >= 0:
            bits[np.searchsorted(distinct, sequence[i]), i // 64] |= _ONE << np.uint64(i % 64)
    return distinct, bits


@compiled
def edit_distance(distinct: Int32, bits: NDArray[np.uint64], size: int, text: Int32) -> int:
    """Levenshtein distance of the pattern (`size` tokens, from `pattern_bits`) to `text`: a column of the matrix
    a step, 64 rows a machine word, as vertical differences +1 and -1 (Hyyrö 2003)."""
    words = (size + 63) // 64
    plus, minus = np.full(words, _ALL), np.zeros(words, np.uint64)
    last = _ONE << np.uint64((size - 1) % 64)
    distance = size
    for token in text:
        row = np.searchsorted(distinct, token)
        known = row < distinct.size and distinct[row] == token
        carry_plus, carry_minus = _ONE, _ZERO
        for w in range(words):
            match = (bits[row, w] if known else _ZERO) | carry_minus
            diagonal = (((match & plus[w]) + plus[w]) ^ plus[w]) | match | minus[w]
            right_plus, right_minus = minus[w] | ~(diagonal | plus[w]), diagonal & plus[w]
            if w == words - 1:
                distance += 1 if right_plus & last else 0
                distance -= 1 if right_minus & last else 0
            below_plus, below_minus = (right_plus << _ONE) | carry_plus, (right_minus << _ONE) | carry_minus
            carry_plus, carry_minus = right_plus >> _TOP, right_minus >> _TOP
            plus[w], minus[w] = below_minus | ~(diagonal | below_plus), below_plus & diagonal
    return distance


@compiled
def insert(scores: NDArray[np.float64], ranks: Int32, edits: Int32, held: int, score: float, rank: int, ed: int) -> int:
    """Puts a segment into the best ones (best score, then newest); how many are held afterwards."""
    place = held
    while place > 0 and (scores[place - 1] < score or (scores[place - 1] == score and ranks[place - 1] > rank)):
        place -= 1
    if place == scores.size:
        return held
    for i in range(min(held, scores.size - 1), place, -1):
        scores[i], ranks[i], edits[i] = scores[i - 1], ranks[i - 1], edits[i - 1]
    scores[place], ranks[place], edits[place] = score, rank, ed
    return min(held + 1, scores.size)


@compiled
def best(
    arrays: Arrays, sequence: Int32, k: int, least: float, without_equal: bool, without_document: int
) -> tuple[Int32, Int32, NDArray[np.float64]]:
    """Ranks, edit distances and scores of the at most k best segments, best first, for a query of token numbers (-1:
    in no group). Candidates come by upper bound, so that the k-th best score ends the search."""
    size = sequence.size
    top = arrays.length_start.size - 2
    shortest = max(1, math.ceil(least * size))
    longest = min(top, math.floor(size / least)) if least > 0 else top
    scores, ranks, edits = np.empty(k), np.empty(k, np.int32), np.empty(k, np.int32)
    held = 0
    if size == 0 or shortest > longest:
        return ranks[:0], edits[:0], scores[:0]
    found = candidates(arrays, np.sort(sequence), least, shortest, longest)
    longer = np.maximum(found.lengths, size)
    bounds = 1.0 - (longer - found.shared) / longer
    distinct, bits = pattern_bits(sequence)
    for i in np.argsort(-bounds):
        if held == k and bounds[i] < scores[k - 1]:
            break
        group, length = found.groups[i], found.lengths[i]
        start = arrays.token_start[length] + (group - arrays.length_start[length]) * length
        distance = edit_distance(distinct, bits, size, arrays.tokens[start : start + length])
        score = 1.0 - distance / max(size, length)
        if score < least or (without_equal and distance == 0):
            continue
        for rank in arrays.members[arrays.member_offsets[group] : arrays.member_offsets[group + 1]]:
            if held == k and (score < scores[k - 1] or (score == scores[k - 1] and rank > ranks[k - 1])):
                break
            if arrays.document_of[rank] != without_document:
                held = insert(scores, ranks, edits, held, score, rank, distance)
    return ranks[:held], edits[:held], scores[:held]


@compiled
def best_of_each(
    arrays: Arrays, sequences: Int32, ends: Int64, documents: Int32, k: int, least: float, without_equal: bool
) -> tuple[Int32, Int32, Int32, NDArray[np.float64]]:
    """`best` for every query; their tokens end at `ends` in `sequences`: how many each found, and (queries, k) ranks,
    edit distances and scores."""
    many = ends.size
    held, ranks, edits = np.zeros(many, np.int32), np.empty((many, k), np.int32), np.empty((many, k), np.int32)
    scores = np.empty((many, k), np.float64)
    start = 0
    for i in range(many):
        found = best(arrays, sequences[start : ends[i]], k, least, without_equal, documents[i])
        held[i] = found[0].size
        ranks[i, : held[i]], edits[i, : held[i]], scores[i, : held[i]] = found
        start = ends[i]
    return held, ranks, edits, scores


def search_each(
    arrays: Arrays, sequences: Int32, ends: Int64, documents: Int32, k: int, least: float, without_equal: bool
) -> tuple[Int32, Int32, Int32, NDArray[np.float64]]:
    """`best_of_each`; says so when its first use on a machine compiles it."""
    with announced("search"):
        return best_of_each(arrays, sequences, ends, documents, k, least, without_equal)
