"""The inner loop of retrieval, compiled by numba: shared tokens counted for 512 groups at once,
then edit distances.

Everything is exact. A score of at least θ means ED <= (1-θ)·max(|x|, |x'|), hence a window of
lengths and at least ⌈θ·max⌉ shared tokens, counted with multiplicity; 1 - (max - shared)/max is an
upper bound of the score.

The counters are bit-sliced: plane p holds bit p of the counts of 512 groups, side by side in one
value (`Lanes`).

    group         0 1 2 3 4 ...
    ones          1 0 1 1 0        group 0 has counted 1 + 4 = 5, group 1 has counted 2 ...
    twos          0 1 0 1 0
    fours         1 0 0 0 0

Groups are gone through in tiles of 64 blocks, whose counters stay near the processor. Rare features
come as postings: what a group shares of them is counted in a byte. With the most that any group of
a block has of them, and how many of the query's frequent features any of its groups has, most
blocks are left before anything else of them is read. In the others it is then known how many of the
query's frequent features a group may miss, and misses are counted from there up to the end of the
counter: where it overflows, the group is out, and a block without groups is left at once. A
frequent feature is a column of one bit a group; two columns and the ones go through a
carry-save adder (three bits in, sum and carry out: a handful of instructions for 512 groups), four
columns make one carry into the fours, and so on up. The planes up to the sixteens stay in
registers, higher ones stand in memory.

What equals the query is found by its hash, before anything is counted. Lengths near the query's
come next, for there the best matches are; the k-th best score so far then stands for θ.

Nothing here uses numpy's functions or allocates. Each such convenience takes numba up to a second
to compile; and where nothing is allocated no references are counted, which took longer than the
work. The caller brings the room (`Room`). Python calls `best_of_each`, kept as machine code
(`native.py`). Its larger functions are parts, its small ones inner ones (`compiling.py`).
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import hot, inner, part
from tmnmt.index.fuzzy import SLACK
from tmnmt.index.kernels.arrays import (
    COLUMNS,
    COMPLETED,
    COUNT,
    DOCUMENTS,
    HITS,
    LIMIT,
    LIST_BLOCK,
    PARTS,
    PARTS_COUNT,
    QUERIES,
    QUERY,
    REQUIRED,
    ROOM,
    ROOM_SIZE,
    WIDTH_BITS,
    WITHOUT_EQUAL,
    Arrays,
    Job,
    Words,
)
from tmnmt.index.kernels.lanes import (
    BLOCK,
    WORDS,
    Lanes,
    any_set,
    bits_of,
    load,
    lowest_set,
    most_of,
    prefetch,
    repeat,
    store,
)
from tmnmt.index.kernels.packed import FACTOR, bits_at, block_from, hash_of, is_inside, mix
from tmnmt.index.kernels.tokens import encode

Int16 = NDArray[np.int16]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]
UInt32 = NDArray[np.uint32]
Float64 = NDArray[np.float64]
UInt64 = NDArray[np.uint64]
# 0 as a number like others: for the literal 0 numba compiles what is called with it once more
_NONE = cast(int, np.int64(0))
_OF_WIDTH = (1 << WIDTH_BITS) - 1
_BYTE_ONE = np.uint8(1)
_HALF, _LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
_ZERO, _ONE, _TOP, _ALL = np.uint64(0), np.uint64(1), np.uint64(63), np.uint64(0xFFFFFFFFFFFFFFFF)
# 64 groups a word, 512 a block
_WORD, _WORD_BITS, _BLOCK_BITS = np.uint64(WORDS), np.uint64(6), np.uint64(9)
LOW = 5  # planes in registers: counts up to 31
# behind the last counter: it overflows into them where damaged postings repeat a group
SPARE_PLANES = 64
TABLE, JOB = 2 * (len(Arrays._fields) + len(Words._fields)), len(Job._fields)
PREFETCH = 6 * WORDS  # a column is asked for so far ahead of the block that is counted
TILE_BLOCKS = 64  # whose counters stay near the processor, and which a word has a bit for
TILE = TILE_BLOCKS * BLOCK  # groups
END = 1 << 31  # behind all groups
NEARLY_EQUAL = 1.0 - 1e-5  # no score of texts of fewer tokens is between that and 1
MOST_RARE = 255  # features that a byte counts
RINGS = (0.8, 0.0)  # lengths that can reach such a score are searched before the others


class Room(NamedTuple):
    """Where a search writes: nothing is allocated by compiled code. All of it is one array of the
    caller, of `room_needed` words."""

    sorted: Int32  # (tokens of the query,) the query's numbers, ascending
    # (tokens + 3,) of the query, rarest first, filled up to fours with the empty one
    columns: Int32
    rare: Int32  # (tokens,) features of the query that have postings
    distinct: Int32  # (tokens,) its known tokens, ascending
    bits: UInt64  # (distinct tokens, words of 64 positions), flat: where each stands
    plus: UInt64  # (words of 64 positions,) a column of the edit distance's matrix
    minus: UInt64
    survivors: UInt64  # (8,)
    counters: UInt64  # (planes, 8 words), flat, and spare ones
    presence: UInt64  # (planes,) of how many columns any group of each block has
    cursors: Int64  # (tokens, 4), flat: how far the postings of every feature are read
    hits: UInt8  # (groups of a tile,) how many of the features with postings each has
    words_of_hits: UInt64  # the same bytes
    groups: Int32  # (groups,) candidates
    lengths: Int32
    shared: Int32  # tokens shared with the query, with multiplicity
    missing: Int32
    order: Int32
    starts: Int32  # (longest + tokens + 2,)


@inner
def planes_of(size: int) -> int:
    """Bits that the counts of a query of `size` tokens need, and of columns filled up to fours."""
    planes = LOW
    while (size + 3) >> planes:
        planes += 1
    return planes


@part
def carved(address: int, size: int, groups: int, longest: int) -> tuple[int, Room]:
    """The room at an address for a query of `size` tokens, and where it ends."""
    offset, planes, spots = address, planes_of(size), (size + 63) // 64
    token_bytes, group_bytes = 8 * (size // 2 + 2), 8 * (groups // 2 + 1)
    counters = (planes + SPARE_PLANES) * WORDS
    bits_offset = offset + 4 * token_bytes
    bits = bits_offset + 8 * size * spots
    survivors = bits + 16 * spots
    presence = survivors + 8 * (WORDS + counters)
    cursors = presence + 8 * (planes + SPARE_PLANES)
    hits = cursors + 32 * size
    first_group = hits + TILE
    starts = first_group + 5 * group_bytes
    return starts + 8 * ((longest + size) // 2 + 2), Room(
        array_of(offset, size, np.int32),
        array_of(offset + token_bytes, size + 3, np.int32),
        array_of(offset + 2 * token_bytes, size, np.int32),
        array_of(offset + 3 * token_bytes, size, np.int32),
        array_of(bits_offset, size * spots, np.uint64),
        array_of(bits, spots, np.uint64),
        array_of(bits + 8 * spots, spots, np.uint64),
        array_of(survivors, WORDS, np.uint64),
        array_of(survivors + 8 * WORDS, counters, np.uint64),
        array_of(presence, planes + SPARE_PLANES, np.uint64),
        array_of(cursors, 4 * size, np.int64),
        array_of(hits, TILE, np.uint8),
        array_of(hits, TILE // 8, np.uint64),
        array_of(first_group, groups, np.int32),
        array_of(first_group + group_bytes, groups, np.int32),
        array_of(first_group + 2 * group_bytes, groups, np.int32),
        array_of(first_group + 3 * group_bytes, groups, np.int32),
        array_of(first_group + 4 * group_bytes, groups, np.int32),
        array_of(starts, longest + size + 2, np.int32),
    )


class Query(NamedTuple):
    """The features of a query that occur in the memory, and the pattern for `edit_distance`."""

    size: int  # in tokens, unknown ones too
    columns: Int32  # rarest first, filled up to fours with the empty one
    column_count: int  # columns without that
    filled: int  # with that
    rare: Int32  # features that have postings, those with the fewest first
    rare_count: int  # of them
    uncounted: int  # further ones, which every group is taken to have
    planes: int  # bits of a count
    distinct: Int32  # its known tokens, ascending
    distinct_count: int  # of them
    bits: UInt64  # (distinct tokens, words of 64 positions), flat: where each stands
    spots: int  # words of 64 positions
    plus: UInt64  # (spots,) room for a column of the matrix
    minus: UInt64


@part
def sort(numbers: Int32 | UInt64, size: int) -> None:
    """Sorts the first `size` numbers in place (Shell 1959, gaps by Knuth: 1, 4, 13 ...)."""
    gap = 1
    while gap < size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, size):
            number, place = numbers[i], i
            while place >= gap and numbers[place - gap] > number:
                numbers[place] = numbers[place - gap]
                place -= gap
            numbers[place] = number
        gap //= 3


@part
def query_of(arrays: Arrays, sequence: Int32, size: int, room: Room) -> Query:
    """The features and the pattern of a query: the first `size` token numbers (-1: in no group)."""
    tokens, columns, rare, distinct = room.sorted, room.columns, room.rare, room.distinct
    keys = room.bits  # which are written later
    for i in range(size):
        tokens[i] = sequence[i]
    sort(tokens, size)
    column_count, rare_count, distinct_count, occurrence = 0, 0, 0, 0
    for i in range(size):
        token = tokens[i]
        if token < 0:
            continue
        if distinct_count > 0 and token == distinct[distinct_count - 1]:
            occurrence += 1
        else:
            occurrence = 0
            distinct[distinct_count] = token
            distinct_count += 1
        feature = arrays.feature_start[token] + occurrence
        if feature >= arrays.feature_start[token + 1]:
            continue
        if arrays.column_of[feature] >= 0:
            columns[column_count] = -arrays.column_of[feature]
            column_count += 1
        else:
            count = arrays.posting_start[feature + 1] - arrays.posting_start[feature]
            keys[rare_count] = np.uint64(count) << _HALF | np.uint64(feature)
            rare_count += 1
    sort(keys, rare_count)
    for i in range(rare_count):
        rare[i] = keys[i] & _LOW_HALF
    sort(columns, column_count)
    filled = (column_count + 3) // 4 * 4
    for i in range(column_count):
        columns[i] = -columns[i]
    for i in range(column_count, filled):
        columns[i] = arrays.columns.size // width_of(arrays) - 1
    spots = (size + 63) // 64
    for i in range(distinct_count * spots):
        room.bits[i] = _ZERO
    for i in range(size):
        if sequence[i] >= 0:
            row = first_of(distinct, 0, distinct_count, sequence[i])
            room.bits[row * spots + i // 64] |= _ONE << np.uint64(i % 64)
    return Query(
        size,
        columns,
        column_count,
        filled,
        rare,
        min(rare_count, MOST_RARE),
        max(rare_count - MOST_RARE, 0),
        planes_of(filled + min(rare_count, MOST_RARE) - 3),
        distinct,
        distinct_count,
        room.bits,
        spots,
        room.plus,
        room.minus,
    )


@inner
def width_of(arrays: Arrays) -> int:
    """Words of a column."""
    return (arrays.member_offsets.size - 1 + BLOCK - 1) // BLOCK * WORDS


@inner
def tiles_of(arrays: Arrays) -> int:
    """How many tiles there are."""
    return (arrays.member_offsets.size - 1 + TILE - 1) // TILE


@inner
def token_width(arrays: Arrays) -> int:
    """Bits of a token's number."""
    width = 0
    while (arrays.feature_start.size - 2) >> width > 0:
        width += 1
    return width


