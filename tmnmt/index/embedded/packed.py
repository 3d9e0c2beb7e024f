"""Reading numbers that `kernels/packed.py` wrote, with numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.kernels.arrays import LIST_BLOCK, WIDTH_BITS

# Of a kind of lists: where each list begins among all numbers, the first number of every block,
# where its differences lie, and these.
NAMES = "{}_start", "{}_first", "{}_header", "{}s"

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]


def words_for(bits: int) -> int:
    """How many words of 64 bits so many bits take, with the one behind the last that is read, too.

    bits: how many bits."""
    return bits // 64 + 2


def width_of(size: int) -> int:
    """How many bits a number from 0 to below `size` takes.

    size: the greatest number, and 1."""
    return max(size - 1, 0).bit_length()


def unpacked(packed: UInt64, offsets: Int64, width: int | Int64) -> Int64:
    """The numbers that begin at these bits.

    packed: the words.
    offsets: (numbers,), the first bit of every number.
    width: bits of a number, of all or (numbers,) of each.

    Raises IndexError where a number lies outside of the words."""
    place, shift = offsets >> 6, (offsets & 63).astype(np.uint64)
    bit = np.uint64(1)
    bits = packed[place] >> shift | (packed[place + 1] << bit) << (np.uint64(63) - shift)
    masks = (bit << np.asarray(width).astype(np.uint64)) - bit
    numbers: Int64 = (bits & masks).astype(np.int64)
    return numbers


def block_starts(start: Int64) -> Int64:
    """(lists + 1,), the first block of every list.

    start: (lists + 1,), where every list begins."""
    blocks = np.zeros(len(start), np.int64)
    np.cumsum(-(-np.diff(start) // LIST_BLOCK), out=blocks[1:])
    return blocks


class PackedLists(NamedTuple):
    """Ascending lists.

    start: (lists + 1,), where every list begins among all numbers.
    block_start: (lists + 1,), the first block of every list.
    firsts: (blocks,), the first number of every block.
    headers: (blocks,), the bit at which its differences begin, and behind it their width.
    packed: the differences."""

    start: Int64
    block_start: Int64
    firsts: Int32
    headers: Int64
    packed: UInt64

    @classmethod
    def of_parts(cls, parts: Mapping[str, NDArray[Any]], kind: str) -> PackedLists:
        """The lists of a kind.

        parts: the arrays of the postings, by their names.
        kind: what the names of the kind begin with."""
        start, *rest = (parts[name.format(kind)] for name in NAMES)
        return cls(start, block_starts(start), *rest)

    def numbers(self, lists: Int64) -> Int64:
        """The numbers of some lists, end to end.

        lists: which lists.

        Raises IndexError where what is read is damaged."""
        counts = self.start[lists + 1] - self.start[lists]
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        block = np.repeat(self.block_start[lists], counts) + offsets // LIST_BLOCK
        place = offsets % LIST_BLOCK
        is_first = place == 0
        offset, width = np.divmod(self.headers[block[~is_first]], 1 << WIDTH_BITS)
        differences = np.zeros(len(block), np.int64)
        differences[~is_first] = unpacked(
            self.packed, offset + (place[~is_first] - 1) * width, width
        )
        sums = np.cumsum(differences)
        offset_sums = np.repeat(
            sums[is_first], np.diff(np.append(np.flatnonzero(is_first), len(sums)))
        )
        numbers: Int64 = self.firsts[block] + sums - offset_sums
        return numbers
