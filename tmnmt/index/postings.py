"""The embedded exact inverted index: immutable numpy arrays, memory-mapped, shared by processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from tmnmt.errors import MemoryIndexError
from tmnmt.index.fuzzy import SLACK
from tmnmt.index.structure import first_damage

if TYPE_CHECKING:
    from tmnmt.index.kernels import Arrays

VOCABULARY, DOCUMENTS, IDS = "vocabulary", "documents", "ids"  # parts beside those of `kernels.Arrays`
NO_DOCUMENT = -1  # as the document to leave out: none
QUERIES_A_CALL = 64  # of the compiled search; fewer would not be worth a thread
MOST_HITS_A_CALL = 1 << 20  # 16 bytes each are set aside, found or not


class Hit(NamedTuple):
    id: int
    edits: int
    score: float


class Wanted(NamedTuple):
    """A query of the postings: its match tokens, and the document whose segments are left out ("": none)."""

    tokens: Sequence[str]
    without_document: str = ""


class Postings:
    """The best segments for a token sequence, exactly as brute force finds them."""

    def __init__(self, folder: Path, parts: dict[str, np.ndarray[Any, Any]]) -> None:
        self._folder, self._parts = folder, parts
        self._ids = parts[IDS]  # by rank

    @classmethod
    def open(cls, folder: Path) -> Postings:
        """The postings in `folder`, mapped, so that they can be searched when the folder is gone; only the small parts
        are read before the first search. Raises MemoryIndexError where a part is unusable."""
        parts = {path.stem: _map(path) for path in folder.glob("*.npy")}
        if (damage := first_damage(parts)) is not None:
            raise _damaged(folder / f"{damage[0]}.npy", damage[1])
        return cls(folder, parts)

    def search(
        self,
        queries: Sequence[Wanted],
        k: int,
        threshold: float,
        *,
        without_equal: bool = False,
        threads: int = 1,
    ) -> list[list[Hit]]:
        """For every query the at most `k` segments of score >= `threshold`, best first, ties by newest. The answers
        do not depend on the number of threads."""
        k = min(k, len(self._ids))
        if k == 0:
            return [[] for _ in queries]
        size = max(1, min(QUERIES_A_CALL, MOST_HITS_A_CALL // k))
        runs = [queries[i : i + size] for i in range(0, len(queries), size)]

        def search(run: Sequence[Wanted]) -> list[list[Hit]]:
            return self._search(run, k, threshold, without_equal)

        if len(queries) <= size:
            return search(queries) if queries else []
        if threads == 1:
            return [hits for run in runs for hits in search(run)]
        search(runs[0][:1])  # what is read or compiled once, before threads wait for it
        with ThreadPoolExecutor(min(threads, len(runs))) as pool:
            return [hits for found in pool.map(search, runs) for hits in found]

    def _search(self, queries: Sequence[Wanted], k: int, threshold: float, without_equal: bool) -> list[list[Hit]]:
        from tmnmt.index.kernels import search_each

        number = self._number.get
        sequences = np.array([number(token, -1) for query in queries for token in query.tokens], np.int32)
        ends = np.array(list(accumulate(len(query.tokens) for query in queries)), np.int64)
        documents = np.array([self._document(query.without_document) for query in queries], np.int32)
        least = threshold - SLACK
        found, ranks, edits, scores = search_each(self._arrays, sequences, ends, documents, k, least, without_equal)
        if not self._within(ranks):
            raise _damaged(self._folder / "members.npy", "names a segment that is not there")
        hits = list(map(Hit, self._ids[ranks].tolist(), edits.tolist(), scores.tolist()))
        if len(queries) == 1:
            return [hits]
        return [hits[start:end] for start, end in pairwise([0, *found.tolist()])]

    def _within(self, ranks: np.ndarray[Any, Any]) -> bool:
        return bool(ranks.min(initial=0) >= 0 and ranks.max(initial=0) < len(self._ids))

    @cached_property
    def _arrays(self) -> Arrays:
        from tmnmt.index.kernels import Arrays

        return Arrays(*(self._parts[name] for name in Arrays._fields))

    @cached_property
    def _number(self) -> dict[str, int]:
        text = str(self._parts[VOCABULARY].tobytes(), "utf-8")
        return {token: number for number, token in enumerate(text.split("\n"))} if text else {}

    @cached_property
    def _number_of_document(self) -> dict[str, int]:
        try:
            names = cast(list[str], json.loads(self._parts[DOCUMENTS].tobytes()))
            return {document: number for number, document in enumerate(names)}
        except (ValueError, TypeError) as error:
            raise _damaged(self._folder / f"{DOCUMENTS}.npy", str(error)) from error

    def _document(self, name: str) -> int:
        return self._number_of_document.get(name, NO_DOCUMENT) if name else NO_DOCUMENT


def _map(path: Path) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except Exception as error:  # numpy reads the header as Python code: there is hardly an error it cannot end in
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, what: str) -> MemoryIndexError:
    return MemoryIndexError(
        f"{path}: damaged ({what}); take it from a backup, or build the index again; "
        "tmnmt memory verify looks at everything"
    )
