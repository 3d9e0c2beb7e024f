"""Which units were met before, at 16 bytes a unit or less."""

from __future__ import annotations

from array import array

from tmnmt.segments import Segment

_SMALLEST = 1 << 12


class PairHashes:
    """The (src, tgt, document, position) met so far, as 64-bit hashes in an open-addressing table.

    Two different units are taken for one with a probability of about n² / 2⁶⁵: three in a million
    for ten million units. A Python set of the same would take 90 bytes a unit."""

    def __init__(self) -> None:
        self._slots = array("q", bytes(8 * _SMALLEST))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, segment: Segment) -> bool:
        """Whether a unit is new. It is known from now on.

        segment: the unit."""
        if not _insert(
            self._slots, hash((segment.src, segment.tgt, segment.document, segment.position)) or 1
        ):
            return False
        self._count += 1
        if self._count * 4 > len(self._slots) * 3:
            self._grow()
        return True

    def _grow(self) -> None:
        larger = array("q", bytes(16 * len(self._slots)))
        for value in self._slots:
            if value:
                _insert(larger, value)
        self._slots = larger


def _insert(slots: array[int], value: int) -> bool:
    mask = len(slots) - 1
    index = value & mask
    while slot := slots[index]:
        if slot == value:
            return False
        index = (index + 1) & mask
    slots[index] = value
    return True
