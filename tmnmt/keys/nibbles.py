"""The direction of a vector in four bits a number.

A vector at length 1 is turned as in `quantised.py`, and each of its numbers becomes the nearest of
sixteen levels. No length is kept: of a state, only the direction is compared. The levels are whole
numbers, so compiled code multiplies them as it multiplies weights in int8.

    n: vectors    d: numbers of each, made even by a zero    w: bytes of each, half of d"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize, pad

from tmnmt.compiled import kernels
from tmnmt.keys.quantised import levels, rotation, signs_of

BITS = 4
LARGEST = 127  # of a level as a whole number


def width(size: int) -> int:
    """The bytes of a vector.

    size: how many numbers it has."""
    return (size + 1) // 2


def whole_levels() -> tuple[Tensor, float]:
    """The levels (16,) int8, ascending, and what 1 of them is worth."""
    return _levels()[0], _levels()[1]


@cache
def _levels() -> tuple[Tensor, float, Tensor]:
    centres, bounds = levels(BITS)
    unit = float(centres[-1]) / LARGEST
    whole = np.rint(centres / unit).astype(np.int8)
    return torch.from_numpy(whole), unit, torch.from_numpy(np.ascontiguousarray(bounds))


@cache
def signs(size: int) -> Tensor:
    """The signs (d,) that a vector is turned by first.

    size: how many numbers it has, d."""
    return torch.from_numpy(np.ascontiguousarray(signs_of(size)))


def even(vectors: Tensor) -> Tensor:
    """The vectors with a number of numbers that is even.

    vectors: (..., d), the vectors."""
    return pad(vectors, (0, 1)) if vectors.shape[-1] % 2 else vectors


def rotate(vectors: Tensor) -> Tensor:
    """Vectors at length 1 as `directions` has them.

    vectors: (..., d), the vectors."""
    unit = normalize(even(vectors), dim=-1)
    return unit @ torch.from_numpy(rotation(unit.shape[-1])).to(unit)


def encode(vectors: Tensor) -> Tensor:
    """The directions of vectors, (n, w) uint8.

    vectors: (n, d), the vectors."""
    vectors = even(vectors.float())
    size = vectors.shape[1]
    if vectors.device.type != "cpu":
        return _packed(
            torch.bucketize(rotate(vectors) * size**0.5, _levels()[2].to(vectors.device))
        )
    return kernels.encode_directions(vectors.contiguous(), signs(size), _levels()[2])


def directions(codes: Tensor) -> Tensor:
    """What the inner product with a turned vector of length 1 is taken of, (..., d). Its
    expectation is that with the vector itself.

    codes: (..., w) uint8, the directions."""
    level_codes = torch.stack([codes & 15, codes >> 4], -1).flatten(-2)
    whole, unit = whole_levels()
    numbers: Tensor = whole.to(codes.device).float()[level_codes.long()]
    square = numbers.square().sum(-1, keepdim=True).clamp_min(1.0)
    vectors: Tensor = numbers * (level_codes.shape[-1] ** 0.5 / unit / square)
    return vectors


def _packed(codes: Tensor) -> Tensor:
    """Codes (n, d) of four bits as bytes (n, w)."""
    codes = codes.to(torch.uint8)
    return codes[..., ::2] | codes[..., 1::2] << 4
