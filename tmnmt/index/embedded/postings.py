"""The embedded exact inverted index: immutable numpy arrays, memory-mapped, shared by processes."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tmnmt.errors import MemoryIndexError
from tmnmt.index.concordance import Phrase
from tmnmt.index.embedded.fragments import Fragments, Runs
from tmnmt.index.embedded.packed import NAMES, block_starts, unpacked, width_of
from tmnmt.index.embedded.positions import POSITIONS, TARGET, WordPositions
from tmnmt.index.embedded.prepared import PreparedQuery
from tmnmt.index.embedded.small_json import parsed
from tmnmt.index.embedded.structure import first_damage
from tmnmt.index.kernels.arrays import (
    Arrays,
    address_of,
    numbered,
    table_of,
)
from tmnmt.index.same_skeleton import OF_EQUAL_SOURCES
from tmnmt.index.skeleton import texts_with

# parts beside those of `kernels.Arrays`
VOCABULARY, DOCUMENTS, IDS, SKELETONS = "vocabulary", "documents", "ids", "skeletons"
POSTING = "posting"  # the kind of their lists
NO_DOCUMENT = -1  # as the document to leave out: none
_MOST_HEADER_BYTES, _ALIGNED = 192, 64
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<type>[<|][iu][1-8])', 'fortran_order': False, "
    rb"'shape': \((?P<shape>\d{1,18},|\d{1,18}, \d{1,18})\), \} *\n",
    re.DOTALL,
)


class Mapped(NamedTuple):
    """What the compiled search reads.

    table: where the table of addresses is.
    arrays: all that these are of, which must live as long as they are read."""

    table: int
    arrays: tuple[np.ndarray[Any, Any], ...]


class Postings:
    """The best segments for a token sequence, exactly as brute force finds them."""

    def __init__(self, folder: Path, parts: dict[str, np.ndarray[Any, Any]]) -> None:
        """folder: the folder of the postings.
        parts: its arrays, by their names."""
        self._folder, self._parts = folder, parts
        self._ids = parts[IDS]  # by rank

    @classmethod
    def open(cls, folder: Path, *, with_words: bool = True) -> Postings:
        """The postings in a folder, mapped, so that they can be searched when the folder is gone.
        Only the small parts are read before the first search.

        folder: the folder.
        with_words: whether they keep where words stand, which `with_phrase` and `covering` need.

        Raises MemoryIndexError where a part is unusable."""
        parts = {path.stem: _map(path) for path in folder.glob("*.npy")}
        if (damage := first_damage(parts, with_words)) is not None:
            raise _damaged(folder / f"{damage[0]}.npy", damage[1])
        return cls(folder, parts)

    def __len__(self) -> int:
        """How many segments have a rank."""
        return len(self._ids)

    def same_skeleton(
        self, queries: Sequence[PreparedQuery], is_meant: Callable[[int], bool]
    ) -> list[list[int]]:
        """For every query the ids of as many segments as it wants whose source may have its
        skeleton: those of as many match tokens first, then the newest; of equal sources a few.
        Another skeleton can have the same hash.

        queries: the queries.
        is_meant: says of an id whether the segment may be found."""
        ids: list[list[int]] = [[] for _ in queries]
        rows = [
            row for row, query in enumerate(queries) if query.query.same_skeleton and query.skeleton
        ]
        if not rows:
            return ids
        groups_of = texts_with(self._parts[SKELETONS], [queries[row].skeleton_hash for row in rows])
        for row, groups in zip(rows, groups_of, strict=True):
            if len(groups):
                ids[row] = self._members(queries[row], groups, is_meant)
        return ids

    def _members(
        self, query: PreparedQuery, groups: NDArray[np.int64], is_meant: Callable[[int], bool]
    ) -> list[int]:
        """The ids of the segments of these groups, as `same_skeleton` wants them."""
        k, length = query.query.same_skeleton, len(query.tokens)
        starts, offsets = self._parts["length_start"], self._parts["member_offsets"]
        if groups.max() >= len(offsets) - 1:
            raise _damaged(self._folder / f"{SKELETONS}.npy", "names a text that is not there")
        first, end = starts[[min(length, len(starts) - 1), min(length + 1, len(starts) - 1)]]
        is_different = (groups < first) | (groups >= end)
        newest = self._parts["members"][offsets[groups]]
        ids: list[int] = []
        for group in groups[np.lexsort((newest, is_different))].tolist():
            ranks = self._parts["members"][offsets[group] : offsets[group + 1]]
            alive = filter(is_meant, self.ids_of(ranks))
            ids += itertools.islice(alive, min(OF_EQUAL_SOURCES, k - len(ids)))
            if len(ids) == k:
                break
        return ids

    def with_phrase(
        self, phrase: Phrase, k: int, allowed_ids: NDArray[np.bool_] | None = None
    ) -> list[int]:
        """The ids of the newest segments that have a phrase.

        phrase: the phrase.
        k: how many ids are given at most.
        allowed_ids: (ids,), by id whether the segment counts; None lets all count."""
        side, name = (self._sources, "") if phrase.side == "source" else (self._targets, TARGET)
        with self._reading(name + POSITIONS):
            return side.newest(phrase, k, allowed_ids)

    @property
    def sources(self) -> int:
        """How many distinct token sequences the sources have."""
        return self._fragments.sources

    def places(self, words: Sequence[str]) -> NDArray[np.int64]:
        """(words,), how often each word stands in the distinct sources.

        words: the words."""
        with self._reading(POSITIONS):
            return self._fragments.places(words)

    def runs(self, words: Sequence[str], is_rare: NDArray[np.bool_]) -> Runs:
        """All runs of two tokens or more of a text that have a rare one.

        words: the match tokens of the text.
        is_rare: (words,), which of them are rare."""
        with self._reading(POSITIONS):
            return self._fragments.runs(words, is_rare)

    def newest_of(self, group: int, is_meant: Callable[[int], bool]) -> int | None:
        """The id of the newest segment of a token sequence that is meant; None where none is.

        group: the number of the sequence.
        is_meant: says of an id whether the segment may be taken."""
        with self._reading(POSITIONS):
            return self._fragments.newest_of(group, is_meant)

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """What is raised where the part of this name is damaged is told as that."""
        try:
            yield
        except (IndexError, ValueError) as error:
            raise _damaged(self._folder / f"{name}.npy", str(error)) from error

    @cached_property
    def _fragments(self) -> Fragments:
        return Fragments(self._parts)

    @cached_property
    def _sources(self) -> WordPositions:
        return WordPositions(self._parts, "")

    @cached_property
    def _targets(self) -> WordPositions:
        return WordPositions(self._parts, TARGET)

    def by_rank(self, of_ids: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """What `search` takes as `allowed`.

        of_ids: (ids,), by id whether the segment counts."""
        allowed: NDArray[np.uint8] = of_ids[self._ids].astype(np.uint8)
        return allowed

    def groups(self) -> Iterator[tuple[list[str], list[int]]]:
        """Every distinct token sequence and the ids of its segments, newest first."""
        words = self._parts[VOCABULARY].tobytes().decode().split("\n")
        width = width_of(len(words))
        ids = self._ids[self._parts["members"]]
        members = iter(itertools.pairwise(self._parts["member_offsets"].tolist()))
        for length, (first, end) in enumerate(
            itertools.pairwise(self._parts["token_start"].tolist())
        ):
            for start in range(first, end, length or 1):  # none has no tokens
                begin, stop = next(members)
                places = np.arange(start, start + length, dtype=np.int64)
                tokens = unpacked(self._parts["tokens"], places * width, width).tolist()
                yield [words[token] for token in tokens], ids[begin:stop].tolist()

    @cached_property
    def mapped(self) -> Mapped:
        """What the compiled search reads, with `ids` in its type."""
        words = numbered(self._parts[VOCABULARY])
        start = self._parts[NAMES[0].format(POSTING)]
        ids = self._ids.astype(np.uint32, copy=False)
        parts = {**self._parts, "posting_block": block_starts(start), IDS: ids}
        arrays = Arrays(**{name: parts[name] for name in Arrays._fields})
        table = table_of(arrays, words)
        address = address_of("table", table, np.int64, table.size)
        return Mapped(address, (*arrays, *words, table))

    def ids_of(self, ranks: NDArray[Any]) -> list[int]:
        """The ids of the segments of some ranks, as a member of a group or a hit has them.

        ranks: (segments,), the ranks.

        Raises MemoryIndexError where no segment has a rank."""
        if len(ranks) and not 0 <= ranks.min() <= ranks.max() < len(self._ids):
            raise _damaged(self._folder / "members.npy", "names a segment that is not there")
        ids: list[int] = self._ids[ranks].tolist()
        return ids

    @cached_property
    def _number_of_document(self) -> dict[str, int]:
        try:
            names = cast(list[str], parsed(self._parts[DOCUMENTS].tobytes()))
            return {document: number for number, document in enumerate(names)}
        except (ValueError, TypeError) as error:
            raise _damaged(self._folder / f"{DOCUMENTS}.npy", str(error)) from error

    def document(self, name: str) -> int:
        """The number of a document, `NO_DOCUMENT` where there is none of that name.

        name: the name; "" for none."""
        return self._number_of_document.get(name, NO_DOCUMENT) if name else NO_DOCUMENT


def _map(path: Path) -> np.ndarray[Any, Any]:
    """The array in a file as `np.save` writes it, mapped. numpy itself would evaluate the header as
    Python."""
    try:
        with path.open("rb") as file:
            header = _HEADER.match(file.read(_MOST_HEADER_BYTES))
        if header is None:
            raise ValueError("no array of numbers")
        dtype = np.dtype(header["type"].decode())
        shape = tuple(int(size) for size in header["shape"].split(b",") if size.strip())
        count, begin = math.prod(shape), header.end()
        if begin % _ALIGNED or path.stat().st_size - begin != count * dtype.itemsize:
            raise ValueError("its size is not what it says")
        return (
            np.asarray(np.memmap(path, dtype, "r", begin, shape))
            if count
            else np.empty(shape, dtype)
        )
    except (OSError, ValueError, TypeError) as error:
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, problem: str) -> MemoryIndexError:
    return MemoryIndexError(
        f"{path}: damaged ({problem}); take it from a backup, or build the index again; "
        "tmnmt memory verify looks at everything"
    )