@inner
def first_of(ascending: Int32, begin: int, end: int, number: int) -> int:
    """Where the first item of [begin, end) of at least `number` stands (binary search)."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def clear(words: UInt64) -> None:
    """Sets all to 0."""
    for place in range(0, words.size, WORDS):
        store(words, place, repeat(_ZERO))


@inner
def list_block(arrays: Arrays, feature: int, number: int) -> tuple[int, int, int, int]:
    """Of a block of a list: its first group, how many groups it has, the bit where the differences
    of the others begin, and the width of these. Where it is damaged, the list ends."""
    offset = LIST_BLOCK * (number - arrays.posting_block[feature])
    size = arrays.posting_start[feature + 1] - arrays.posting_start[feature]
    count, header = min(LIST_BLOCK, size - offset), arrays.posting_header[number]
    is_right = is_inside(arrays.postings, header, count)
    group = int(arrays.posting_first[number]) if is_right else END
    return group, count, header >> WIDTH_BITS, header & _OF_WIDTH


@part
def open_lists(arrays: Arrays, query: Query, first: int, cursors: Int64) -> None:
    """Puts the cursor of every feature with postings where its first group from `first` on may
    stand: (features, 4), that group, the block of the list, its place in that, and the bit where
    the difference to the next one stands."""
    for i in range(query.rare_count):
        feature = query.rare[i]
        begin, end = arrays.posting_block[feature], arrays.posting_block[feature + 1]
        number = block_from(arrays.posting_first, begin, end, first)
        group, offset = END, 0
        if number < end:
            group, _, offset, _ = list_block(arrays, feature, number)
        cursors[4 * i] = group
        cursors[4 * i + 1] = number
        cursors[4 * i + 2] = 0
        cursors[4 * i + 3] = offset


@part
def add_postings(
    arrays: Arrays, query: Query, first: int, begin: int, end: int, room: Room
) -> None:
    """Counts the features with postings for every group of the tile [begin, end), from `first` on.
    The cursors go to the end of the tile."""
    hits, cursors = room.hits, room.cursors
    start = max(first, begin)
    for i in range(query.rare_count):
        group = cursors[4 * i]
        if group >= end:
            continue
        feature, number, place = query.rare[i], cursors[4 * i + 1], cursors[4 * i + 2]
        last = arrays.posting_block[feature + 1] - 1
        _, count, _, width = list_block(arrays, feature, number)
        offset = cursors[4 * i + 3]
        while group < end:
            if group >= start:
                hits[np.uint64(group - begin)] += _BYTE_ONE  # as such it needs no sign
            place += 1
            if place < count:
                group += bits_at(arrays.postings, offset, width)
                offset += width
            elif number < last:
                number, place = number + 1, 0
                group, count, offset, width = list_block(arrays, feature, number)
            else:
                group = END
        cursors[4 * i] = group
        cursors[4 * i + 1] = number
        cursors[4 * i + 2] = place
        cursors[4 * i + 3] = offset


@hot
def spread(room: Room, planes: int, block: int, maximum: int) -> None:
    """Writes the hits of a block, `maximum` for a group at most, to the planes."""
    for plane in range(planes):
        for word in range(WORDS):
            bits = _ZERO
            if maximum >> plane:
                bits = bits_of(room.hits, block * BLOCK + word * 64, plane)
            room.counters[plane * WORDS + word] = bits


@part
def add_presence(arrays: Arrays, query: Query, tile: int, presence: UInt64) -> None:
    """Counts for all blocks of a tile how many of the query's columns any of their groups has: a
    word a plane."""
    tiles = tiles_of(arrays)
    for plane in range(query.planes):
        presence[plane] = _ZERO
    for i in range(query.column_count):
        carry, plane = arrays.column_blocks[query.columns[i] * tiles + tile], 0
        while carry:
            bits = presence[plane]
            presence[plane] = bits ^ carry
            carry &= bits
            plane += 1


@inner
def count_at(presence: UInt64, planes: int, block: int) -> int:
    """How many of the query's columns any group of a block has."""
    count = 0
    for plane in range(planes):
        count += int(presence[plane] >> np.uint64(block) & _ONE) << plane
    return count


