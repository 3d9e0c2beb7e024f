"""The keys of all pairs of several memories, searched as one at every step of decoding."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tmnmt.errors import UsageError
from tmnmt.index.base import FolderIndex, Index, has_folder
from tmnmt.keys.files import KeyFiles
from tmnmt.keys.layout import Array
from tmnmt.segments import Segment
from tmnmt.trained_layers.faiss_index import CHECKSUM_BYTES, FAISS_FILE, load_faiss
from tmnmt.trained_layers.key_directions import Directions
from tmnmt.trained_layers.key_search import KeySearch, KnownPairs, best

_NO_KEYS = (
    "neighbours are found in memories whose keys tmnmt keys has computed: indexes in folders or on "
    "servers"
)


class Entries(NamedTuple):
    """What stands at some positions (n, k): zeros, and pair -1, where the position is -1."""

    contexts: Array  # (n, k, l) float32 c'
    hiddens: Array  # (n, k, d) float32 z'
    ids: Array  # (n, k) int64 y'
    previous_ids: Array  # (n, k) int64 the subword before it in its pair, -1 before the first
    pairs: Array  # (n, k) int64 the number of its pair


class Datastore:
    """The searches in several memories' keys as one; positions and pairs are numbered through,
    memory after memory.

    Not for several threads at once."""

    def __init__(self, searches: Sequence[KeySearch]) -> None:
        self.searches = list(searches)
        self._first = np.cumsum([0, *(search.files.positions for search in searches)])
        self._first_pair = np.cumsum([0, *(len(search.files.records) for search in searches)])
        self._known_pairs: list[KnownPairs] = []
        self.forget()

    @classmethod
    def open(cls, indexes: Sequence[Index], model: str, threads: int | None = None) -> Datastore:
        """The keys that the indexes have of the model with this hash; `threads`: of FAISS.

        Raises MemoryIndexError, which names `tmnmt keys`, where an index has none; UsageError where
        it can have none, or where there is no index at all."""
        if not indexes:
            raise UsageError(_NO_KEYS)
        searches = [KeySearch.open(_with_keys(index), model) for index in indexes]
        if threads and any(search.kind != "flat" for search in searches):
            load_faiss().omp_set_num_threads(threads)
        return cls(searches)

    def forget(self, left_out: Iterable[int] = ()) -> list[KnownPairs]:
        """From now on changes of the memories since the last time are seen: what was deleted is
        found no more; nor are the pairs with the numbers `left_out`, until the next time. Gives
        what searches up to the next time find out of pairs."""
        self._known_pairs = [{} for _ in self.searches]
        for pair in left_out:
            memory_index, number = self._memory_of(pair)
            self._known_pairs[memory_index][number] = None
        return self._known_pairs

    def search(self, queries: Array, k: int) -> tuple[Array, Array]:
        """The `k` keys (all, where there are fewer) nearest to each query (n, l + d), c and s side
        by side: scores -D and positions (n, k), best first; -inf and -1 in the place of keys whose
        pair was deleted."""
        k = min(k, max(1, int(self._first[-1])))
        answers = [
            s.search(queries, k, known_pairs)
            for s, known_pairs in zip(self.searches, self._known_pairs, strict=True)
        ]
        if len(answers) == 1:
            return answers[0]
        shifted = [
            np.where(positions >= 0, positions + first, -1)
            for (_, positions), first in zip(answers, self._first, strict=False)
        ]
        return best(np.hstack([scores for scores, _ in answers]), np.hstack(shifted), k)

    def entries(self, positions: Array) -> Entries:
        """What stands at positions (n, k)."""
        header = self.searches[0].files.header
        shape = positions.shape
        entries = Entries(
            np.zeros((*shape, header.context_size), np.float32),
            np.zeros((*shape, header.hidden_size), np.float32),
            np.zeros(shape, np.int64),
            np.zeros(shape, np.int64),
            np.full(shape, -1),
        )
        for search, first, first_pair in zip(
            self.searches, self._first, self._first_pair, strict=False
        ):
            mask = (positions >= first) & (positions < first + search.files.positions)
            rows, files = positions[mask] - first, search.files
            pairs = search.pairs(rows)
            entries.contexts[mask] = files.contexts[rows]
            entries.hiddens[mask] = files.hiddens[rows]
            entries.ids[mask] = files.ids[rows]
            entries.previous_ids[mask] = np.where(
                search.starts(pairs) == rows, -1, files.ids[np.maximum(rows - 1, 0)]
            )
            entries.pairs[mask] = pairs + first_pair
        return entries

    def states(self, positions: Array) -> tuple[Array, Array]:
        """z' (n, d) float32 and y' (n,) int64 at positions (n,)."""
        hiddens = np.zeros((len(positions), self.searches[0].files.header.hidden_size), np.float32)
        for search, first in zip(self.searches, self._first, strict=False):
            mask = (positions >= first) & (positions < first + search.files.positions)
            hiddens[mask] = search.files.hiddens[positions[mask] - first]
        return hiddens, self.words(positions)

    def with_following(self, positions: Array, count: int) -> Array:
        """Positions (n,) and those behind them in their pairs, `count` of each at most: (m,), each
        once, ascending."""
        runs = [np.zeros(0, np.int64)]
        for search, first in zip(self.searches, self._first, strict=False):
            last = search.files.positions - 1
            rows = positions[(positions >= first) & (positions <= first + last)] - first
            following = np.minimum(rows[:, None] + np.arange(count + 1), last)
            in_pair = search.pairs(following) == search.pairs(rows)[:, None]
            runs.append(np.unique(following[in_pair]) + first)
        return np.concatenate(runs)

    def words(self, positions: Array) -> Array:
        """y' at positions (n, k), int64; 0 where the position is -1."""
        words = np.zeros(positions.shape, np.int64)
        for search, first in zip(self.searches, self._first, strict=False):
            mask = (positions >= first) & (positions < first + search.files.positions)
            words[mask] = search.files.ids[positions[mask] - first]
        return words

    def pair_of(self, src: str, tgt: str) -> list[int]:
        """The numbers of the pair with these texts, one for every memory that has its keys."""
        numbers = [search.pair_of(src, tgt) for search in self.searches]
        return [
            number + int(first)
            for number, first in zip(numbers, self._first_pair, strict=False)
            if number is not None
        ]

    def segment(self, pair: int, known_pairs: Sequence[KnownPairs] = ()) -> Segment:
        """A segment that has the pair of this number, by what searches found out of pairs:
        `known_pairs`, or since the last time. Raises LookupError where none has found it."""
        memory_index, number = self._memory_of(pair)
        segment = (known_pairs or self._known_pairs)[memory_index].get(number)
        if segment is None:
            raise LookupError(f"pair {pair} was not found by a search")
        return segment

    def _memory_of(self, pair: int) -> tuple[int, int]:
        """Which memory a pair is of, and its number there."""
        memory_index = int(np.searchsorted(self._first_pair, pair, "right")) - 1
        return memory_index, pair - int(self._first_pair[memory_index])

    def place(self, position: int) -> tuple[int, int]:
        """The number of the pair that a position belongs to, and the subword position in that
        pair's target."""
        memory_index = int(np.searchsorted(self._first, position, "right")) - 1
        local_position = position - int(self._first[memory_index])
        pair = int(self.searches[memory_index].pairs(np.array(local_position)))
        return pair + int(self._first_pair[memory_index]), local_position - int(
            self.searches[memory_index].starts(np.array(pair))
        )


def keys_state(index: Index, model: str) -> str:
    """What tells the keys that an index has of a model from those of another time. Raises as
    `Datastore.open`."""
    files = KeyFiles.open(_with_keys(index).folder, model)
    checksum = zlib.crc32(Directions.open(files).matrix.tobytes())
    return f"{files.positions} {checksum} {_checksum(files.folder / FAISS_FILE)}"


def _with_keys(index: Index) -> FolderIndex:
    if not has_folder(index):
        raise UsageError(_NO_KEYS)
    return index


def _checksum(path: Path) -> str:
    if not path.exists():
        return "flat"
    with path.open("rb") as file:
        file.seek(-CHECKSUM_BYTES, os.SEEK_END)
        return file.read().hex()
