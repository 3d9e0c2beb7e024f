"""What plug-ins make of the keys of a memory and keep beside them, as the search over all keys; and
whether all of it is as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from tmnmt.index.base import BuiltIndex, has_folder
from tmnmt.keys.files import KeyFiles, verify_keys
from tmnmt.registry import Registry


class DerivedFiles(Protocol):
    """Files beside the keys that are made of them."""

    def update(self, files: KeyFiles) -> None:
        """Makes the files anew where the keys have changed.

        files: the keys."""

    def check(self, index_dir: Path) -> None:
        """Checks that the files of an index are as they were written.

        index_dir: the folder of the index.

        Raises MemoryIndexError where they are not."""


DERIVED: Registry[DerivedFiles] = Registry("derived keys", {})


def verify(index: BuiltIndex) -> int:
    """Reads an index, all its keys, and all that is derived from them, and returns how many
    segments the index has.

    index: the index.

    Raises MemoryIndexError at the first part that is not what was written."""
    segments = index.verify()
    if has_folder(index):
        verify_keys(index.folder)
        for derived in DERIVED.values():
            derived.check(index.folder)
    return segments
