"""Vectors in a few bits a number come back as near as theory says."""

from __future__ import annotations

import numpy as np
import pytest

from tmnmt.errors import DataError
from tmnmt.keys.layout import POSITION_BYTES, Header
from tmnmt.keys.quantised import Quantised, decode, encode, levels, row_bytes

# of a normal distribution at its best levels, in one number (Max 1960, table 1)
MAX = {1: 0.3634, 2: 0.1175, 3: 0.03454, 4: 0.009497, 5: 0.002499}


@pytest.mark.parametrize("bits", MAX)
def test_the_levels_are_those_of_max(bits: int) -> None:
    drawn = np.random.default_rng(0).normal(size=400_000)
    centres, bounds = levels(bits)
    assert len(centres) == 1 << bits
    error = np.mean((centres[np.searchsorted(bounds, drawn)] - drawn) ** 2)
    assert error == pytest.approx(MAX[bits], rel=0.02)


@pytest.mark.parametrize("size", [512, 256, 640, 33])
@pytest.mark.parametrize("kind", ["normal", "saturated", "one number"])
def test_what_comes_back_is_near_whatever_the_numbers_were(size: int, kind: str) -> None:
    draw = np.random.default_rng(1)
    vectors = draw.normal(size=(200, size)).astype(np.float32)
    if kind == "saturated":  # as the states of a GRU
        vectors = np.tanh(5 * vectors)
    if kind == "one number":
        vectors = np.eye(size, dtype=np.float32)[draw.integers(0, size, 200)] * 7
    rows = encode(vectors, 3)
    assert rows.shape == (200, row_bytes(size, 3)) and rows.dtype == np.uint8
    found = decode(rows, size, 3)
    error = np.linalg.norm(found - vectors, axis=1) / np.linalg.norm(vectors, axis=1)
    assert error.mean() < (0.25 if size == 33 and kind == "one number" else 0.21)
    np.testing.assert_allclose(
        np.linalg.norm(found, axis=1), np.linalg.norm(vectors, axis=1), rtol=2e-3
    )


def test_more_bits_are_nearer_and_nothing_stays_nothing() -> None:
    vectors = np.random.default_rng(2).normal(size=(50, 64)).astype(np.float32)
    errors = [
        np.abs(decode(encode(vectors, bits), 64, bits) - vectors).mean() for bits in range(1, 9)
    ]
    assert errors == sorted(errors, reverse=True) and errors[-1] < 0.01
    assert not decode(encode(np.zeros((2, 64), np.float32), 3), 64, 3).any()
    assert decode(encode(vectors[:0], 3), 64, 3).shape == (0, 64)


def test_rows_are_read_by_slices_and_by_numbers() -> None:
    vectors = np.random.default_rng(3).normal(size=(9, 64)).astype(np.float32)
    rows = Quantised(encode(vectors, 8), 64, 8)
    every = decode(encode(vectors, 8), 64, 8)
    assert (len(rows), rows.shape) == (9, (9, 64))
    # to the order in which a product is summed up, which goes by its size
    np.testing.assert_allclose(rows[2:5], every[2:5], atol=1e-5)
    np.testing.assert_allclose(rows[np.array([[8, 0], [3, 3]])], every[[[8, 0], [3, 3]]], atol=1e-5)


@pytest.mark.parametrize(
    ("number", "message"), [(np.nan, "is none"), (np.inf, "is none"), (1e9, "16 bits")]
)
def test_what_cannot_be_kept_is_an_error(number: float, message: str) -> None:
    with pytest.raises(DataError, match=message):
        encode(np.full((1, 64), number, np.float32), 3)


@pytest.mark.parametrize(("sizes", "bits"), [((512, 512), 3), ((256, 256), 6), ((32, 16), 8)])
def test_a_position_takes_at_most_400_bytes(sizes: tuple[int, int], bits: int) -> None:
    header = Header("model", *sizes, 80)
    assert header.bits == bits and header.position_bytes <= POSITION_BYTES == 400
