"""The inner loop of retrieval, compiled by numba: shared tokens counted for 512 groups at once, then edit distances.

Everything is exact. A score of at least θ means ED <= (1-θ)·max(|x|, |x'|), hence a window of lengths and at least
⌈θ·max⌉ shared tokens, counted with multiplicity; 1 - (max - shared)/max is an upper bound of the score.

The counters are bit-sliced: plane p holds bit p of the counts of 512 groups, side by side in one value (`Lanes`).

    group         0 1 2 3 4 ...
    ones          1 0 1 1 0        group 0 has counted 1 + 4 = 5, group 1 has counted 2 ...
    twos          0 1 0 1 0
    fours         1 0 0 0 0

Rare features come as postings: what a group shares of them is counted bit by bit. Then it is known how many of the
query's other features a group may miss, and misses are counted from there up to the end of the counter: where it
overflows, the group is out, and a block without groups is left at once. A frequent feature is a column of one bit a
group; two columns and the ones go through a carry-save adder (three bits in, sum and carry out: a handful of
instructions for 512 groups), four columns make one carry into the fours, and so on up. The planes up to the sixteens
stay in registers, higher ones stand in memory.

Lengths near the query's come first, for there the best matches are; the k-th best score so far then stands for θ.

numba's cache looks for changes only in this file: after a change in `lanes.py`, `words.py` or `addresses.py`, change
this one too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.fuzzy import SLACK
from tmnmt.index.kernels.addresses import array_at, rows_at
from tmnmt.index.kernels.compiling import compiled, inner
from tmnmt.index.kernels.lanes import (
    BLOCK,
    WORDS,
    Lanes,
    any_set,
    load,
    lowest_set,
    prefetch,
    repeat,
    store,
)
from tmnmt.index.kernels.tokens import Words, encode

Int16 = NDArray[np.int16]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]
UInt64 = NDArray[np.uint64]
_ZERO, _ONE, _TOP, _ALL = np.uint64(0), np.uint64(1), np.uint64(63), np.uint64(0xFFFFFFFFFFFFFFFF)
_WORD, _WORD_BITS, _BLOCK_BITS = (
    np.uint64(WORDS),
    np.uint64(6),
    np.uint64(9),
)  # 64 groups a word, 512 a block
LOW = 5  # planes in registers: counts up to 31
SPARE_PLANES = (
    64  # behind the last counter: it overflows into them where damaged postings repeat a group
)
AHEAD = 6 * WORDS  # a column is asked for so far ahead of the block that is counted
FEW = 64  # numbers that are sorted by insertion
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


@inner
def add_three(x: Lanes, y: Lanes, z: Lanes) -> tuple[Lanes, Lanes]:
    """A carry-save adder: sum and carry of three bits, 512 times."""
    either = x ^ y
    return either ^ z, (x & y) | (either & z)


@inner
def begin(counters: UInt64, at: int, planes: int, spare: int) -> Lanes:
    """Turns the hits of a block into the complement of what its groups may miss, which is hits + `spare`, so that one
    miss too many overflows. Returns the groups that are not out already: those that may miss none or more."""
    carry = repeat(_ZERO)
    for place in range(at, at + planes * WORDS, WORDS):
        hits, bit = load(counters, place), repeat(_ALL if spare & 1 else _ZERO)
        either = hits ^ bit
        store(counters, place, either ^ carry ^ repeat(_ALL))
        carry = (hits & bit) | (either & carry)
        spare >>= 1
    return carry if spare < 0 else repeat(_ALL)


@inner
def add_columns(
    columns: UInt64,
    chosen: Int32,
    word: int,
    counters: UInt64,
    at: int,
    planes: int,
    spare: int,
    left: UInt64,
) -> bool:
    """Counts what the groups of the block that begins at `word` miss of the `chosen` columns (by fours) in the block's
    `planes`, which begin at `at` in `counters`. Writes the groups that are not out to `left`; False as soon as there is
    none."""
    every = repeat(_ALL)
    alive = begin(counters, at, planes, spare)
    if not any_set(alive):
        return False
    ones, twos = load(counters, at), load(counters, at + WORDS)
    fours, eights = load(counters, at + 2 * WORDS), load(counters, at + 3 * WORDS)
    sixteens = load(counters, at + 4 * WORDS)
    width = columns.shape[1]
    for i in range(0, chosen.size, 4):
        a, b, c, d = (
            chosen[i] * width,
            chosen[i + 1] * width,
            chosen[i + 2] * width,
            chosen[i + 3] * width,
        )
        for column in (a, b, c, d):
            prefetch(columns, column + word + AHEAD)
        ones, carry = add_three(
            ones, load(columns, a + word) ^ every, load(columns, b + word) ^ every
        )
        ones, other = add_three(
            ones, load(columns, c + word) ^ every, load(columns, d + word) ^ every
        )
        twos, carry = add_three(twos, carry, other)
        fours, carry = fours ^ carry, fours & carry
        eights, carry = eights ^ carry, eights & carry
        sixteens, carry = sixteens ^ carry, sixteens & carry
        for place in range(at + LOW * WORDS, at + planes * WORDS, WORDS):
            bits = load(counters, place)
            store(counters, place, bits ^ carry)
            carry = bits & carry
        alive = alive & (carry ^ every)
        if not any_set(alive):
            return False
    store(counters, at, ones)
    store(counters, at + WORDS, twos)
    store(counters, at + 2 * WORDS, fours)
    store(counters, at + 3 * WORDS, eights)
    store(counters, at + 4 * WORDS, sixteens)
    store(left, 0, alive)
    return True


class Query(NamedTuple):
    """The features of a query that occur in the memory."""

    size: int  # of the query in tokens, unknown ones too
    columns: Int32  # rarest first, filled up to fours with the empty one
    many: int  # columns without that
    rare: Int32  # features that have postings


@compiled
def ascending(numbers: Int32) -> Int32:
    """A copy, sorted."""
    if numbers.size > FEW:
        return np.sort(numbers)
    inserted = np.empty_like(numbers)
    for i in range(numbers.size):
        place = i
        while place > 0 and inserted[place - 1] > numbers[i]:
            inserted[place] = inserted[place - 1]
            place -= 1
        inserted[place] = numbers[i]
    return inserted


@compiled
def features(arrays: Arrays, sequence: Int32) -> Query:
    """The features of a query of token numbers (-1: in no group)."""
    tokens = ascending(sequence)
    columns, rare = np.empty(tokens.size + 3, np.int32), np.empty(tokens.size, np.int32)
    many, held, occurrence = 0, 0, 0
    for i in range(tokens.size):
        occurrence = occurrence + 1 if i > 0 and tokens[i] == tokens[i - 1] else 0
        if tokens[i] < 0:
            continue
        feature = arrays.feature_start[tokens[i]] + occurrence
        if feature >= arrays.feature_start[tokens[i] + 1]:
            continue
        if arrays.column_of[feature] >= 0:
            columns[many] = arrays.column_of[feature]
            many += 1
        else:
            rare[held] = feature
            held += 1
    columns[:many] = ascending(columns[:many])[::-1]
    columns[many:] = arrays.columns.shape[0] - 1
    return Query(tokens.size, columns[: (many + 3) // 4 * 4], many, rare[:held])


@inner
def bit_length(number: int) -> int:
    bits = 0
    while number >> bits:
        bits += 1
    return bits


@inner
def add_postings(
    arrays: Arrays,
    rare: Int32,
    window: tuple[int, int],
    counters: UInt64,
    planes: int,
    touched: NDArray[np.bool_],
) -> None:
    """Counts the features with postings, in the `counters` of the blocks of the window [first, end), end to end, each
    of so many planes of 8 words; and notes in which blocks anything was counted."""
    before, blocks, size = (
        np.uint64(window[0] // BLOCK),
        np.uint64(touched.size),
        np.uint64(planes * WORDS),
    )
    for feature in rare:
        groups = arrays.postings[arrays.posting_start[feature] : arrays.posting_start[feature + 1]]
        for j in range(first_of(groups, window[0]), first_of(groups, window[1])):
            group = np.uint64(groups[j])  # unsigned: an index that cannot count from the end
            block = (group >> _BLOCK_BITS) - before
            if block >= blocks:
                continue  # out of order: damaged
            touched[block] = True
            place = block * size + ((group >> _WORD_BITS) & (_WORD - _ONE))
            carry = _ONE << (group & _TOP)
            while carry:
                bits = counters[place]
                counters[place] = bits ^ carry
                carry &= bits
                place += _WORD


@inner
def first_of(ascending: Int32, number: int) -> int:
    """Where the first item of at least `number` stands (binary search)."""
    low, high = 0, ascending.size
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


class Candidates(NamedTuple):
    """What can reach a score, in order of group; at the end room for more."""

    groups: Int32
    lengths: Int32
    shared: Int32  # tokens shared with the query, with multiplicity


@compiled
def with_room(held: Candidates, room: int) -> Candidates:
    """The same, followed by so much room."""
    longer = Candidates(
        np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    )
    size = held.groups.size
    longer.groups[:size], longer.lengths[:size], longer.shared[:size] = (
        held.groups,
        held.lengths,
        held.shared,
    )
    return longer


@inner
def collect(
    arrays: Arrays, size: int, least: float, window: tuple[int, int], begin: int, length: int,
    counters: UInt64, at: int, planes: int, needed: int, left: UInt64, held: Candidates, found: int,
) -> int:  # fmt: skip
    """Appends the groups of a block that can reach `least` with a query of `size` tokens; how many are found then.
    `left` has all of them, and some outside the window [first, end) or too long; `length` is the block's least."""
    for word in range(WORDS):
        bits = left[word]
        while bits:
            bit = lowest_set(bits)
            bits &= bits - _ONE
            group = begin + word * 64 + bit
            if group < window[0] or group >= window[1]:
                continue
            while arrays.length_start[length + 1] <= group:
                length += 1
            shared = needed
            for plane in range(planes):
                shared += (
                    int(~counters[at + plane * WORDS + word] >> np.uint64(bit) & _ONE) << plane
                )
            if shared >= math.ceil(least * max(size, length)):
                held.groups[found], held.lengths[found], held.shared[found] = group, length, shared
                found += 1
    return found


