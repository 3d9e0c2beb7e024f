"""Whether every byte of an index, of its keys and of the search over them is as it was written."""

from __future__ import annotations

from pathlib import Path

from tmnmt.index.embedded import verify as embedded
from tmnmt.keys.directions import check_directions
from tmnmt.keys.faiss_index import check_faiss
from tmnmt.keys.files import verify_keys


def verify(index_dir: Path) -> int:
    """As `tmnmt.index.embedded.verify.verify`, with all keys that were computed, and FAISS over
    them."""
    return embedded.verify(index_dir, _verify_keys)


def _verify_keys(index_dir: Path) -> None:
    verify_keys(index_dir)
    check_directions(index_dir)
    check_faiss(index_dir)
