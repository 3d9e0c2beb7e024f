"""A memory as evaluation reads it: once and whole, so that references which stand in it
are found."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import TYPE_CHECKING

from tmnmt.errors import DataError
from tmnmt.eval.data.near_leaks import long_targets
from tmnmt.eval.measures.measure import TestSet
from tmnmt.progress import Progress
from tmnmt.segments import Segment
from tmnmt.text import normalise

if TYPE_CHECKING:
    from tmnmt.index.base import BuiltIndex

LEAKS_LISTED = 3  # leaks that are named
TEACHING = 30_000  # pairs of a memory that the aligner is given


class Memory:
    """An open memory, read through once: a digest of its content, the aligner's pairs, and its
    pairs and `long_targets` as hashes."""

    def __init__(self, index: BuiltIndex, progress: Progress) -> None:
        self.index = index
        self.pairs: list[tuple[str, str]] = []
        self.targets: set[int] = set()
        self._pair_hashes: set[int] = set()
        content = hashlib.sha256()
        for segment in index.segments():
            fields = [segment.id, segment.src, segment.tgt, segment.document, segment.changed]
            content.update(json.dumps(fields).encode())
            if len(self.pairs) < TEACHING:
                self.pairs.append((segment.src, segment.tgt))
            self._pair_hashes.add(_pair(segment.src, segment.tgt))
            self.targets |= long_targets([segment.tgt])
            progress.advance()
        self.digest = content.hexdigest()

    @cached_property
    def segments(self) -> list[Segment]:
        return list(self.index.segments())

    def leaks(self, test: TestSet) -> list[int]:
        """The numbers of the test segments that stand in the memory, source and reference (any of
        several)."""
        return [
            number
            for number, src in enumerate(test.sources)
            if any(
                _pair(src, reference) in self._pair_hashes
                for reference in test.segment_references(number)
            )
        ]


def _pair(src: str, tgt: str) -> int:
    return hash((normalise(src), normalise(tgt)))


def leak_warnings(test: TestSet, name: str, memory: Memory, allowed: bool, how: str) -> list[str]:
    """A warning that counts and names the segments of `test` that stand in the memory `name` with
    their reference, none where there are none. Raises DataError, which says `how` they are allowed,
    where they are not."""
    leaks = memory.leaks(test)
    if not leaks:
        return []
    examples = "; ".join(repr(test.sources[number][:60]) for number in leaks[:LEAKS_LISTED])
    stand = "stands" if len(leaks) == 1 else "stand"
    message = (
        f"{len(leaks):,} of {len(test):,} segments of {test.name} {stand} in the memory "
        f"{name} with "
    )
    message += f"{'its' if len(leaks) == 1 else 'their'} reference: {examples}"
    if not allowed:
        raise DataError(f"{message}; to measure all the same, {how}")
    return [message]
