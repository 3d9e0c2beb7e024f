"""The compiled inner loops against plain ones, on real text."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray
from places import JRC
from rapidfuzz.distance import Levenshtein

import tmnmt
from tmnmt.formats import read_memory
from tmnmt.index.embedded.inversion import Inversion
from tmnmt.index.embedded.postings import Postings
from tmnmt.index.kernels.arrays import Arrays, address_of, table_of
from tmnmt.index.kernels.arrays import numbered as vocabulary_of
from tmnmt.index.kernels.packed import pack
from tmnmt.index.kernels.search import (
    MOST_RARE,
    Best,
    candidates,
    carved,
    edit_distance,
    insert,
    query_of,
    token_width,
)
from tmnmt.segments import Segment
from tmnmt.text import match_tokens


@numba.njit
def room_for(size, groups, longest):  # type: ignore[no-untyped-def]
    return carved(0, size, groups, longest)[0] // 8


@numba.njit
def distance_of(arrays, pattern, text, address):  # type: ignore[no-untyped-def]
    _, room = carved(address, pattern.size, 0, 0)
    query, width = query_of(arrays, pattern, pattern.size, room), token_width(arrays)
    packed = np.zeros(text.size * width // 64 + 2, np.uint64)
    pack(text, width, packed)
    return edit_distance(query, packed, width, 0, text.size)


@numba.njit
def found_in(arrays, sequence, least, address):  # type: ignore[no-untyped-def]
    longest = arrays.length_start.size - 2
    _, room = carved(address, sequence.size, arrays.member_offsets.size - 1, longest)
    query = query_of(arrays, sequence, sequence.size, room)
    found = candidates(arrays, query, least, 1, longest, room)
    return room.groups[:found].copy(), room.lengths[:found].copy(), room.shared[:found].copy()


def at(room: NDArray[np.uint64]) -> int:
    return address_of("room", room, np.uint64, len(room), writable=True)


def no_postings(vocabulary: int) -> Arrays:
    """Of a memory without features."""
    none = np.zeros(1, np.int64)
    small, starts = np.zeros(1, np.int32), np.zeros(vocabulary + 1, np.int32)
    columns = np.zeros(8, np.uint64)
    return Arrays(
        length_start=none,
        token_start=none,
        tokens=columns,
        feature_start=starts,
        column_of=small.astype(np.int16),
        columns=columns,
        column_blocks=columns,
        posting_start=none,
        posting_block=none,
        posting_first=small,
        posting_header=none,
        postings=columns,
        member_offsets=np.zeros(2, np.int32),
        members=small,
        document_of=small,
        ids=small.astype(np.uint32),
    )


@pytest.mark.parametrize("size", [1, 5, 63, 64, 65, 128, 300])
def test_bit_parallel_edit_distance_is_exact(size: int) -> None:
    random = np.random.default_rng(size)
    for _ in range(50):
        vocabulary = int(random.integers(2, 40))
        pattern = random.integers(-1, vocabulary, size).astype(np.int32)
        text = random.integers(0, vocabulary, int(random.integers(1, 2 * size + 2))).astype(
            np.int32
        )
        if random.random() < 0.5:  # like one another, as a memory's segments are
            text = np.where(random.random(size) < 0.8, np.maximum(pattern, 0), 0).astype(np.int32)
        wanted = Levenshtein.distance(
            [t + 1 for t in pattern.tolist()], [t + 1 for t in text.tolist()]
        )
        room = np.empty(room_for(size, 0, 0), np.uint64)
        found = distance_of(no_postings(vocabulary), pattern, text, at(room))
        assert found == wanted


def test_a_rank_that_stands_twice_has_no_place_behind_the_last() -> None:
    plain = insert.py_func  # type: ignore[attr-defined]  # as Python it looks at the bounds
    best = Best(np.array([5, 7], np.int32), np.array([1, 2], np.int32), np.array([0.9, 0.8]))
    assert plain(best, 2, 0.8, 7, 2) == 2
    assert (best.ranks.tolist(), best.edits.tolist(), best.scores.tolist()) == (
        [5, 7],
        [1, 2],
        [0.9, 0.8],
    )
    assert plain(best, 2, 0.8, 6, 2) == 2 and best.ranks.tolist() == [5, 6]


def numbered(sequence: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Every token with the number of its occurrence."""
    seen: Counter[str] = Counter()
    for token in sequence:
        seen[token] += 1
        yield token, seen[token]


def scan_count(
    sequences: Sequence[Sequence[str]], queries: Sequence[Sequence[str]]
) -> Iterator[list[int]]:
    """For every query the tokens that each sequence shares with it, by plain counting over postings
    (ScanCount)."""
    postings = defaultdict(list)
    for group, sequence in enumerate(sequences):
        for feature in numbered(sequence):
            postings[feature].append(group)
    for query in queries:
        shared = [0] * len(sequences)
        for feature in numbered(query):
            for group in postings.get(feature, []):
                shared[group] += 1
        yield shared