@hot
def collect(
    arrays: Arrays,
    query: Query,
    min_score: float,
    first: int,
    end: int,
    begin: int,
    length: int,
    required: int,
    room: Room,
    count: int,
) -> int:
    """Appends the groups of a block that can reach `min_score`; how many there are then.
    `room.left` has all of them, and some outside the window [first, end) or too long; `length` is
    the block's least."""
    for word in range(WORDS):
        bits = room.survivors[word]
        while bits:
            bit = lowest_set(bits)
            bits &= bits - _ONE
            group = begin + word * 64 + bit
            if group < first or group >= end:
                continue
            while arrays.length_start[length + 1] <= group:
                length += 1
            shared = required + query.uncounted
            for plane in range(query.planes):
                missed = ~room.counters[plane * WORDS + word] >> np.uint64(bit) & _ONE
                shared += int(missed) << plane
            if shared >= math.ceil(min_score * max(query.size, length)):
                room.groups[count] = group
                room.lengths[count] = length
                room.shared[count] = shared
                count += 1
    return count


@inner
def candidates(
    arrays: Arrays, query: Query, min_score: float, shortest: int, longest: int, room: Room
) -> int:
    """Writes all groups of these lengths that can reach the score `min_score` to `room`, in order:
    exact counts for every block that may have any. How many there are."""
    first, end, count = arrays.length_start[shortest], arrays.length_start[longest + 1], _NONE
    if first >= end:
        return count
    width, length = width_of(arrays), shortest
    open_lists(arrays, query, first, room.cursors)
    for tile in range(first // TILE, (end - 1) // TILE + 1):
        start, stop = tile * TILE, min(tile * TILE + TILE, end)
        clear(room.words_of_hits)
        add_postings(arrays, query, first, start, stop, room)
        add_presence(arrays, query, tile, room.presence)
        for block in range(max(first - start, 0) // BLOCK, (stop - 1 - start) // BLOCK + 1):
            begin = start + block * BLOCK
            while arrays.length_start[length + 1] <= begin:
                length += 1
            required = math.ceil(min_score * max(query.size, length)) - query.uncounted
            required = max(0, required)
            if required > query.column_count + query.rare_count:
                return count  # the longer, the more is needed
            maximum = most_of(room.hits, block * BLOCK)
            if required > maximum + count_at(room.presence, query.planes, block):
                continue
            spread(room, query.planes, block, maximum)
            if add_columns(
                arrays.columns,
                width,
                query,
                begin // 64,
                room.counters,
                query.filled - required,
                room.survivors,
            ):
                count = collect(
                    arrays,
                    query,
                    min_score,
                    first,
                    end,
                    begin,
                    length,
                    required,
                    room,
                    count,
                )
    return count


@hot
def edit_distance(query: Query, tokens: UInt64, width: int, begin: int, end: int) -> int:
    """Levenshtein distance of the query to the tokens [begin, end), each of `width` bits: a column
    of the matrix a step, 64 rows a machine word, as vertical differences +1 and -1 (Hyyrö 2003)."""
    plus, minus, spots = query.plus, query.minus, query.spots
    for w in range(spots):
        plus[w] = _ALL
        minus[w] = _ZERO
    last = _ONE << np.uint64((query.size - 1) % 64)
    distance = query.size
    for i in range(begin, end):
        token = bits_at(tokens, i * width, width)
        row = first_of(query.distinct, 0, query.distinct_count, token)
        is_present = row < query.distinct_count and query.distinct[row] == token
        carry_plus, carry_minus = _ONE, _ZERO
        for w in range(spots):
            match = (query.bits[row * spots + w] if is_present else _ZERO) | carry_minus
            diagonal = (((match & plus[w]) + plus[w]) ^ plus[w]) | match | minus[w]
            right_plus = minus[w] | ~(diagonal | plus[w])
            right_minus = diagonal & plus[w]
            if w == spots - 1:
                distance += 1 if right_plus & last else 0
                distance -= 1 if right_minus & last else 0
            below_plus = (right_plus << _ONE) | carry_plus
            below_minus = (right_minus << _ONE) | carry_minus
            carry_plus, carry_minus = right_plus >> _TOP, right_minus >> _TOP
            plus[w] = below_minus | ~(diagonal | below_plus)
            minus[w] = below_plus & diagonal
    return distance


@inner
def add_three(x: Lanes, y: Lanes, z: Lanes) -> tuple[Lanes, Lanes]:
    """A carry-save adder: sum and carry of three bits, 512 times."""
    difference = x ^ y
    return difference ^ z, (x & y) | (difference & z)


@inner
def begin(counters: UInt64, planes: int, spare: int) -> Lanes:
    """Turns the hits of a block into the complement of what its groups may miss, which is hits +
    `spare`, so that one miss too many overflows. Returns the groups that are not out already: those
    that may miss none or more."""
    carry = repeat(_ZERO)
    for place in range(0, planes * WORDS, WORDS):
        hits, bit = load(counters, place), repeat(_ALL if spare & 1 else _ZERO)
        difference = hits ^ bit
        store(counters, place, difference ^ carry ^ repeat(_ALL))
        carry = (hits & bit) | (difference & carry)
        spare >>= 1
    return carry if spare < 0 else repeat(_ALL)


@hot
def add_columns(
    columns: UInt64,
    width: int,
    query: Query,
    word: int,
    counters: UInt64,
    spare: int,
    survivors: UInt64,
) -> bool:
    """Counts what the groups of the block that begins at `word` miss of the `chosen` columns (by
    fours) in the block's planes, `counters`. Writes the groups that are not out to `survivors`;
    False as soon as there is none."""
    planes, selected, full_mask = query.planes, query.columns, repeat(_ALL)
    alive = begin(counters, planes, spare)
    if not any_set(alive):
        return False
    units, twos = load(counters, 0), load(counters, WORDS)
    fours, eights = load(counters, 2 * WORDS), load(counters, 3 * WORDS)
    sixteens = load(counters, 4 * WORDS)
    for i in range(0, query.filled, 4):
        a, b, c, d = (
            selected[i] * width,
            selected[i + 1] * width,
            selected[i + 2] * width,
            selected[i + 3] * width,
        )
        for column in (a, b, c, d):
            prefetch(columns, column + word + PREFETCH)
        units, carry = add_three(
            units, load(columns, a + word) ^ full_mask, load(columns, b + word) ^ full_mask
        )
        units, second_carry = add_three(
            units, load(columns, c + word) ^ full_mask, load(columns, d + word) ^ full_mask
        )
        twos, carry = add_three(twos, carry, second_carry)
        fours, carry = fours ^ carry, fours & carry
        eights, carry = eights ^ carry, eights & carry
        sixteens, carry = sixteens ^ carry, sixteens & carry
        for place in range(LOW * WORDS, planes * WORDS, WORDS):
            bits = load(counters, place)
            store(counters, place, bits ^ carry)
            carry = bits & carry
        alive = alive & (carry ^ full_mask)
        if not any_set(alive):
            return False
    store(counters, 0, units)
    store(counters, WORDS, twos)
    store(counters, 2 * WORDS, fours)
    store(counters, 3 * WORDS, eights)
    store(counters, 4 * WORDS, sixteens)
    store(survivors, 0, alive)
    return True


class Best(NamedTuple):
    """Room for the k best segments, best score first, then newest."""

    ranks: Int32
    edits: Int32
    scores: Float64


@inner
def too_late(best: Best, ranked: int, score: float, rank: int) -> bool:
    """Whether a segment of this score and rank, or of a worse one, has no place among the best any
    more."""
    last = best.scores.size - 1
    return ranked > last and (
        score < best.scores[last] or (score == best.scores[last] and rank > best.ranks[last])
    )


@part
def insert(best: Best, ranked: int, score: float, rank: int, ed: int) -> int:
    """Puts a segment that is not too late into its place; how many there are then."""
    scores, ranks, edits = best.scores, best.ranks, best.edits
    place = ranked
    while place > 0 and (
        scores[place - 1] < score or (scores[place - 1] == score and ranks[place - 1] > rank)
    ):
        place -= 1
    if place == scores.size:
        return ranked  # damaged: it is the last of the best once more
    for i in range(min(ranked, scores.size - 1), place, -1):
        scores[i] = scores[i - 1]
        ranks[i] = ranks[i - 1]
        edits[i] = edits[i - 1]
    scores[place] = score
    ranks[place] = rank
    edits[place] = ed
    return min(ranked + 1, scores.size)


@part
def fewest_first(size: int, count: int, room: Room) -> None:
    """Writes the order in which what the candidates miss of a query of `size` tokens ascends
    (counting sort)."""
    missing, starts, maximum = room.missing, room.starts, 0
    for i in range(count):  # below 0: damaged columns
        missing[i] = max(0, max(int(room.lengths[i]), size) - room.shared[i])
        maximum = max(maximum, int(missing[i]))
    for number in range(maximum + 2):
        starts[number] = 0
    for i in range(count):
        starts[missing[i] + 1] += 1
    for number in range(maximum):
        starts[number + 1] += starts[number]
    for i in range(count):
        room.order[starts[missing[i]]] = i
        starts[missing[i]] += 1


class Limits(NamedTuple):
    """What a search is to find in a part."""

    min_score: float
    without_equal: bool
    without_document: int
    keeps: UInt8  # (segments,) by rank, 0 for those that are left out; empty: all are kept
    dead: UInt32  # ids that are left out, ascending


@part
def is_found(arrays: Arrays, limits: Limits, rank: int) -> bool:
    """Whether the segment of a rank may be found."""
    if arrays.document_of[rank] == limits.without_document:
        return False
    if limits.keeps.size > 0 and limits.keeps[rank] == 0:
        return False
    number = arrays.ids[rank]
    low, high = 0, limits.dead.size
    while low < high:
        middle = (low + high) // 2
        if limits.dead[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low == limits.dead.size or bool(limits.dead[low] != number)


@part
def insert_members(
    arrays: Arrays, limits: Limits, group: int, score: float, distance: int, best: Best, ranked: int
) -> int:
    """Enters the segments of a group that may be found into the best; how many there are then."""
    for member in range(arrays.member_offsets[group], arrays.member_offsets[group + 1]):
        rank = int(arrays.members[member])
        if too_late(best, ranked, score, rank):
            break
        if not 0 <= rank < arrays.document_of.size:  # damaged: in front, where the caller sees it
            return insert(best, ranked, 2.0, -1, 0)
        if is_found(arrays, limits, rank):
            ranked = insert(best, ranked, score, rank, distance)
    return ranked


@part
def verify(
    arrays: Arrays,
    query: Query,
    room: Room,
    count: int,
    limits: Limits,
    equal_group: int,
    best: Best,
    ranked: int,
) -> tuple[int, int]:
    """Enters the candidates within the limits into the best, by their edit distance, in the order
    of what they miss; how many there are then, and how many distances were computed. A candidate
    whose upper bound comes too late is left out, and so is the group that equals the query."""
    token_bits, distances = token_width(arrays), _NONE
    for i in range(count):
        candidate = room.order[i]
        group, length = int(room.groups[candidate]), int(room.lengths[candidate])
        longer = max(length, query.size)
        bound = 1.0 - (longer - room.shared[candidate]) / longer
        if ranked == best.scores.size and bound < best.scores[ranked - 1]:
            continue  # most end here, before anything of them is read
        first, end = arrays.member_offsets[group], arrays.member_offsets[group + 1]
        if (
            first >= end
        ):  # damaged, as a rank that no segment has: in front, where the caller sees it
            return insert(best, ranked, 2.0, -1, 0), distances
        if group == equal_group or too_late(best, ranked, bound, int(arrays.members[first])):
            continue
        start = arrays.token_start[length] + (group - arrays.length_start[length]) * length
        distance = edit_distance(query, arrays.tokens, token_bits, start, start + length)
        distances += 1
        score = 1.0 - distance / longer
        if score >= limits.min_score and (distance > 0 or not limits.without_equal):
            ranked = insert_members(arrays, limits, group, score, distance, best, ranked)
    return ranked, distances


@part
def same_group(arrays: Arrays, sequence: Int32, size: int) -> int:
    """The group that equals a sequence, by its hash, in the order of which groups of one length
    stand; -1 where there is none."""
    hashed, width = hash_of(sequence, 0, size), token_width(arrays)
    low, end = arrays.length_start[size], arrays.length_start[size + 1]
    high, start = end, arrays.token_start[size] - low * size
    while low < high:
        middle = (low + high) // 2
        if packed_hash(arrays.tokens, start + middle * size, size, width) < hashed:
            low = middle + 1
        else:
            high = middle
    while low < end:
        shared, place = 0, (start + low * size) * width
        while shared < size and bits_at(arrays.tokens, place, width) == sequence[shared]:
            shared += 1
            place += width
        if shared == size:
            return int(low)
        if packed_hash(arrays.tokens, start + low * size, size, width) != hashed:
            return -1
        low += 1
    return -1


@inner
def packed_hash(tokens: UInt64, start: int, size: int, width: int) -> np.uint64:
    """The hash of the tokens from `start` on, each of `width` bits."""
    mixed = FACTOR
    for i in range(start, start + size):
        mixed = mix(mixed, bits_at(tokens, i * width, width))
    return mixed


@inner
def search_one(
    arrays: Arrays,
    query: Query,
    sequence: Int32,
    room: Room,
    limits: Limits,
    best: Best,
    work: Int64,
) -> int:
    """Fills `best` with the best segments for a query; how many there are. `work` counts candidates
    and edit distances. What equals the query
    comes first, for that is found by its hash; then lengths near the query's. A k-th best score
    above the least one takes its place for the others."""
    size, top, enough = query.size, arrays.length_start.size - 2, limits.min_score
    ranked, equal_group = _NONE, -1
    if size <= top and not limits.without_equal:
        equal_group = same_group(arrays, sequence, size)
        if equal_group >= 0:
            ranked = insert_members(arrays, limits, equal_group, 1.0, 0, best, ranked)
    first, last = 0, -1  # the lengths searched so far
    for ring in RINGS:
        if ranked == best.scores.size:
            enough = max(limits.min_score, best.scores[ranked - 1] - SLACK)
        if enough > NEARLY_EQUAL and not limits.without_equal:
            break
        bound = max(ring - SLACK, enough) if ring else enough
        shortest, longest = max(1, math.ceil(bound * size)), top
        if bound > 0:
            longest = min(top, math.floor(size / bound))
        if last < 0:
            first, last = longest + 1, longest
        for is_shorter in (True, False):
            begin, end = (shortest, first - 1) if is_shorter else (last + 1, longest)
            if begin <= end:
                count = candidates(arrays, query, enough, begin, end, room)
                fewest_first(size, count, room)
                ranked, distances = verify(
                    arrays, query, room, count, limits, equal_group, best, ranked
                )
                work[0] += count
                work[1] += distances
        first, last = min(first, shortest), max(last, longest)
    return ranked


@part
def merge(scores: Float64, count: int, further: Float64, further_count: int) -> int:
    """Enters further scores into the best `count` ones, both descending; how many there are
    then."""
    for i in range(further_count):
        place = count
        if count == scores.size:
            if further[i] <= scores[count - 1]:
                break
            place -= 1
        else:
            count += 1
        while place > 0 and scores[place - 1] < further[i]:
            scores[place] = scores[place - 1]
            place -= 1
        scores[place] = further[i]
    return count


@inner
def arrays_at(table: Int64) -> Arrays:
    """The postings whose `addresses`, flat, the table begins with."""
    return Arrays(
        array_of(table[0], table[1], np.int64),
        array_of(table[2], table[3], np.int64),
        array_of(table[4], table[5], np.uint64),
        array_of(table[6], table[7], np.int32),
        array_of(table[8], table[9], np.int16),
        array_of(table[10], table[11], np.uint64),
        array_of(table[12], table[13], np.uint64),
        array_of(table[14], table[15], np.int64),
        array_of(table[16], table[17], np.int64),
        array_of(table[18], table[19], np.int32),
        array_of(table[20], table[21], np.int64),
        array_of(table[22], table[23], np.uint64),
        array_of(table[24], table[25], np.int32),
        array_of(table[26], table[27], np.int32),
        array_of(table[28], table[29], np.int32),
        array_of(table[30], table[31], np.uint32),
    )


@inner
def words_at(table: Int64) -> Words:
    """The vocabulary whose `addresses` it ends with."""
    return Words(
        array_of(table[32], table[33], np.uint8),
        array_of(table[34], table[35], np.int64),
        array_of(table[36], table[37], np.int32),
    )


def best_of_each(job_address: int, text_address: int) -> int:
    """The at most k best segments of every part for every query, best first; fewer of a part where
    those before it have k better ones. job: a `Job`. Where there is not enough room it stops and
    says how many words it needs; called again with them and what it found, it goes on."""
    job = array_of(job_address, JOB, np.int64)
    count, k, parts = job[COUNT], job[LIMIT], job[PARTS_COUNT]
    queries, size_of_text = array_of(job[QUERIES], QUERY * count, np.int64), 0
    least_scores = array_of(job[QUERIES], QUERY * count, np.float64)
    documents = array_of(job[DOCUMENTS], parts * count, np.int64)
    searched = array_of(job[PARTS], 4 * parts, np.int64)
    for i in range(count):
        size_of_text = queries[QUERY * i]
    text = array_of(text_address, size_of_text, np.uint8)
    begin, room_end = job[ROOM] + 8 * COLUMNS * k * parts * count, job[ROOM] + 8 * job[ROOM_SIZE]
    numbers_at = begin + 24 * k
    ours = numbers_at + 8 * (size_of_text // 2 + 1)
    if ours > room_end:
        job[REQUIRED] = (ours - job[ROOM]) // 8
        return 0
    rows = array_of(job[ROOM], COLUMNS * k * parts * count, np.float64)
    best = Best(
        array_of(begin, k, np.int32),
        array_of(begin + 4 * k, k, np.int32),
        array_of(begin + 8 * k, k, np.float64),
    )
    top_scores = array_of(begin + 16 * k, k, np.float64)  # of all parts so far
    numbers = array_of(numbers_at, size_of_text, np.int32)
    while job[COMPLETED] < count:
        i = job[COMPLETED]
        row, hits, scored = QUERY * i, job[HITS], _NONE
        start = queries[row - QUERY] if i else 0
        work = array_of(job[QUERIES] + 8 * (row + 3), 2, np.int64)
        work[0] = work[1] = 0
        for number in range(parts):
            table = array_of(searched[4 * number], TABLE, np.int64)
            arrays, words = arrays_at(table), words_at(table)
            top, groups = arrays.length_start.size - 2, arrays.member_offsets.size - 1
            min_score = least_scores[row + 2]
            if scored == k:
                min_score = max(min_score, top_scores[k - 1] - SLACK)
            size = encode(words, text, start, queries[row], queries[row + 1] != 0, numbers)
            if size == 0 or math.ceil(min_score * size) > top:
                continue  # a longer text would need the square of its size
            end, room = carved(ours, size, groups, top)
            if end > room_end:
                job[REQUIRED] = (end - job[ROOM]) // 8
                return 0
            keeps, dead = searched[4 * number + 1], searched[4 * number + 2]
            limits = Limits(
                min_score,
                job[WITHOUT_EQUAL] != 0,
                documents[number * count + i],
                array_of(keeps, arrays.document_of.size if keeps else 0, np.uint8),
                array_of(dead, searched[4 * number + 3], np.uint32),
            )
            query = query_of(arrays, numbers, size, room)
            ranked = search_one(arrays, query, numbers, room, limits, best, work)
            for j in range(ranked):
                hit = COLUMNS * hits
                rows[hit] = i
                rows[hit + 1] = number
                rows[hit + 2] = best.ranks[j]
                rows[hit + 3] = best.edits[j]
                rows[hit + 4] = best.scores[j]
                hits += 1
            scored = merge(top_scores, scored, best.scores, ranked)
        job[HITS] = hits
        job[COMPLETED] += 1
    job[REQUIRED] = 0
    return 0
