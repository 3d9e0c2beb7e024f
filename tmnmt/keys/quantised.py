"""Vectors in a few bits a number.

A vector is turned by a fixed rotation (signs, then Hadamard's matrix; Ailon and Chazelle 2009),
after which its numbers are spread like those of a normal distribution, whatever they were. Each
becomes the nearest of 2^bits levels, which are the best for that distribution (Lloyd 1982, Max
1960), times a scale of 16 bits that gives the vector its length back. Nothing is learned: the same
vector is the same bytes for every memory.

    n: vectors    size: numbers of each    bits: of each number, 1 to 8
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tmnmt.errors import DataError

Array = NDArray[Any]
ROUNDS = 100  # of Lloyd's algorithm
_NORMAL = NormalDist()


def row_bytes(size: int, bits: int) -> int:
    """The bytes of a vector: its scale, and its numbers.

    size: how many numbers it has.
    bits: how many bits a number has."""
    return 2 + (size + 7) // 8 * bits


def encode(vectors: Array, bits: int) -> Array:
    """Vectors as rows, (n, row_bytes) uint8: the scale, the lowest bits of all numbers, the next
    ones.

    vectors: (n, size), the vectors.
    bits: how many bits a number has.

    Raises DataError for numbers that are not finite, or too great for the scale."""
    n, size = vectors.shape
    if not np.isfinite(vectors).all():
        raise DataError("a key of this model has a number that is none")
    rotated = vectors.astype(np.float32) @ rotation(size)
    length = np.linalg.norm(rotated, axis=1, keepdims=True)
    unit = np.divide(rotated, length, out=np.zeros_like(rotated), where=length > 0)
    centres, bounds = levels(bits)
    codes = np.searchsorted(bounds, unit * np.sqrt(np.float32(size))).astype(np.uint8)
    with np.errstate(over="ignore", invalid="ignore"):
        scale = (length / np.linalg.norm(centres[codes], axis=1, keepdims=True)).astype("<f2")
    if not np.isfinite(scale).all():
        raise DataError("a key of this model is too great for the 16 bits of its scale")
    planes = [np.packbits(codes >> bit & 1, axis=1) for bit in range(bits)]
    return np.hstack([scale.view(np.uint8).reshape(n, 2), *planes])


def decode(rows: Array, size: int, bits: int) -> Array:
    """Rows as vectors, (..., size) float32.

    rows: (..., row_bytes) uint8, the rows.
    size: how many numbers a vector has.
    bits: how many bits a number has."""
    flat = rows.reshape(-1, rows.shape[-1])
    codes = np.zeros((len(flat), size), np.uint8)
    for bit, plane in enumerate(np.split(flat[:, 2:], bits, axis=1)):
        codes |= np.unpackbits(plane, axis=1, count=size) << np.uint8(bit)
    scale = np.ascontiguousarray(flat[:, :2]).view("<f2").astype(np.float32)
    rotated = levels(bits)[0][codes] * scale
    # by torch, which takes as many threads as it was told to
    vectors: Array = (torch.from_numpy(rotated) @ torch.from_numpy(rotation(size)).t()).numpy()
    return vectors.reshape(*rows.shape[:-1], size)


class Quantised:
    """Rows as what they stand for, which are read when they are needed."""

    def __init__(self, rows: Array, size: int, bits: int) -> None:
        """rows: (N, row_bytes) uint8, the rows, which stand for (N, size) float32.
        size: how many numbers a vector has.
        bits: how many bits a number has."""
        self._rows, self._bits = rows, bits
        self.shape = len(rows), size

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Array | slice) -> Array:
        return decode(np.asarray(self._rows[index]), self.shape[1], self._bits)


@cache
def levels(bits: int) -> tuple[Array, Array]:
    """The levels (2^bits,) for a normal distribution, ascending, and the bounds between them.

    bits: how many bits a number has."""
    count = 1 << bits
    bounds = [_NORMAL.inv_cdf(i / count) * 3**0.5 for i in range(1, count)]
    centres: list[float] = []
    for _ in range(ROUNDS):
        cdf = [0.0, *map(_NORMAL.cdf, bounds), 1.0]
        pdf = [0.0, *map(_NORMAL.pdf, bounds), 0.0]
        centres = [(pdf[i] - pdf[i + 1]) / (cdf[i + 1] - cdf[i]) for i in range(count)]
        bounds = [(lower + upper) / 2 for lower, upper in pairwise(centres)]
    return np.array(centres, np.float32), np.array(bounds, np.float32)


def signs_of(size: int) -> Array:
    """(size,): fixed signs, the bits of the fractional part of multiples of the golden ratio.

    size: how many there are."""
    parts = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return np.where(parts >> np.uint64(40) & np.uint64(1), 1, -1).astype(np.float32)


@cache
def rotation(size: int) -> Array:
    """(size, size): the signs, then Hadamard's matrix, in blocks whose sizes are powers of two.

    size: how many numbers a vector has."""
    matrix = np.zeros((size, size), np.float32)
    start = 0
    while start < size:
        block = np.ones((1, 1), np.float32)
        while 2 * len(block) <= size - start:
            block = np.block([[block, block], [block, -block]]) / np.sqrt(np.float32(2))
        end = start + len(block)
        matrix[start:end, start:end], start = block, end
    return signs_of(size)[:, None] * matrix
