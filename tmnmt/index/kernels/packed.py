"""Whole numbers in as few bits as they need, end to end in words of 64 bits, compiled.

Ascending lists are cut into blocks of `LIST_BLOCK` numbers. A block has its first number as it is,
then differences, all in as many bits as its largest one needs. So a place in a list is found by
halving the first numbers, and then by adding up one block at most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.compiling import compiled, inner
from tmnmt.index.kernels.arrays import LIST_BLOCK, WIDTH_BITS

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]
_ZERO, _ONE, _WORD_BITS, _TOP = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)
_OF_WIDTH = (1 << WIDTH_BITS) - 1
FACTOR, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


@inner
def mix(mixed: np.uint64, token: int) -> np.uint64:
    """The hash of a sequence, after one token more. It begins with `FACTOR`.

    mixed: the hash before.
    token: the number of the token."""
    mixed = (mixed ^ np.uint64(token)) * FACTOR
    return mixed ^ (mixed >> _SHIFT)


@inner
def hash_of(tokens: Int32, start: int, end: int) -> np.uint64:
    """The hash of a sequence. Equal hashes prove nothing.

    tokens: the tokens of sequences.
    start: where it begins.
    end: where it ends."""
    mixed = FACTOR
    for i in range(start, end):
        mixed = mix(mixed, tokens[i])
    return mixed


@inner
def bits_at(packed: UInt64, offset: int, width: int) -> int:
    """A number. A word behind its last one is read, too.

    packed: the words.
    offset: the first bit of the number.
    width: its bits, fewer than 64."""
    place = np.uint64(offset) >> _WORD_BITS
    shift = np.uint64(offset) & _TOP
    bits = packed[place] >> shift | (packed[place + _ONE] << _ONE) << (_TOP - shift)
    return int(np.int64(bits & ((_ONE << np.uint64(width)) - _ONE)))


@inner
def set_bits(packed: UInt64, offset: int, number: int) -> None:
    """Writes a number where all bits are 0.

    packed: the words.
    offset: the first bit of the number.
    number: the number."""
    place = np.uint64(offset) >> _WORD_BITS
    shift = np.uint64(offset) & _TOP
    packed[place] |= np.uint64(number) << shift
    packed[place + _ONE] |= (np.uint64(number) >> _ONE) >> (_TOP - shift)


@inner
def is_inside(packed: UInt64, header: int, count: int) -> bool:
    """Whether the differences of a block lie in the words: a damaged header may say anything.

    packed: the words.
    header: the header of the block.
    count: how many numbers the block has."""
    end = (header >> WIDTH_BITS) + max(header & _OF_WIDTH, 1) * (count - 1)
    return count == 1 or (header >= 0 and end <= 64 * (packed.size - 1))


@inner
def block_from(firsts: Int32, begin: int, end: int, minimum: int) -> int:
    """The block of a list where its first number of at least `minimum` may stand: the last one that
    begins below it, else the first one.

    firsts: (blocks,), the first number of every block.
    begin: the first block of the list.
    end: behind its last one.
    minimum: the number that is looked for."""
    low, high = begin, end
    while high - low > 1:
        middle = (low + high) >> 1
        if firsts[middle] < minimum:
            low = middle
        else:
            high = middle
    return low


@compiled
def pack(numbers: Int32, width: int, packed: UInt64) -> None:
    """Writes numbers in `width` bits each.

    numbers: (numbers,), the numbers, none below 0.
    width: bits of a number.
    packed: the words, all 0, with one behind the last."""
    for i in range(numbers.size):
        set_bits(packed, i * width, numbers[i])


@compiled
def head_blocks(numbers: Int32, start: Int64, firsts: Int32, headers: Int64) -> int:
    """Writes what every block begins with and where its differences lie. Returns how many bits all
    of these take.

    numbers: the lists, end to end, each ascending.
    start: (lists + 1,), where each list begins.
    firsts: (blocks,), where the first number of every block is written.
    headers: (blocks,), where it is written at which bit its differences begin, and their width."""
    block, offset = 0, 0
    for row in range(start.size - 1):
        for begin in range(start[row], start[row + 1], LIST_BLOCK):
            end = min(begin + LIST_BLOCK, start[row + 1])
            largest, width = 0, 0
            for i in range(begin + 1, end):
                largest |= numbers[i] - numbers[i - 1]
            while largest >> width:
                width += 1
            firsts[block] = numbers[begin]
            headers[block] = offset << WIDTH_BITS | width
            offset += width * (end - begin - 1)
            block += 1
    return offset


@compiled
def pack_lists(numbers: Int32, start: Int64, headers: Int64, packed: UInt64) -> None:
    """Writes the differences of all blocks.

    numbers: the lists, end to end, each ascending.
    start: (lists + 1,), where each list begins.
    headers: (blocks,), what `head_blocks` wrote.
    packed: the words, all 0, with one behind the last."""
    block = 0
    for row in range(start.size - 1):
        for begin in range(start[row], start[row + 1], LIST_BLOCK):
            offset, width = headers[block] >> WIDTH_BITS, headers[block] & _OF_WIDTH
            for i in range(begin + 1, min(begin + LIST_BLOCK, start[row + 1])):
                set_bits(packed, offset, numbers[i] - numbers[i - 1])
                offset += width
            block += 1
