"""Whether every byte of an index is as it was written."""

from __future__ import annotations

import logging
from contextlib import closing
from pathlib import Path

from tmnmt.errors import MemoryIndexError
from tmnmt.index.embedded.generation import Generation
from tmnmt.index.embedded.manifest import Manifest, check_content, read_manifest
from tmnmt.quantities import quantity

log = logging.getLogger(__name__)


def verify(index_dir: Path) -> int:
    """Reads everything, and returns how many segments there are. A change that a killed writer left
    unfinished is no damage, and a line of the log tells of it. A journal whose end was cut away
    cannot be told from one of fewer changes.

    index_dir: the folder of the index.

    Raises MemoryIndexError at the first part that is not what was written: the manifest and every
    immutable file by sha256, every row and every change by its checksum."""
    while True:
        manifest = read_manifest(index_dir)
        try:
            return _verify(manifest, index_dir)
        except (MemoryIndexError, OSError):
            if read_manifest(index_dir) == manifest:
                raise  # else replaced while it was being read


def _verify(manifest: Manifest, index_dir: Path) -> int:
    check_content(manifest, index_dir)
    with closing(Generation(manifest, index_dir)) as generation:
        stored = sum(1 for _ in generation.store)
        if stored != manifest.segments:
            counts = f"{quantity(stored, 'segment')} instead of {manifest.segments:,}"
            raise MemoryIndexError(
                f"{generation.store.path}: {counts}; build the index again with --force"
            )
        if unfinished := generation.journal.unfinished:
            consequence = (
                "of a change that was not finished, so never acknowledged; the next change "
                "takes its place"
            )
            log.info(
                "%s: ends with %s %s",
                generation.journal.path,
                quantity(unfinished, "byte"),
                consequence,
            )
        return len(generation)