def real_sequences() -> list[list[str]]:
    """Token sequences of 1 to 1,000 tokens: real sources, and runs of them."""
    draw = random.Random(5)
    sources = [
        tokens for segment in read_memory(JRC, "en", "fr") if (tokens := match_tokens(segment.src))
    ]
    joined = [
        [token for source in sources[i : i + 60] for token in source]
        for i in range(0, len(sources), 20)
    ]
    return sources + [run[: draw.randint(100, 1000)] for run in joined]


def rare_features(arrays: Arrays, sequence: NDArray[np.int32]) -> int:
    """How many features of a query have postings."""
    count = 0
    for token, occurrences in Counter(sequence[sequence >= 0].tolist()).items():
        first, end = arrays.feature_start[token], arrays.feature_start[token + 1]
        count += int((arrays.column_of[first : min(first + occurrences, end)] < 0).sum())
    return count


@pytest.mark.parametrize("columns", [0, 7, 512, 30_000])
def test_shared_tokens_counted_for_512_groups_at_once_are_those_counted_one_by_one(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmnmt.index.embedded.inversion.MOST_COLUMNS", columns)
    sequences = real_sequences()
    inversion = Inversion(tmp_path)
    inversion.add(
        range(1, len(sequences) + 1), [Segment(" ".join(tokens), "") for tokens in sequences]
    )
    inversion.write(tmp_path / "postings")
    postings = Postings.open(tmp_path / "postings", with_words=False)
    arrays = Arrays(*postings.mapped.arrays[: len(Arrays._fields)])
    arrays = arrays._replace(
        columns=arrays.columns.reshape(-1), column_blocks=arrays.column_blocks.reshape(-1)
    )
    words = postings._parts["vocabulary"].tobytes().decode().split("\n")
    number = {token: i for i, token in enumerate(words)}
    groups = [tokens for tokens, _ in postings.groups()]
    assert sorted(groups) == sorted(map(list, {tuple(sequence) for sequence in sequences}))
    queries = [
        *random.Random(columns).sample(sequences, 12),
        sequences[-1],
        sequences[-2],
        ["unheard", "of"],
    ]
    for query, shared in zip(queries, scan_count(groups, queries), strict=True):
        sequence = np.array([number.get(token, -1) for token in query], np.int32)
        longest = len(arrays.length_start) - 2
        room = np.empty(room_for(len(sequence), len(groups), longest), np.uint64)
        for least in (-1e-9, 0.3, 0.5, 0.8, 1.0 - 1e-9):
            found = found_in(arrays, sequence, least, at(room))
            needed = [least * max(len(query), len(group)) for group in groups]
            if uncounted := max(rare_features(arrays, sequence) - MOST_RARE, 0):
                bounds = dict(zip(found[0].tolist(), found[2].tolist(), strict=True))
                assert all(
                    n <= bounds.get(g, -1) <= n + uncounted
                    for g, n in enumerate(shared)
                    if n >= needed[g]
                )
                continue
            wanted = [(g, len(groups[g]), n) for g, n in enumerate(shared) if n >= needed[g]]
            assert list(zip(*found, strict=True)) == wanted


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros(4, np.int32), r"4 int32 of strides \[4\], writable"),
        (np.zeros(3, np.int64), "3 int64"),
        (np.zeros(8, np.int64)[::2], r"strides \[16\]"),
        (np.zeros((4, 2), np.int64)[:, 0], r"strides \[16\]"),
        (np.zeros(4, ">i8"), "4 >i8"),
        (np.frombuffer(bytes(32), np.int64), "read-only"),
    ],
)
def test_an_array_that_compiled_code_would_misread_is_an_error(
    array: NDArray[Any], reason: str
) -> None:
    wanted = "wanted: 4 int64, contiguous, writable"
    with pytest.raises(ValueError, match=f"numbers: .*{reason}.*{wanted}"):
        address_of("numbers", array, np.int64, 4, writable=True)


def test_a_part_of_another_type_is_an_error_and_no_crash() -> None:
    arrays = no_postings(3)
    words = vocabulary_of(np.frombuffer(b"a\nb", np.uint8))
    assert len(table_of(arrays, words)) == len(arrays) + len(words)
    with pytest.raises(ValueError, match="postings: 8 int64"):
        table_of(arrays._replace(postings=arrays.postings.astype(np.int64)), words)
    with pytest.raises(ValueError, match=r"tokens: .* of strides"):
        table_of(arrays._replace(tokens=np.zeros(6, np.uint64)[::2]), words)


def test_no_address_is_taken_elsewhere_in_the_index() -> None:
    package = Path(tmnmt.__file__).parent
    places = (package / "index").rglob("*.py")
    assert [path.name for path in places if "ctypes" in path.read_text(encoding="utf-8")] == [
        "arrays.py"
    ]