@inner
def count(
    arrays: Arrays, query: Query, least: float, window: tuple[int, int], length: int, counters: UInt64, planes: int,
    touched: NDArray[np.bool_], block: int, left: UInt64, held: Candidates, found: int,
) -> tuple[int, int]:  # fmt: skip
    """Goes through the blocks from `block` on, as long as there is room; the next block, and how many are found. No
    group is shorter than `length`."""
    while block < touched.size and found + BLOCK <= held.groups.size:
        first = (window[0] // BLOCK + block) * BLOCK
        while arrays.length_start[length + 1] <= first:
            length += 1
        needed = max(0, math.ceil(least * max(query.size, length)))
        if needed > query.many + query.rare.size:
            return touched.size, found  # the longer, the more is needed
        at, spare = block * planes * WORDS, query.columns.size - needed
        if (needed <= query.many or touched[block]) and add_columns(
            arrays.columns, query.columns, first // 64, counters, at, planes, spare, left
        ):
            found = collect(
                arrays,
                query.size,
                least,
                window,
                first,
                length,
                counters,
                at,
                planes,
                needed,
                left,
                held,
                found,
            )
        block += 1
    return block, found


@compiled
def candidates(
    arrays: Arrays, query: Query, least: float, shortest: int, longest: int
) -> Candidates:
    """All groups of these lengths that can reach the score `least`: exact counts for every block that may have any."""
    window = (arrays.length_start[shortest], arrays.length_start[longest + 1])
    planes = max(LOW, bit_length(query.columns.size + query.rare.size))
    blocks = (window[1] - 1) // BLOCK + 1 - window[0] // BLOCK if window[1] > window[0] else 0
    size = (blocks * planes + SPARE_PLANES) * WORDS
    counters, touched = np.zeros(size, np.uint64), np.zeros(blocks, np.bool_)
    add_postings(arrays, query.rare, window, counters, planes, touched)
    left = np.empty(WORDS, np.uint64)
    none = query.rare[:0]
    held = with_room(Candidates(none, none, none), 2 * BLOCK)
    block, found = 0, 0
    while True:
        block, found = count(
            arrays,
            query,
            least,
            window,
            shortest,
            counters,
            planes,
            touched,
            block,
            left,
            held,
            found,
        )
        if block == blocks:
            return Candidates(held.groups[:found], held.lengths[:found], held.shared[:found])
        held = with_room(held, 2 * held.groups.size)


class Pattern(NamedTuple):
    """A query as `edit_distance` wants it, and room for a column of its matrix."""

    distinct: Int32  # its known tokens, ascending
    bits: UInt64  # (distinct tokens, words of 64 positions) where each stands
    size: int  # in tokens
    plus: UInt64
    minus: UInt64


@compiled
def pattern_bits(sequence: Int32) -> Pattern:
    """Where each known token of `sequence` stands, for `edit_distance`."""
    distinct, known = ascending(sequence), 0
    for token in distinct:
        if token >= 0 and (known == 0 or token != distinct[known - 1]):
            distinct[known] = token
            known += 1
    distinct, words = distinct[:known], (sequence.size + 63) // 64
    bits = np.zeros((known, words), np.uint64)
    for i in range(sequence.size):
        if sequence[i] >= 0:
            bits[first_of(distinct, sequence[i]), i // 64] |= _ONE << np.uint64(i % 64)
    return Pattern(
        distinct, bits, sequence.size, np.empty(words, np.uint64), np.empty(words, np.uint64)
    )


@inner
def edit_distance(pattern: Pattern, text: Int32) -> int:
    """Levenshtein distance of the pattern to `text`: a column of the matrix a step, 64 rows a machine word, as vertical
    differences +1 and -1 (Hyyrö 2003)."""
    distinct, bits, size, plus, minus = pattern
    plus[:], minus[:] = _ALL, _ZERO
    last = _ONE << np.uint64((size - 1) % 64)
    distance = size
    for token in text:
        row = first_of(distinct, token)
        known = row < distinct.size and distinct[row] == token
        carry_plus, carry_minus = _ONE, _ZERO
        for w in range(plus.size):
            match = (bits[row, w] if known else _ZERO) | carry_minus
            diagonal = (((match & plus[w]) + plus[w]) ^ plus[w]) | match | minus[w]
            right_plus, right_minus = minus[w] | ~(diagonal | plus[w]), diagonal & plus[w]
            if w == plus.size - 1:
                distance += 1 if right_plus & last else 0
                distance -= 1 if right_minus & last else 0
            below_plus, below_minus = (
                (right_plus << _ONE) | carry_plus,
                (right_minus << _ONE) | carry_minus,
            )
            carry_plus, carry_minus = right_plus >> _TOP, right_minus >> _TOP
            plus[w], minus[w] = below_minus | ~(diagonal | below_plus), below_plus & diagonal
    return distance


class Best(NamedTuple):
    """Room for the k best segments, best score first, then newest."""

    ranks: Int32
    edits: Int32
    scores: NDArray[np.float64]


@inner
def too_late(best: Best, held: int, score: float, rank: int) -> bool:
    """Whether a segment of this score and rank, or of a worse one, has no place among the best any more."""
    last = best.scores.size - 1
    return held > last and (
        score < best.scores[last] or (score == best.scores[last] and rank > best.ranks[last])
    )


@inner
def insert(best: Best, held: int, score: float, rank: int, ed: int) -> int:
    """Puts a segment that is not too late into its place; how many are held afterwards."""
    scores, ranks, edits = best.scores, best.ranks, best.edits
    place = held
    while place > 0 and (
        scores[place - 1] < score or (scores[place - 1] == score and ranks[place - 1] > rank)
    ):
        place -= 1
    if place == scores.size:
        return held  # damaged: it is the last of the best once more
    for i in range(min(held, scores.size - 1), place, -1):
        scores[i], ranks[i], edits[i] = scores[i - 1], ranks[i - 1], edits[i - 1]
    scores[place], ranks[place], edits[place] = score, rank, ed
    return min(held + 1, scores.size)


@compiled
def fewest_first(size: int, found: Candidates) -> Int32:
    """The order in which what the candidates miss of a query of `size` tokens ascends (counting sort)."""
    missing = np.empty(found.groups.size, np.int32)
    for i in range(missing.size):
        missing[i] = max(
            0, max(found.lengths[i], size) - found.shared[i]
        )  # below 0: damaged columns
    starts = np.zeros(missing.max() + 2, np.int32)
    for number in missing:
        starts[number + 1] += 1
    starts = np.cumsum(starts)
    order = np.empty(missing.size, np.int32)
    for i in range(missing.size):
        order[starts[missing[i]]] = i
        starts[missing[i]] += 1
    return order


@inner
def verify(
    arrays: Arrays, pattern: Pattern, found: Candidates, order: Int32, least: float, without_equal: bool,
    without_document: int, best: Best, held: int,
) -> int:  # fmt: skip
    """Enters the candidates of score >= `least` into the best, by their edit distance, in the order of what they miss;
    how many are held then. A candidate whose upper bound comes too late is left out."""
    for i in order:
        group, length = found.groups[i], found.lengths[i]
        longer = max(length, pattern.size)
        bound = 1.0 - (longer - found.shared[i]) / longer
        if held == best.scores.size and bound < best.scores[held - 1]:
            continue  # most end here, before anything of them is read
        members = arrays.members[arrays.member_offsets[group] : arrays.member_offsets[group + 1]]
        if (
            members.size == 0
        ):  # damaged, as a rank that no segment has: put in front, where the caller sees it
            return insert(best, held, 2.0, -1, 0)
        if too_late(best, held, bound, members[0]):
            continue
        start = arrays.token_start[length] + (group - arrays.length_start[length]) * length
        distance = edit_distance(pattern, arrays.tokens[start : start + length])
        score = 1.0 - distance / longer
        if score < least or (without_equal and distance == 0):
            continue
        for rank in members:
            if too_late(best, held, score, rank):
                break
            if not 0 <= rank < arrays.document_of.size:
                return insert(best, held, 2.0, -1, 0)
            if arrays.document_of[rank] != without_document:
                held = insert(best, held, score, rank, distance)
    return held


@compiled
def search_one(
    arrays: Arrays,
    sequence: Int32,
    least: float,
    without_equal: bool,
    without_document: int,
    best: Best,
) -> int:
    """Fills `best` with the best segments for a query of token numbers (-1: in no group); how many there are. Lengths
    near the query's come first; a k-th best score above `least` takes its place for the others."""
    size, top, held = sequence.size, arrays.length_start.size - 2, 0
    if size == 0 or math.ceil(least * size) > top:
        return 0  # also for a text much longer than all: what is laid out of it would grow with its square
    query, pattern, enough = features(arrays, sequence), pattern_bits(sequence), least
    first, last = 0, -1  # the lengths searched so far
    for ring in RINGS:
        if held == best.scores.size:
            enough = max(least, best.scores[held - 1] - SLACK)
        bound = max(ring - SLACK, enough) if ring else enough
        shortest, longest = (
            max(1, math.ceil(bound * size)),
            min(top, math.floor(size / bound)) if bound > 0 else top,
        )
        if last < 0:
            first, last = longest + 1, longest
        for begin, end in ((shortest, first - 1), (last + 1, longest)):
            if begin <= end:
                found = candidates(arrays, query, enough, begin, end)
                if found.groups.size:
                    order = fewest_first(size, found)
                    held = verify(
                        arrays,
                        pattern,
                        found,
                        order,
                        least,
                        without_equal,
                        without_document,
                        best,
                        held,
                    )
        first, last = min(first, shortest), max(last, longest)
    return held


@compiled
def arrays_at(table: Int64) -> Arrays:
    """The postings whose `addresses` the table begins with."""
    return Arrays(
        array_at(table, 0, np.int64), array_at(table, 1, np.int64), array_at(table, 2, np.int32),
        array_at(table, 3, np.int32), array_at(table, 4, np.int16), rows_at(table, 5, np.uint64),
        array_at(table, 6, np.int64), array_at(table, 7, np.int32), array_at(table, 8, np.int32),
        array_at(table, 9, np.int32), array_at(table, 10, np.int32),
    )  # fmt: skip


@compiled
def words_at(table: Int64) -> Words:
    """The vocabulary whose `addresses` it ends with."""
    return Words(
        array_at(table, 11, np.uint8), array_at(table, 12, np.int64), array_at(table, 13, np.int32)
    )


@compiled
def best_of_each(
    table: Int64, text: UInt8, queries: Int64, k: int, least: float, without_equal: bool
) -> NDArray[np.float64]:
    """The at most k best segments for every query, best first: (found, 4) number of the query, rank, edit distance,
    score. table: `addresses` of `Arrays` and `Words`. queries: (queries, 3) where its bytes end in `text`, whether they
    are tokens, one a line, and the document that is left out."""
    arrays, words = arrays_at(table), words_at(table)
    numbers = np.empty(text.size, np.int32)
    best = Best(np.empty(k, np.int32), np.empty(k, np.int32), np.empty(k, np.float64))
    rows, found, start = np.empty((queries.shape[0] * k, 4), np.float64), 0, 0
    for i in range(queries.shape[0]):
        end, one_a_line, document = queries[i]
        size = encode(words, text, start, end, one_a_line != 0, numbers)
        held = search_one(arrays, numbers[:size], least, without_equal, document, best)
        for j in range(held):
            row = rows[found + j]
            row[0], row[1], row[2], row[3] = i, best.ranks[j], best.edits[j], best.scores[j]
        start, found = end, found + held
    return rows[:found]
