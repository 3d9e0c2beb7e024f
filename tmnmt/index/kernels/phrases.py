"""Where a phrase stands, compiled: the newest segments whose sequence has its words.

The words come as lists of positions (`index/embedded/positions.py`). Where one is rare, its
positions are gone through, and it is looked up whether the other words stand beside each. A word
that is far more frequent has one bit for every position of the side; another is looked for in its
lists by halving. A sequence whose newest segment is older than the k newest found is not looked at.

Where no word is rare, all have bits, and the sequences are gone through: first those of the newest
segments, which mostly give k at once; else all, as they lie.

Nothing here allocates; what is read from a disk is looked at before it leads anywhere. Python calls
`newest_with`, kept as machine code (`native.py`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import hot, inner, part
from tmnmt.index.kernels.arrays import (
    BLOCK_BITS,
    DAMAGE,
    LIST_BLOCK,
    NEWEST_COUNT,
    WIDTH_BITS,
    Sought,
)
from tmnmt.index.kernels.lanes import lowest_set
from tmnmt.index.kernels.packed import bits_at, block_from, is_inside

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]
UInt64 = NDArray[np.uint64]
FIELDS = len(Sought._fields)
_ONE, _ALL, _WORD = np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(63)
_OF_WIDTH = (1 << WIDTH_BITS) - 1
_PAD = 64  # bits before the first position, so that what is around it can be read


class Side(NamedTuple):
    """What is told of a side of the memory, and where its words of the phrase stand."""

    size: int  # positions
    start: Int64  # the lists of positions, as `PackedLists`
    block_start: Int64
    firsts: Int32
    headers: Int64
    packed: UInt64
    stretches: Int64
    lengths: Int64
    first_groups: Int64
    stretch_at: Int32
    member_offsets: Int32
    members: Int32
    group_of: Int32  # of every rank
    list_start: Int64  # (words + 1,) of `lists`
    lists: Int64  # those of every word of the phrase
    bits_at: Int64  # (words,) the address of the bits of every word; 0: it has none
    words_of_bits: int


class PhraseQuery(NamedTuple):
    """Of a phrase: how many words, which of them is gone through, and how far apart they may be."""

    words: int
    rarest: int
    max_distance: int  # tokens; 0: the words stand in a row
    all_kept: bool
    newest: int  # segments that are looked at one by one


@inner
def count_of(side: Side, row: int, block: int) -> int:
    """How many positions a block of a list has; fewer than none where it is damaged."""
    remaining = side.start[row + 1] - side.start[row]
    count = min(LIST_BLOCK, remaining - LIST_BLOCK * (block - side.block_start[row]))
    return count if is_inside(side.packed, side.headers[block], count) else -1


@part
def mark(side: Side, word: int) -> bool:
    """Sets the bits of a word; False where what is read is damaged."""
    bits = array_of(side.bits_at[word], side.words_of_bits, np.uint64)
    for i in range(side.list_start[word], side.list_start[word + 1]):
        row = side.lists[i]
        for block in range(side.block_start[row], side.block_start[row + 1]):
            count, header = count_of(side, row, block), side.headers[block]
            if count < 0:
                return False
            place, width = header >> WIDTH_BITS, header & _OF_WIDTH
            offset = int(side.firsts[block])
            for j in range(count):
                if j > 0:
                    offset += bits_at(side.packed, place, width)
                    place += width
                if offset < 0 or offset >= side.size:
                    return False
                bits[(offset + _PAD) >> 6] |= _ONE << (np.uint64(offset) & _WORD)
    return True


@hot
def first_from(side: Side, row: int, minimum: int) -> int:
    """The first position of a list that is `minimum` or later; the size of the side where there is
    none."""
    begin, end = side.block_start[row], side.block_start[row + 1]
    for block in range(block_from(side.firsts, begin, end, minimum), end):
        offset = int(side.firsts[block])
        if offset >= minimum:
            return offset
        count, header = count_of(side, row, block), side.headers[block]
        place, width = header >> WIDTH_BITS, header & _OF_WIDTH
        for _ in range(count - 1):
            offset += bits_at(side.packed, place, width)
            place += width
            if offset >= minimum:
                return offset
    return side.size


@inner
def stands_at(side: Side, word: int, offset: int) -> bool:
    """Whether a word stands at a position of the side."""
    if side.bits_at[word] != 0:
        bits = array_of(side.bits_at[word], side.words_of_bits, np.uint64)
        return bool((bits[(offset + _PAD) >> 6] >> (np.uint64(offset) & _WORD)) & _ONE != 0)
    for i in range(side.list_start[word], side.list_start[word + 1]):
        if first_from(side, side.lists[i], offset) == offset:
            return True
    return False


@inner
def bits_from(side: Side, word: int, low: int) -> np.uint64:
    """The bits of a word at 64 positions from `low` on."""
    bits = array_of(side.bits_at[word], side.words_of_bits, np.uint64)
    start = low + _PAD
    shift = np.uint64(start) & _WORD
    shifted: np.uint64 = bits[start >> 6] >> shift
    if shift != 0:
        shifted |= bits[(start >> 6) + 1] << (np.uint64(64) - shift)
    return shifted


@inner
def word_bits(side: Side, word: int, low: int, begin: int, end: int) -> np.uint64:
    """Where a word stands from `low` on, in 64 bits; what is not in [begin, end) is left out."""
    bits = np.uint64(0)
    if side.bits_at[word] != 0:
        bits = bits_from(side, word, low)
        if begin > low:
            bits &= _ALL << np.uint64(begin - low)
        if end - low < 64:
            bits &= (_ONE << np.uint64(end - low)) - _ONE
        return bits
    first, last = max(low, begin), min(low + 64, end)
    for i in range(side.list_start[word], side.list_start[word + 1]):
        offset = first_from(side, side.lists[i], first)
        while offset < last:
            bits |= _ONE << np.uint64(offset - low)
            offset = first_from(side, side.lists[i], offset + 1)
    return bits


@hot
def is_near(side: Side, phrase: PhraseQuery, offset: int, begin: int, end: int) -> bool:
    """Whether a stretch of `within` + 1 tokens of the sequence [begin, end) has the position
    `offset` and all words."""
    max_distance = phrase.max_distance
    starts = (_ONE << np.uint64(max_distance + 1)) - _ONE  # of stretches that have `at`
    for word in range(phrase.words):
        if word != phrase.rarest:
            # of stretches that have the word: where it stands, and `within` places before
            covered, width = word_bits(side, word, offset - max_distance, begin, end), 1
            while 2 * width <= max_distance + 1:
                covered |= covered >> np.uint64(width)
                width *= 2
            covered |= covered >> np.uint64(max_distance + 1 - width)
            starts &= covered
            if starts == 0:
                return False
    return True


@hot
def is_in_a_row(side: Side, phrase: PhraseQuery, offset: int, begin: int, end: int) -> bool:
    """Whether the words stand side by side in the sequence [begin, end), the rarest at `offset`."""
    first = offset - phrase.rarest
    if first < begin or first + phrase.words > end:
        return False
    for word in range(phrase.words):
        if word != phrase.rarest and not stands_at(side, word, first + word):
            return False
    return True


@inner
def put(best: Int64, count: int, rank: int) -> int:
    """Puts a rank among the smallest, a heap with the greatest first; how many there are then."""
    if count < best.size:
        slot = count
        while slot > 0 and best[(slot - 1) >> 1] < rank:
            best[slot] = best[(slot - 1) >> 1]
            slot = (slot - 1) >> 1
        best[slot] = rank
        return count + 1
    slot, size = 0, best.size
    while 2 * slot + 1 < size:
        child = 2 * slot + 1
        if child + 1 < size and best[child + 1] > best[child]:
            child += 1
        if best[child] <= rank:
            break
        best[slot] = best[child]
        slot = child
    best[slot] = rank
    return count


@part
def put_all(
    side: Side, phrase: PhraseQuery, group: int, allowed: UInt8, best: Int64, count: int
) -> int:
    """Puts the segments of a sequence among the newest `count` ones; how many there are then, or
    DAMAGE."""
    for j in range(side.member_offsets[group], side.member_offsets[group + 1]):
        rank = side.members[j]
        if rank < 0 or rank >= side.members.size:
            return DAMAGE
        if count == best.size and rank >= best[0]:
            break
        if phrase.all_kept or allowed[rank] != 0:
            count = put(best, count, rank)
    return count


@inner
def is_there(side: Side, phrase: PhraseQuery, offset: int, begin: int, end: int) -> bool:
    """Whether the sequence [begin, end) has the phrase with its rarest word at a position."""
    if phrase.words == 1:
        return True
    if phrase.max_distance == 0:
        return is_in_a_row(side, phrase, offset, begin, end)
    return is_near(side, phrase, offset, begin, end)


@hot
def has_phrase(side: Side, phrase: PhraseQuery, begin: int, end: int) -> bool:
    """Whether the sequence [begin, end) has the phrase, all of whose words have bits."""
    rarest, offset = phrase.rarest, begin
    if phrase.max_distance == 0:  # where the rarest can stand so that all others are inside
        offset, end = begin + rarest, end - phrase.words + 1 + rarest
    while offset < end:
        places = bits_from(side, rarest, offset)
        if end - offset < 64:
            places &= (_ONE << np.uint64(end - offset)) - _ONE
        if phrase.max_distance == 0:
            for word in range(phrase.words):
                if places != 0 and word != rarest:
                    places &= bits_from(side, word, offset + word - rarest)
            if places != 0:
                return True
        while places != 0:
            place = offset + lowest_set(places)
            if is_near(side, phrase, place, begin, end):
                return True
            places &= places - _ONE
        offset += 64
    return False


@inner
def stretch_of(side: Side, group: int) -> int:
    """The stretch that a sequence lies in."""
    low, high = 0, side.first_groups.size
    while high - low > 1:
        middle = (low + high) >> 1
        if side.first_groups[middle] <= group:
            low = middle
        else:
            high = middle
    return low


@part
def newest_first(
    side: Side, phrase: PhraseQuery, allowed: UInt8, states: UInt8, best: Int64
) -> int:
    """Looks at the newest segments one by one; how many of the k newest it has found, or DAMAGE.
    `states`: what is known of every sequence."""
    count = 0
    for rank in range(min(phrase.newest, side.group_of.size)):
        group = side.group_of[rank]
        if group < 0 or group >= states.size:
            return DAMAGE
        if states[group] == 0:
            stretch = stretch_of(side, group)
            length = side.lengths[stretch]
            begin = side.stretches[stretch] + (group - side.first_groups[stretch]) * length
            has = group >= side.first_groups[stretch] and has_phrase(
                side, phrase, begin, begin + length
            )
            states[group] = 1 if has else 2
        if states[group] == 1 and (phrase.all_kept or allowed[rank] != 0):
            best[count] = rank
            count += 1
            if count == best.size:
                break
    return count


@part
def in_their_order(side: Side, phrase: PhraseQuery, allowed: UInt8, best: Int64) -> int:
    """Looks at all sequences; how many segments it has found, or DAMAGE."""
    count, oldest = 0, side.members.size
    for stretch in range(side.lengths.size):
        length, group = side.lengths[stretch], side.first_groups[stretch]
        begin, last = side.stretches[stretch], side.stretches[stretch + 1]
        while begin < last:
            newest = side.members[side.member_offsets[group]]
            if newest < oldest and has_phrase(side, phrase, begin, begin + length):
                count = put_all(side, phrase, group, allowed, best, count)
                if count == DAMAGE:
                    return DAMAGE
                if count == best.size:
                    oldest = best[0]
            begin += length
            group += 1
    return count


@part
def by_positions(
    side: Side, phrase: PhraseQuery, allowed: UInt8, states: UInt8, best: Int64
) -> int:
    """Looks at the positions of the rarest word; how many segments it has found, or DAMAGE."""
    count, oldest, begin, end, group, is_open = 0, side.members.size, 0, 0, 0, False
    for i in range(side.list_start[phrase.rarest], side.list_start[phrase.rarest + 1]):
        row = side.lists[i]
        for block in range(side.block_start[row], side.block_start[row + 1]):
            positions, header = count_of(side, row, block), side.headers[block]
            if positions < 0:
                return DAMAGE
            place, width = header >> WIDTH_BITS, header & _OF_WIDTH
            offset = int(side.firsts[block])
            for j in range(positions):
                if j > 0:
                    offset += bits_at(side.packed, place, width)
                    place += width
                if offset < begin or offset >= end:
                    if offset < 0 or offset >= side.size:
                        return DAMAGE
                    stretch = np.int64(side.stretch_at[offset >> BLOCK_BITS])
                    while offset >= side.stretches[stretch + 1]:
                        stretch += 1
                    length, inside = side.lengths[stretch], offset - side.stretches[stretch]
                    order = inside // length
                    begin = side.stretches[stretch] + order * length
                    group, end = side.first_groups[stretch] + order, begin + length
                    newest = side.members[side.member_offsets[group]]
                    is_open = newest < oldest and states[group] == 0
                if is_open and is_there(side, phrase, offset, begin, end):
                    states[group], is_open = 1, False
                    count = put_all(side, phrase, group, allowed, best, count)
                    if count == DAMAGE:
                        return DAMAGE
                    if count == best.size:
                        oldest = best[0]
    return count


def newest_with(job_address: int) -> int:
    """Writes the ranks of the k newest segments with the phrase of a `Sought`, in no order, and how
    many there are; or that what it reads is damaged."""
    job = array_of(job_address, FIELDS, np.int64)
    words, size, lists, blocks, stretches = job[0], job[4], job[7], job[10], job[15]
    groups, segments = job[19], job[21]
    phrase = PhraseQuery(words, job[1], job[3], job[28] == 0, job[32])
    side = Side(
        size,
        array_of(job[5], lists + 1, np.int64),
        array_of(job[6], lists + 1, np.int64),
        array_of(job[8], blocks, np.int32),
        array_of(job[9], blocks, np.int64),
        array_of(job[11], job[12], np.uint64),
        array_of(job[13], stretches + 1, np.int64),
        array_of(job[14], stretches, np.int64),
        array_of(job[16], stretches, np.int64),
        array_of(job[17], (size >> BLOCK_BITS) + 1, np.int32),
        array_of(job[18], groups + 1, np.int32),
        array_of(job[20], segments, np.int32),
        array_of(job[22], segments, np.int32),
        array_of(job[23], words + 1, np.int64),
        array_of(job[24], job[25], np.int64),
        array_of(job[26], words, np.int64),
        job[27],
    )
    allowed, states = array_of(job[28], segments, np.uint8), array_of(job[29], groups, np.uint8)
    best, count = array_of(job[30], job[31], np.int64), 0
    for word in range(words):
        is_new = side.bits_at[word] != 0
        for previous in range(word):
            is_new = is_new and side.bits_at[previous] != side.bits_at[word]
        if is_new and not mark(side, word):
            job[NEWEST_COUNT] = DAMAGE
            return 0
    if job[2] != 0:
        count = by_positions(side, phrase, allowed, states, best)
    else:
        count = newest_first(side, phrase, allowed, states, best)
        if 0 <= count < best.size and segments > phrase.newest:
            count = in_their_order(side, phrase, allowed, best)
    job[NEWEST_COUNT] = count
    return 0
