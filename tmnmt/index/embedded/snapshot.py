"""An index as it is at one moment, to be copied while searches and changes go on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tmnmt.errors import MemoryIndexError
from tmnmt.index.embedded.journal import JOURNAL_FILE
from tmnmt.index.embedded.lock import writing
from tmnmt.index.embedded.manifest import (
    KEYS_DIR,
    MANIFEST_FILE,
    check_files,
    read_manifest,
)
from tmnmt.system import open_file

SECONDS = 60.0  # that the writers of an index are waited for
CALIBRATIONS = "*.reach.json"  # in the folder of keys; keys themselves can be computed again


@dataclass(frozen=True)
class SnapshotFile:
    """A file of the snapshot.

    name: its path below the folder of the index.
    file: the file, open for reading. It can be read also where a new generation has removed it.
    size: how many bytes of it belong to the snapshot."""

    name: str
    file: BinaryIO
    size: int


@contextmanager
def unchanged(folders: Iterable[Path]) -> Iterator[None]:
    """Holds the right to write to indexes, so that none of them changes.

    folders: the folders of the indexes.

    Raises LockedError where another process writes for long. Raises MemoryIndexError where nobody
    can write to a folder."""
    with ExitStack() as stack:
        for folder in sorted(folders):
            stack.enter_context(writing(folder, SECONDS))
        yield


def snapshot(folder: Path, stack: ExitStack) -> list[SnapshotFile]:
    """The files of an index as it is now, which must not change meanwhile.

    folder: the folder of the index.
    stack: closes the files.

    Raises MemoryIndexError where there is no index, or a part is missing."""
    manifest = read_manifest(folder)
    check_files(manifest, folder)
    generation = manifest.generation_dir(folder)
    paths = [generation / name for name in manifest.files] + [generation / JOURNAL_FILE]
    paths += sorted((folder / KEYS_DIR).glob(CALIBRATIONS))
    return [_open_part(path, folder, stack) for path in [folder / MANIFEST_FILE, *paths]]


def _open_part(path: Path, folder: Path, stack: ExitStack) -> SnapshotFile:
    try:
        file = stack.enter_context(os.fdopen(open_file(path, os.O_RDONLY), "rb"))
    except OSError as error:
        raise MemoryIndexError(f"{path}: cannot be read: {error.strerror}") from error
    size = os.fstat(file.fileno()).st_size
    return SnapshotFile(path.relative_to(folder).as_posix(), file, size)
