"""A memory file that another program rewrites while it is read, such as OmegaT's project_save.tmx.

Before every search it is looked at, by its time and size. What has changed in it is taken over into
an index of its own, in a temporary folder: what is gone is deleted, what is new is added. While the
file is no whole memory, or is not there, what was read before stays."""

from __future__ import annotations

import logging
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tmnmt.errors import FormatError, TmnmtError, UsageError
from tmnmt.files.as_memory import read_memories
from tmnmt.formats.report import MALFORMED
from tmnmt.index.back_ends import local_path
from tmnmt.index.embedded.build import build
from tmnmt.index.embedded.generation import Generation
from tmnmt.index.embedded.index import MemoryIndex
from tmnmt.index.embedded.manifest import read_manifest
from tmnmt.progress import ReadProgress
from tmnmt.segments import Segment

Version = tuple[int, int, int]  # of a file: which it is, its time, its size

log = logging.getLogger(__name__)


class _File:
    """The file as it was looked at last, for an index and all views of it."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        # the index goes with the last of them
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.version = _version(path)
        self.is_read = False  # now
        self.is_reported = False  # that it is not there, or not whole
        self.malformed = 0  # units that were broken when it was read first
        self.ids: dict[Segment, list[int]] = {}  # of every segment of it, without its own


class WatchedMemory(MemoryIndex):
    """An index of a file, which is read again whenever that was rewritten; made by `watch`."""

    _file: _File

    def _refreshed(self) -> Generation:
        if not self._file.is_read:
            self._file.is_read = True
            try:
                self._follow_file()
            finally:
                self._file.is_read = False
        return super()._refreshed()

    def _follow_file(self) -> None:
        """Takes over what is in the file now, if it was written since and is whole."""
        file = self._file
        version = _version(file.path)
        if version == file.version:
            return
        file.version = version
        try:
            reader = read_memories([file.path], self.src_lang, self.tgt_lang)
            segments = list(reader)
            if reader.report.is_cut_off or reader.report.skipped[MALFORMED] > file.malformed:
                raise FormatError(f"{file.path}: is not whole, it may be being written")
        except TmnmtError as error:
            if not file.is_reported:
                log.warning("%s; what was read of it before is used until it is there", error)
            file.is_reported = True
            return
        file.is_reported = False
        self._take_over(segments)

    def _take_over(self, segments: Iterable[Segment]) -> None:
        ids, now = self._file.ids, Counter(segments)
        removed = [number for segment, numbers in ids.items() for number in numbers[now[segment] :]]
        new = [
            segment
            for segment, count in now.items()
            for _ in range(count - len(ids.get(segment, ())))
        ]
        if removed:
            self.delete(removed)
        added = self.add(new)
        remaining = {segment: numbers[: now[segment]] for segment, numbers in ids.items()}
        self._file.ids = {segment: numbers for segment, numbers in remaining.items() if numbers}
        for segment, number in zip(new, added, strict=True):
            self._file.ids.setdefault(segment, []).append(number)


def watch(
    path: str | Path, src_lang: str, tgt_lang: str, progress: ReadProgress | None = None
) -> WatchedMemory:
    """An index of a memory file that follows the file.

    path: the memory file.
    src_lang: the code of the source language.
    tgt_lang: the code of the target language.
    progress: is told of units that are read.

    Raises UsageError where there is no such file. Raises FormatError where it is no whole memory
    now."""
    if (local := local_path(path)) is None or not local.is_file():
        raise UsageError(f"{path}: what is watched is a memory file, and this is none")
    folder = Path(tempfile.mkdtemp(prefix="tmnmt-"))
    file = _File(Path(path), folder)
    reader = read_memories([file.path], src_lang, tgt_lang, progress=progress)
    build(folder / "index", reader, src_lang, tgt_lang)
    file.malformed = reader.report.skipped[MALFORMED]
    if reader.report.is_cut_off:
        log.warning("%s: is not whole, it may be being written; what there is is used", path)
    index = WatchedMemory(folder / "index", read_manifest(folder / "index"))
    index._file = file
    for segment in index.segments():
        file.ids.setdefault(replace(segment, id=0), []).append(segment.id)
    return index


def _version(path: Path) -> Version | None:
    """What changes whenever the file is written; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
