"""The parts of a generation that is being built. Each has postings of its own, so a build needs as
much memory as one part, however many segments there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tmnmt.index.embedded.checkpoint import Checkpoint
from tmnmt.index.embedded.inversion import BothSides
from tmnmt.index.embedded.manifest import Described, describe_postings
from tmnmt.segments import Segment

# a part ends where it has so many segments, or a side of it so many match tokens
SEGMENTS_A_PART, TOKENS_A_PART = 1 << 22, 1 << 30


class NewParts:
    """Takes segments and writes their postings, one part after another.

    number: how many parts are written.
    segments: how many segments are in them and in the open one.
    sources: how many distinct token sequences each written part has, added up.
    tokens: how many distinct match tokens, likewise.
    files: size and sha256 of what is written."""

    def __init__(self, folder: Path, checkpoint: Checkpoint | None = None) -> None:
        """folder: the folder of the generation.
        checkpoint: what is there already of a build that was killed, whose segments come first."""
        self._folder = folder
        self._sides: BothSides | None = None  # of the open part
        self._in_part = 0
        self.number = self.segments = self.sources = self.tokens = 0
        self.files: Described = {}
        self._segments_there = 0
        if checkpoint is not None:
            self.number, self.sources = checkpoint.parts, checkpoint.sources
            self.tokens, self.files = checkpoint.tokens, checkpoint.files
            self._segments_there = checkpoint.segments

    def add(self, numbers: Sequence[int], segments: Sequence[Segment]) -> None:
        """Takes segments.

        numbers: the ids of the segments.
        segments: the segments.

        Raises DataError for a source of more than 65,535 tokens."""
        self.segments += len(segments)
        if self.segments <= self._segments_there:
            return
        self._sides = self._sides or BothSides(self._folder)
        self._sides.add(numbers, segments)
        self._in_part += len(segments)
        if self._in_part >= SEGMENTS_A_PART or self._sides.tokens >= TOKENS_A_PART:
            self._write()

    def end(self) -> None:
        """Writes what is open. Without any segments that is a part without any."""
        if self._sides or not self.number:
            self._write()

    def close(self) -> None:
        """Lets go of what waits."""
        if self._sides:
            self._sides.close()

    def _write(self) -> None:
        sides = self._sides or BothSides(self._folder)
        folder = self._folder / f"postings-{self.number + 1}"
        sources, tokens = sides.write(folder)
        self.files |= describe_postings(folder)
        self.close()
        self._sides, self._in_part = None, 0
        self.number, self.sources = self.number + 1, self.sources + sources
        self.tokens += tokens
