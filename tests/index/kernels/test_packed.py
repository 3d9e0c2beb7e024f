"""Packed lists give back what was packed."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tmnmt.index.embedded.inversion import write_lists, write_tokens
from tmnmt.index.embedded.packed import NAMES, PackedLists, unpacked, width_of
from tmnmt.index.kernels.arrays import WIDTH_BITS
from tmnmt.index.kernels.packed import block_from, is_inside

GREATEST = 2**31 - 1
SETS = st.lists(
    st.one_of(
        st.sets(st.integers(0, GREATEST), max_size=300),
        st.integers(0, 400).map(lambda size: set(range(size))),
        st.integers(1, 500).map(lambda step: set(range(0, 300 * step, step))),
    ),
    max_size=6,
)


def packed_lists(folder: Path, lists: list[list[int]]) -> PackedLists:
    start = np.cumsum([0, *map(len, lists)])
    write_lists(folder, "x", np.array([n for of in lists for n in of], np.int32), start)
    return PackedLists.of_parts({path.stem: np.load(path) for path in folder.glob("*.npy")}, "x")


@settings(max_examples=60, deadline=None)
@given(SETS)
def test_lists_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, sets: list[set[int]]
) -> None:
    lists = [sorted(numbers) for numbers in sets]
    packed = packed_lists(tmp_path_factory.mktemp("packed"), lists)
    order = np.array([*range(len(lists)), *range(len(lists))][::-1], np.int64)
    assert packed.numbers(order).tolist() == [n for row in order for n in lists[row]]
    for header, count in zip(packed.headers, block_counts(packed), strict=True):
        assert is_block_inside(packed.packed, header, count)
        behind = header + (64 * len(packed.packed) << WIDTH_BITS)
        assert count == 1 or not is_block_inside(packed.packed, behind, count)


def block_counts(packed: PackedLists) -> list[int]:
    return [
        min(128, size - begin)
        for size in np.diff(packed.start).tolist()
        for begin in range(0, size, 128)
    ]


@numba.njit
def is_block_inside(packed, header, count):  # type: ignore[no-untyped-def]
    return is_inside(packed, header, count)


@numba.njit
def first_block(firsts, minimum):  # type: ignore[no-untyped-def]
    return block_from(firsts, 0, firsts.size, minimum)


def test_a_number_is_looked_for_in_the_block_where_it_may_stand() -> None:
    firsts = np.array([3, 10, 10_000], np.int32)
    blocks = [first_block(firsts, minimum) for minimum in (0, 3, 4, 10, 11, 10_000, 10_001)]
    assert blocks == [0, 0, 0, 0, 1, 1, 2]


@pytest.mark.parametrize("vocabulary", [1, 2, 3, 256, 257, 70_000])
def test_tokens_are_read_as_they_were_written(tmp_path: Path, vocabulary: int) -> None:
    tokens = np.random.default_rng(vocabulary).integers(0, vocabulary, 1000).astype(np.int32)
    tokens[-1] = vocabulary - 1
    write_tokens(tmp_path, tokens, vocabulary)
    packed, width = np.load(tmp_path / "tokens.npy"), width_of(vocabulary)
    assert len(packed) * 64 < 1000 * width + 192
    offsets = np.arange(1000) * width
    assert unpacked(packed, offsets, width).tolist() == tokens.tolist()


def test_a_place_outside_of_what_was_written_is_an_error(tmp_path: Path) -> None:
    packed = packed_lists(tmp_path, [[1, 5, 1000]])
    with pytest.raises(IndexError):
        packed._replace(headers=packed.headers + (1 << 20)).numbers(np.array([0]))
    assert {name.format("x") for name in NAMES} == {path.stem for path in tmp_path.glob("*.npy")}
