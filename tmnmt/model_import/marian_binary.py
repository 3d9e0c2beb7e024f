"""Marian's binary files: its container of tensors, version 1, as `model.bin` and Mozilla's
`model.enpt.intgemm.alphas.bin` are, and its shortlists.

A container is little-endian: u64 version, u64 number of items; of every item four u64: the length
of its name with the closing NUL, its type, the length of its shape, the length of its data; then
all names, all shapes (int32), a u64 count of padding bytes and these, and all data.

Every length is compared with the file before anything of it is read. A matrix of type intgemm8 is
stored transposed, but for embeddings, and has its multiplier q behind it, a float32: a weight is
the whole number over q."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.errors import ModelError
from tmnmt.models.folder import read_regular, reason_of

MOST_BYTES = 1 << 33  # of weights
MOST_ITEMS = 1 << 14
MOST_NAME = 1 << 10
MOST_DIMENSIONS = 4
CHUNK = 1 << 20
VERSION = 1
FLOAT32, INT8, INTGEMM8 = 0x0404, 0x0101, 0x4101
TYPES = {FLOAT32: "float32", INT8: "int8", INTGEMM8: "intgemm8"}
SETTINGS = "special:model.yml"
MULTIPLIER = "_QuantMultA"  # how names end of multipliers of activations, which fp32 does not need
SHORTLIST_MAGIC = 0xF11A48D5013417F5
SHORTLIST_HEADER = 48

Array = NDArray[Any]


@dataclass(frozen=True)
class Container:
    """Tensors by name, as Marian knows them, in fp32; `settings` is the text of model.yml.
    `multipliers`: q of those that are whole numbers of int8 over q."""

    tensors: dict[str, Array]
    multipliers: dict[str, float]
    settings: str


class Item(NamedTuple):
    """One tensor of a container: `start` is where its data begin in the file."""

    name: str
    type: int
    shape: tuple[int, ...]
    start: int
    length: int


def content_of(path: Path, limit: int = MOST_BYTES) -> bytes:
    """The content of a file, unpacked where its name ends in .gz.

    path: the file.
    limit: how many bytes it may have.

    Raises ModelError where it cannot be read, or is larger."""
    content = read_regular(path, limit, "no file of a Marian model is")
    if path.suffix != ".gz":
        return content
    try:
        with gzip.open(path) as file:
            unpacked = bytearray()
            while chunk := file.read(CHUNK):
                unpacked += chunk
                if len(unpacked) > limit:
                    raise ModelError(f"{path}: unpacks to more than {limit:,} bytes")
    except (OSError, EOFError, zlib.error) as error:
        raise ModelError(
            f"{path}: no whole gzip file: {reason_of(error)}; download it again"
        ) from error
    return bytes(unpacked)


def read_container(path: Path) -> Container:
    """The tensors of a container.

    path: the file.

    Raises ModelError for what is no container, damaged, or of a type that is not read."""
    content = content_of(path)
    try:
        items = _items(content)
        tensors, multipliers, settings = {}, {}, ""
        for item in items:
            if item.name == SETTINGS:
                settings = content[item.start : item.start + item.length].rstrip(b"\0").decode()
            elif not item.name.endswith(MULTIPLIER):
                tensors[item.name], multiplier = _tensor(content, item)
                if multiplier:
                    multipliers[item.name] = multiplier
    except (ValueError, struct.error) as error:
        raise ModelError(
            f"{path}: no whole binary model of Marian: {reason_of(error)}; download it again"
        ) from error
    return Container(tensors, multipliers, settings)


def _items(content: bytes) -> list[Item]:
    """Raises ValueError where lengths and file do not fit each other."""
    version, count = struct.unpack_from("<QQ", content)
    if version != VERSION:
        raise ValueError(f"it begins with {version}, where its version, {VERSION}, is to stand")
    if not 1 <= count <= MOST_ITEMS or 16 + 32 * count > len(content):
        raise ValueError(f"{count:,} tensors are more than the file holds")
    heads = [struct.unpack_from("<QQQQ", content, 16 + 32 * n) for n in range(count)]
    if any(
        not 1 <= name <= MOST_NAME or dimensions > MOST_DIMENSIONS
        for name, _, dimensions, _ in heads
    ):
        raise ValueError("a name or a shape is too long")
    place = 16 + 32 * count
    shapes_at = place + sum(name for name, *_ in heads)
    padding_at = shapes_at + 4 * sum(dimensions for _, _, dimensions, _ in heads)
    if padding_at + 8 > len(content):
        raise ValueError("it ends within its names or shapes")
    (padding,) = struct.unpack_from("<Q", content, padding_at)
    data_at = padding_at + 8 + padding
    if data_at + sum(length for *_, length in heads) != len(content):
        raise ValueError("the lengths of its tensors do not add up to the file's")
    items = []
    for name_length, kind, dimensions, length in heads:
        name = content[place : place + name_length]
        if name[-1:] != b"\0" or b"\0" in name[:-1]:
            raise ValueError("a name does not end where it should")
        shape = struct.unpack_from(f"<{dimensions}i", content, shapes_at)
        items.append(Item(name[:-1].decode(), kind, shape, data_at, length))
        place, shapes_at, data_at = (
            place + name_length,
            shapes_at + 4 * dimensions,
            data_at + length,
        )
    return items


def _tensor(content: bytes, item: Item) -> tuple[Array, float]:
    """In fp32, and its multiplier; 0 where it has none."""
    if item.type not in TYPES:
        allowed = ", ".join(TYPES.values())
        raise ValueError(f"{item.name} is of type {item.type:#06x}; wanted: {allowed}")
    if any(size < 1 for size in item.shape):
        raise ValueError(f"{item.name} is of size {list(item.shape)}")
    size = math.prod(item.shape)
    expected_bytes = size * 4 if item.type == FLOAT32 else size + 4 * (item.type == INTGEMM8)
    if expected_bytes > item.length:
        raise ValueError(f"{item.name} has {item.length:,} bytes, wanted: {expected_bytes:,}")
    if item.type == FLOAT32:
        numbers = np.frombuffer(content, "<f4", size, item.start).reshape(item.shape)
        return numbers.astype(np.float32), 0.0
    whole = np.frombuffer(content, np.int8, size, item.start)
    if item.type == INT8:
        return whole.reshape(item.shape).astype(np.float32), 0.0
    (multiplier,) = struct.unpack_from("<f", content, item.start + size)
    if not (math.isfinite(multiplier) and multiplier > 0):
        raise ValueError(f"{item.name} has the multiplier {multiplier}")
    if len(item.shape) != 2:
        raise ValueError(f"{item.name} is of size {list(item.shape)}; wanted: a matrix")
    rows, columns = item.shape
    matrix = whole.reshape(rows, columns) if "Wemb" in item.name else whole.reshape(columns, rows).T
    return matrix.astype(np.float32) * np.float32(1.0 / multiplier), float(multiplier)


def read_shortlist(path: Path) -> tuple[int, list[Sequence[int]]]:
    """How many of the first words are in every list, and for every source word the target words
    that it may become.

    path: the file.

    Raises ModelError for what is no shortlist of Marian."""
    content = content_of(path)
    try:
        magic, checksum, first, best, offsets, total = struct.unpack_from("<6Q", content)
        if magic != SHORTLIST_MAGIC:
            raise ValueError("it does not begin as one")
        if len(content) != SHORTLIST_HEADER + 8 * offsets + 4 * total or not offsets:
            raise ValueError("its lengths do not add up to the file's")
        if checksum != _checksum(content):
            raise ValueError("its checksum is another")
        starts = np.frombuffer(content, "<u8", offsets, SHORTLIST_HEADER)
        words = np.frombuffer(content, "<u4", total, SHORTLIST_HEADER + 8 * offsets)
        lengths = np.diff(starts.astype(np.int64))
        if starts[0] != 0 or starts[-1] != total or lengths.min(initial=0) < 0:
            raise ValueError("its lists do not follow each other")
        if lengths.max(initial=0) > best:
            raise ValueError("a list is longer than it says")
    except (ValueError, struct.error) as error:
        raise ModelError(
            f"{path}: no shortlist of Marian: {reason_of(error)}; download it again"
        ) from error
    return first, [part.tolist() for part in np.split(words, starts[1:-1].astype(np.int64))]


def _checksum(content: bytes) -> int:
    """Over all whole words of 8 bytes behind the checksum itself, as std::hash combines them."""
    seed, modulus = 0, 1 << 64
    for (word,) in struct.iter_unpack("<Q", content[16 : 16 + (len(content) - 16) // 8 * 8]):
        seed ^= (word + 0x9E3779B9 + (seed << 6) + (seed >> 2)) % modulus
        seed %= modulus
    return seed
