"""The embedded exact inverted index: immutable numpy arrays, memory-mapped, shared by processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from tmnmt.errors import MemoryIndexError
from tmnmt.index.fuzzy import SLACK

if TYPE_CHECKING:
    from tmnmt.index.kernels import Arrays

VOCABULARY_FILE = "tokens.txt"
DOCUMENTS_FILE = "documents.json"
IDS_FILE = "ids.npy"
NO_DOCUMENT = -1  # as the document to leave out: none


class Hit(NamedTuple):
    id: int
    edits: int
    score: float


class Postings:
    """The best segments for a token sequence, exactly as brute force finds them."""

    def __init__(self, arrays: Arrays, ids: np.ndarray[Any, Any], tokens: list[str], folder: Path) -> None:
        self._arrays = arrays
        self._ids = ids  # by rank
        self._number = {token: number for number, token in enumerate(tokens)}
        self._folder = folder
        self._documents: dict[str, int] | None = None

    @classmethod
    def open(cls, folder: Path) -> Postings:
        """The postings in `folder`, mapped and not read. Raises MemoryIndexError where a part is unusable."""
        from tmnmt.index.kernels import Arrays

        try:
            arrays = Arrays(*(_map(folder / f"{name}.npy") for name in Arrays._fields))
            text = (folder / VOCABULARY_FILE).read_text(encoding="utf-8")
            return cls(arrays, _map(folder / IDS_FILE), text.split("\n") if text else [], folder)
        except (OSError, ValueError) as error:
            raise MemoryIndexError(f"{folder}: the postings cannot be read: {error}; build the index again") from error

    def search(
        self, tokens: Sequence[str], k: int, threshold: float, without_equal: bool, without_document: str
    ) -> list[Hit]:
        """The at most `k` segments of score >= `threshold`, best first, ties by newest."""
        from tmnmt.index.kernels import search_best

        sequence = np.array([self._number.get(token, -1) for token in tokens], np.int32)
        k = min(k, len(self._ids))
        if k == 0 or not len(sequence):
            return []
        document = self._document(without_document)
        ranks, edits, scores = search_best(self._arrays, sequence, k, threshold - SLACK, without_equal, document)
        return list(map(Hit, self._ids[ranks].tolist(), edits.tolist(), scores.tolist()))

    def _document(self, name: str) -> int:
        if not name:
            return NO_DOCUMENT
        if self._documents is None:
            names = cast(list[str], json.loads((self._folder / DOCUMENTS_FILE).read_text(encoding="utf-8")))
            self._documents = {document: number for number, document in enumerate(names)}
        return self._documents.get(name, NO_DOCUMENT)


def _map(path: Path) -> np.ndarray[Any, Any]:
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
