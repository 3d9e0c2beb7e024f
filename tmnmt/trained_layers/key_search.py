"""Searching all keys of a memory: the positions nearest to a query, context and hidden state of a
step, as `key_directions.py` measures it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tmnmt.errors import UsageError
from tmnmt.index.base import FolderIndex
from tmnmt.keys.files import KeyFiles, digest_of
from tmnmt.keys.layout import Array
from tmnmt.segments import Segment
from tmnmt.trained_layers.faiss_index import FAISS_FILE, Kind, check_faiss, open_faiss
from tmnmt.trained_layers.key_directions import (
    Directions,
    ProjectedKeys,
    check_directions,
    update_directions,
)

# by number of a distinct pair: a segment that still has it, None where none has
KnownPairs = dict[int, Segment | None]
CANDIDATES = 8  # times k keys of a compressed index are scored again
BLOCK = 1 << 16  # keys compared at a time


class SearchFiles:
    """What searching needs beside the keys (`tmnmt.keys.derived.DERIVED`): the directions, and the
    index of FAISS, which goes where the directions change."""

    @staticmethod
    def update(files: KeyFiles) -> None:
        """Makes the directions anew where the keys have outgrown them."""
        update_directions(files, files.folder / FAISS_FILE)

    @staticmethod
    def check(index_dir: Path) -> None:
        """Raises MemoryIndexError where a file of an index is not as it was written."""
        check_directions(index_dir)
        check_faiss(index_dir)


class KeyPlace(NamedTuple):
    """Where a key comes from."""

    segment: int  # its id
    position: int  # subword position in the segment's target
    id: int  # y', the subword


class KeySearch:
    """All keys of an index of one model. A score is -D, of the keys as the index keeps them. Which
    keys are found is exact where there is no faiss.index, approximate else. Keys added since
    faiss.index was made are compared one by one.

    Segments deleted or corrected since their keys were computed are not answered. Not for several
    threads at once."""

    def __init__(self, index: FolderIndex, files: KeyFiles) -> None:
        self.index, self.files = index, files
        self.kind: Kind
        self._faiss: Any | None
        self.directions = Directions.open(files)
        self.kind, self._faiss = open_faiss(files, self.directions.size)
        self._indexed = self._faiss.ntotal if self._faiss is not None else 0
        self._keys = ProjectedKeys(files, self.directions)
        self._compared = self._keys.tail(self._indexed)  # those that FAISS does not have
        self._widened = CANDIDATES if self.kind == "ivfpq" else 1
        records = files.records[files.records["length"] > 0]
        self._records = records[np.lexsort((records["id"], records["start"]))]
        self._starts, self._first = np.unique(self._records["start"], return_index=True)
        self._last = np.append(self._first[1:], len(self._records))

    @classmethod
    def open(cls, index: FolderIndex, model: str) -> KeySearch:
        """The search in the keys that `index` has of the model with this hash. Raises
        MemoryIndexError where it has none or only those of another model, UsageError where FAISS is
        needed and missing."""
        return cls(index, KeyFiles.open(index.folder, model))

    def search(
        self, queries: Array, k: int, known_pairs: KnownPairs | None = None
    ) -> tuple[Array, Array]:
        """The `k` nearest keys of every query: scores -D and positions, both (n, k), best first,
        equal ones by position.

        queries: (n, l + d) float32, c and s side by side. Where there are fewer keys, the scores at
        the end are -inf and the positions -1. known_pairs: what earlier searches found out of
        pairs, which is believed, and added to: the memory is then as it was at the first. Raises
        UsageError for queries of another size."""
        known_pairs = {} if known_pairs is None else known_pairs
        queries = np.asarray(queries, np.float32)
        header = self.files.header
        size = header.context_size + header.hidden_size
        if queries.ndim != 2 or queries.shape[1] != size or k < 1:
            raise UsageError(f"queries {queries.shape}, k {k}: wanted are (n, {size}), k >= 1")
        queries = self.directions.project(*np.split(queries, [header.context_size], 1))
        scores = np.full((len(queries), k), -np.inf, np.float32)
        positions = np.full((len(queries), k), -1, np.int64)
        unfilled, size = np.arange(len(queries)), k
        while len(unfilled):
            nearest_scores, nearest = self.nearest(queries[unfilled], size)
            alive = self._alive(nearest, known_pairs)
            first = np.argsort(~alive, axis=1, kind="stable")[:, :k]  # those that are alive
            valid = np.take_along_axis(alive, first, 1)
            scores[unfilled, : first.shape[1]] = np.where(
                valid, np.take_along_axis(nearest_scores, first, 1), -np.inf
            )
            positions[unfilled, : first.shape[1]] = np.where(
                valid, np.take_along_axis(nearest, first, 1), -1
            )
            short = (alive.sum(1) < k) & (nearest[:, -1] >= 0) & (size < self.files.positions)
            unfilled, size = unfilled[short], 2 * size
        return scores, positions

    def places(self, positions: Array) -> list[KeyPlace | None]:
        """Where the keys at these positions (n,) come from; of equal pairs the one with the
        smallest id. None: the segment is not there any more, or the position is -1."""
        known_pairs: KnownPairs = {}
        self.look_up(positions, known_pairs)
        return [
            KeyPlace(segment.id, int(position - self._starts[pair]), int(self.files.ids[position]))
            if position >= 0 and (segment := known_pairs[pair])
            else None
            for position, pair in zip(
                positions.tolist(), self.pairs(positions).tolist(), strict=True
            )
        ]

    def nearest(self, queries: Array, k: int) -> tuple[Array, Array]:
        """As `search` for queries (n, size) along the directions, but deleted segments are answered
        too."""
        scores, positions = flat(self._compared, queries, k)
        positions[positions >= 0] += self._indexed
        if self._faiss is None:
            return scores, positions
        distances, indexed = self._faiss.search(queries, min(k * self._widened, self._indexed))
        if self._widened > 1:
            distances = self._distances(queries, indexed)
        indexed_scores = np.where(indexed >= 0, -distances, -np.inf)
        return best(np.hstack([indexed_scores, scores]), np.hstack([indexed, positions]), k)

    def _distances(self, queries: Array, positions: Array) -> Array:
        """D of the keys on disk at the positions (n, candidates)."""
        keys = self._keys[np.maximum(positions, 0).reshape(-1)]
        differences = keys.reshape(*positions.shape, -1) - queries[:, None]
        return np.asarray(np.square(differences).sum(-1))

    def pairs(self, positions: Array) -> Array:
        """The number of the distinct pair whose rows each position is one of, in the shape of
        `positions`."""
        return np.asarray(np.searchsorted(self._starts, positions, "right") - 1)

    def starts(self, pairs: Array) -> Array:
        """The first position of each of the pairs with these numbers."""
        return np.asarray(self._starts[pairs])

    def pair_of(self, src: str, tgt: str) -> int | None:
        """The number of the pair with these texts; None where it has no keys."""
        record = self.files.record_of(digest_of(src, tgt))
        return None if record is None else int(self.pairs(self.files.records["start"][record]))

    def look_up(self, positions: Array, known_pairs: KnownPairs) -> None:
        """Adds to `known_pairs` those pairs of the positions that it lacks: of each the segment
        with the smallest id."""
        pairs = np.unique(self.pairs(positions[positions >= 0])).tolist()
        record_indices = {pair: int(self._first[pair]) for pair in pairs if pair not in known_pairs}
        known_pairs |= dict.fromkeys(record_indices)
        while record_indices:
            records = {pair: self._records[index] for pair, index in record_indices.items()}
            now = self.index.find(int(record["id"]) for record in records.values())
            for pair, record in records.items():
                segment = now.get(int(record["id"]))
                if segment and digest_of(segment.src, segment.tgt) == tuple(
                    record["digest"].tolist()
                ):
                    known_pairs[pair] = segment
            record_indices = {
                pair: index + 1
                for pair, index in record_indices.items()
                if not known_pairs[pair] and index + 1 < self._last[pair]
            }

    def _alive(self, positions: Array, known_pairs: KnownPairs) -> Array:
        """Which of the positions (n, k) belong to a segment that is there as it was."""
        self.look_up(positions, known_pairs)
        pairs, inverse = np.unique(self.pairs(positions), return_inverse=True)
        alive = np.array([known_pairs.get(pair) is not None for pair in pairs.tolist()])
        return alive[inverse.reshape(positions.shape)] & (positions >= 0)


def flat(keys: Array, queries: Array, k: int) -> tuple[Array, Array]:
    """The exact `k` nearest of the keys (N, size) for the queries (n, size): scores -D, positions
    (n, k)."""
    scores = np.full((len(queries), k), -np.inf, np.float32)
    positions = np.full((len(queries), k), -1, np.int64)
    query_squares = np.square(queries).sum(1, keepdims=True)
    rows = max(1024, min(BLOCK, (1 << 26) // max(1, len(queries))))  # at most 256 MB of scores
    for start in range(0, len(keys), rows):
        block_keys = keys[start : start + rows]
        block = (
            2 * queries @ block_keys.T - np.square(block_keys).sum(1) - query_squares
        )  # (n, rows)
        np.minimum(block, 0, out=block)
        top = (
            np.argpartition(block, -k, 1)[:, -k:]
            if k < block.shape[1]
            else np.arange(block.shape[1])[None]
        )
        top = np.broadcast_to(top, (len(queries), top.shape[1]))
        values = np.take_along_axis(block, top, 1)
        scores, positions = best(
            np.hstack([scores, values]), np.hstack([positions, top + start]), k
        )
    return scores, positions


def best(scores: Array, positions: Array, k: int) -> tuple[Array, Array]:
    """The `k` best columns of every row, best first, equal scores by position."""
    order = np.lexsort((positions, -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, 1), np.take_along_axis(positions, order, 1)
