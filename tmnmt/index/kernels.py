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
up. Rare features come as postings and are added bit by bit before the columns. The planes up to the eights stay in
registers, higher ones stand in memory.

Lengths near the query's come first, for there the best matches are; the k-th best score so far then stands for θ.

numba's cache looks for changes only in this file: after a change in `lanes.py`, change this one too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.compiling import announced, compiled
from tmnmt.index.fuzzy import SLACK
from tmnmt.index.lanes import BLOCK, WORDS, Lanes, all_set, any_set, load, lowest_set, none_set, store

Int16 = NDArray[np.int16]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]
_ZERO, _ONE, _TOP, _ALL = np.uint64(0), np.uint64(1), np.uint64(63), np.uint64(0xFFFFFFFFFFFFFFFF)
_WORD, _WORD_BITS, _BLOCK_BITS = np.uint64(WORDS), np.uint64(6), np.uint64(9)  # 64 groups a word, 512 a block
LOW = 4  # planes in registers: counts up to 15
RINGS = (0.8, 0.0)  # lengths that can reach such a score are searched before the others


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
def at_least(ones: Lanes, twos: Lanes, fours: Lanes, eights: Lanes, counter: UInt64, number: int) -> Lanes:
    """The groups whose count is at least `number`; the planes from the sixteens on stand in `counter`."""
    reached = ones if number & 1 else all_set()
    reached = twos & reached if number & 2 else twos | reached
    reached = fours & reached if number & 4 else fours | reached
    reached = eights & reached if number & 8 else eights | reached
    for plane in range(LOW, counter.size // WORDS):
        bits = load(counter, plane * WORDS)
        reached = bits & reached if number >> plane & 1 else bits | reached
    return reached


@compiled
def add_columns(
    columns: UInt64, chosen: Int32, many: int, word: int,
    counters: UInt64, at: int, planes: int, needed: int, counter: UInt64, reached: UInt64,
) -> bool:  # fmt: skip
    """Counts the block that begins at `word`: its `planes` at `at` in `counters`, and the first `many` of the `chosen`
    columns (more stand there, empty, so that they come by fours). Writes the sums to `counter` and the groups that have
    `needed` to `reached`; False, and nothing is written, as soon as none can."""
    ones, twos = load(counters, at), load(counters, at + WORDS) if planes > 1 else none_set()
    fours = load(counters, at + 2 * WORDS) if planes > 2 else none_set()
    eights = load(counters, at + 3 * WORDS) if planes > 3 else none_set()
    for plane in range(LOW, counter.size // WORDS):
        store(counter, plane * WORDS, load(counters, at + plane * WORDS) if plane < planes else none_set())
    width = columns.shape[1]
    for i in range(0, many, 4):
        left = many - i
        if needed > left and not any_set(at_least(ones, twos, fours, eights, counter, needed - left)):
            return False
        a, b, c, d = chosen[i] * width, chosen[i + 1] * width, chosen[i + 2] * width, chosen[i + 3] * width
        ones, carry = add_three(ones, load(columns, a + word), load(columns, b + word))
        ones, other = add_three(ones, load(columns, c + word), load(columns, d + word))
        twos, carry = add_three(twos, carry, other)
        fours, carry = fours ^ carry, fours & carry
        eights, carry = eights ^ carry, eights & carry
        for plane in range(LOW, counter.size // WORDS):
            bits = load(counter, plane * WORDS)
            store(counter, plane * WORDS, bits ^ carry)
            carry = bits & carry
    enough = at_least(ones, twos, fours, eights, counter, needed)
    if not any_set(enough):
        return False
    store(counter, 0, ones)
    store(counter, WORDS, twos)
    store(counter, 2 * WORDS, fours)
    store(counter, 3 * WORDS, eights)
    store(reached, 0, enough)
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
def add_postings(arrays: Arrays, rare: Int32, first: int, end: int) -> tuple[UInt64, int, NDArray[np.bool_]]:
    """The counters of the blocks of the groups [first, end) after the features with postings, end to end; the planes
    of each, 8 words a plane; and in which blocks anything was counted."""
    start = first // BLOCK
    blocks = (end - 1) // BLOCK + 1 - start if end > first else 0
    planes = max(1, bit_length(rare.size))
    counters, touched = np.zeros(blocks * planes * WORDS, np.uint64), np.zeros(blocks, np.bool_)
    before, size = np.uint64(start), np.uint64(planes * WORDS)  # unsigned: an index that cannot count from the end
    for feature in rare:
        groups = arrays.postings[arrays.posting_start[feature] : arrays.posting_start[feature + 1]]
        for j in range(np.searchsorted(groups, first), np.searchsorted(groups, end)):
            group = np.uint64(groups[j])
            block = (group >> _BLOCK_BITS) - before
            touched[block] = True
            place = block * size + ((group >> _WORD_BITS) & (_WORD - _ONE))
            carry = _ONE << (group & _TOP)
            while carry:
                bits = counters[place]
                counters[place] = bits ^ carry
                carry &= bits
                place += _WORD
    return counters, planes, touched


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
            for plane in range(counter.size // WORDS):
                shared += int(counter[plane * WORDS + word] >> np.uint64(bit) & _ONE) << plane
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
    counters, planes, touched = add_postings(arrays, rare, *window)
    counter = np.empty(max(LOW, bit_length(many + rare.size)) * WORDS, np.uint64)
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
        at = block * planes * WORDS
        if add_columns(arrays.columns, columns, many, begin // 64, counters, at, planes, needed, counter, reached):
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


class Best(NamedTuple):
    """Room for the k best segments, best score first, then newest."""

    ranks: Int32
    edits: Int32
    scores: NDArray[np.float64]


@compiled
def too_late(best: Best, held: int, score: float, rank: int) -> bool:
    """Whether a segment of this score and rank, or of a worse one, has no place among the best any more."""
    last = best.scores.size - 1
    return held > last and (score < best.scores[last] or (score == best.scores[last] and rank > best.ranks[last]))


@compiled
def insert(best: Best, held: int, score: float, rank: int, ed: int) -> int:
    """Puts a segment that is not too late into its place; how many are held afterwards."""
    scores, ranks, edits = best.scores, best.ranks, best.edits
    place = held
    while place > 0 and (scores[place - 1] < score or (scores[place - 1] == score and ranks[place - 1] > rank)):
        place -= 1
    for i in range(min(held, scores.size - 1), place, -1):
        scores[i], ranks[i], edits[i] = scores[i - 1], ranks[i - 1], edits[i - 1]
    scores[place], ranks[place], edits[place] = score, rank, ed
    return min(held + 1, scores.size)


@compiled
def fewest_first(missing: Int32) -> Int32:
    """The order in which `missing` ascends (counting sort)."""
    starts = np.zeros(missing.max() + 2, np.int32)
    for number in missing:
        starts[number + 1] += 1
    starts = np.cumsum(starts)
    order = np.empty(missing.size, np.int32)
    for i in range(missing.size):
        order[starts[missing[i]]] = i
        starts[missing[i]] += 1
    return order


@compiled
def verify(
    arrays: Arrays, sequence: Int32, found: Candidates, least: float, without_equal: bool, without_document: int,
    best: Best, held: int,
) -> int:  # fmt: skip
    """Enters the candidates of score >= `least` into the best, by their edit distance; how many are held then. A
    candidate whose upper bound comes too late is left out, and those that miss fewest tokens come first."""
    size, scores = sequence.size, best.scores
    distinct, bits = pattern_bits(sequence)
    longer = np.maximum(found.lengths, size).astype(np.int32)
    missing = (longer - found.shared).astype(np.int32)
    for i in fewest_first(missing):
        bound = 1.0 - missing[i] / longer[i]
        if held == scores.size and bound < scores[held - 1]:
            continue  # most end here, before anything of them is read
        group, length = found.groups[i], found.lengths[i]
        members = arrays.members[arrays.member_offsets[group] : arrays.member_offsets[group + 1]]
        if too_late(best, held, bound, members[0]):
            continue
        start = arrays.token_start[length] + (group - arrays.length_start[length]) * length
        distance = edit_distance(distinct, bits, size, arrays.tokens[start : start + length])
        score = 1.0 - distance / longer[i]
        if score < least or (without_equal and distance == 0):
            continue
        for rank in members:
            if too_late(best, held, score, rank):
                break
            if arrays.document_of[rank] != without_document:
                held = insert(best, held, score, rank, distance)
    return held


@compiled
def search_one(
    arrays: Arrays, sequence: Int32, least: float, without_equal: bool, without_document: int, best: Best
) -> int:
    """Fills `best` with the best segments for a query of token numbers (-1: in no group); how many there are. Lengths
    near the query's come first; a k-th best score above `least` takes its place for the others."""
    size, top, held = sequence.size, arrays.length_start.size - 2, 0
    if size == 0:
        return 0
    query, enough = np.sort(sequence), least
    first, last = 0, -1  # the lengths searched so far
    for ring in RINGS:
        if held == best.scores.size:
            enough = max(least, best.scores[held - 1] - SLACK)
        bound = max(ring - SLACK, enough) if ring else enough
        shortest, longest = max(1, math.ceil(bound * size)), min(top, math.floor(size / bound)) if bound > 0 else top
        if last < 0:
            first, last = longest + 1, longest
        for begin, end in ((shortest, first - 1), (last + 1, longest)):
            if begin <= end:
                found = candidates(arrays, query, enough, begin, end)
                if found.groups.size:
                    held = verify(arrays, sequence, found, least, without_equal, without_document, best, held)
        first, last = min(first, shortest), max(last, longest)
    return held


@compiled
def best_of_each(
    arrays: Arrays, sequences: Int32, ends: Int64, documents: Int32, k: int, least: float, without_equal: bool
) -> tuple[Int32, Int32, Int32, NDArray[np.float64]]:
    """The at most k best segments for every query; their tokens end at `ends` in `sequences`: how many each found, and
    (queries, k) ranks (0 where nothing was found), edit distances and scores, best first."""
    many = ends.size
    held, ranks, edits = np.zeros(many, np.int32), np.zeros((many, k), np.int32), np.empty((many, k), np.int32)
    scores = np.empty((many, k), np.float64)
    start = 0
    for i in range(many):
        best = Best(ranks[i], edits[i], scores[i])
        held[i] = search_one(arrays, sequences[start : ends[i]], least, without_equal, documents[i], best)
        start = ends[i]
    return held, ranks, edits, scores


def search_each(
    arrays: Arrays, sequences: Int32, ends: Int64, documents: Int32, k: int, least: float, without_equal: bool
) -> tuple[Int32, Int32, Int32, NDArray[np.float64]]:
    """`best_of_each`; says so when its first use on a machine compiles it."""
    with announced("search"):
        return best_of_each(arrays, sequences, ends, documents, k, least, without_equal)
