"""How far the reading of some memories has come, by the share of their bytes on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO

from tmnmt.formats.stream import Source


class Share:
    """Files of these bytes, read one after another: `begin` before each, `watched` for what is read
    of it."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._file = -1
        self._open: list[
            tuple[BinaryIO, int]
        ] = []  # what is read of the file, packed as it lies there, and its bytes
        self._bytes = 0  # of all its sources

    def begin(self, sources: Sequence[Source]) -> None:
        """The next file is read; `sources` are all that is in it."""
        self._file = self._file + 1
        self._open = []
        self._bytes = sum(source.size for source in sources)

    def watched(self, source: Source) -> Source:
        """The same source, whose reading counts."""

        def open_watched() -> BinaryIO:
            stream = source.open()
            self._open.append((stream, source.size))
            return stream

        return replace(source, open=open_watched)

    def __float__(self) -> float:
        """In [0, 1]."""
        read = sum(size if stream.closed else stream.tell() for stream, size in self._open)
        here = min(1.0, read / self._bytes) if self._bytes else 0.0
        done = sum(self._sizes[: max(self._file, 0)]) + (
            here * self._sizes[self._file] if self._file >= 0 else 0
        )
        return done / max(sum(self._sizes), 1)
