"""What keys on disk belong to, and what is kept of every target position. Each layout has a name:

    pairs         context c' and state z' in a few bits a number (`quantised.py`), and the subword
                  y'
    directions    the direction of z' alone in four bits a number (`nibbles.py`), how likely the
                  model found y', and the subword y'; nearest positions read no more than that

l: numbers of a context    d: numbers of a state    T: target positions of a pair"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from tmnmt.keys import nibbles
from tmnmt.keys.pair import PairKeys, directions_of
from tmnmt.keys.quantised import decode, encode, row_bytes

POSITION_BYTES = 400  # of a target position with context and state, if LEAST_BITS are left
LEAST_BITS = 3  # of a number; chosen on dev: BLEU is that of keys in full
PAIRS, DIRECTIONS = "pairs", "directions"
FORMATS = {PAIRS: 3, DIRECTIONS: 4}
WORD_BITS = 24  # of the number of a subword, where something else stands in the same four bytes

Array = NDArray[Any]
# the keys of one pair as they lie on disk, column by column: uint8 (T, ...), at last y' (T,) int32
Keys = tuple[Array, ...]


class Column(NamedTuple):
    """A file of rows.

    name: its name.
    dtype: the type of its numbers.
    width: how many numbers a row has."""

    name: str
    dtype: str
    width: int


@dataclass(frozen=True)
class Header:
    """What keys belong to: those of another model are an error, never a wrong answer.

    model: the hash of the model.
    context_size: how many numbers a context has, l.
    hidden_size: how many numbers a hidden state has, d.
    max_subwords: where a side of a longer pair was cut.
    format: the number of the format, which the layout says.
    layout: the name of the layout."""

    model: str
    context_size: int
    hidden_size: int
    max_subwords: int
    format: int = 0
    layout: str = PAIRS

    def __post_init__(self) -> None:
        object.__setattr__(self, "format", FORMATS.get(self.layout, 0))

    @property
    def bits(self) -> int:
        """How many bits a number of contexts and states has: as many as fit `POSITION_BYTES`."""
        fitting = (
            bits for bits in range(8, LEAST_BITS, -1) if self._bytes_at(bits) <= POSITION_BYTES
        )
        return next(fitting, LEAST_BITS)

    @property
    def position_bytes(self) -> int:
        """How many bytes one target position takes on disk."""
        return sum(column.width for column in self.vector_columns) + 4

    def _bytes_at(self, bits: int) -> int:
        return row_bytes(self.context_size, bits) + row_bytes(self.hidden_size, bits) + 4

    @property
    def vector_columns(self) -> tuple[Column, ...]:
        """The columns before that of the subwords."""
        return LAYOUTS[self.layout].columns(self)

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, the last of which is that of the subwords."""
        return (*self.vector_columns, Column("y.i32", "<i4", 1))

    def encoded(self, keys: PairKeys) -> Keys:
        """The keys of a pair for the disk.

        keys: the keys.

        Raises DataError for numbers that cannot be kept."""
        return LAYOUTS[self.layout].encoded(self, keys)

    def decoded(self, keys: Keys) -> PairKeys:
        """The keys of a pair from the disk, on the CPU.

        keys: the rows of all columns."""
        return LAYOUTS[self.layout].decoded(self, keys)

    def record(self) -> dict[str, Any]:
        """What is written as JSON. The layout `pairs`, which was the only one once, is not
        named."""
        record = asdict(self)
        if self.layout == PAIRS:
            del record["layout"]
        return record


class Layout(ABC):
    """What is kept of a position before its subword."""

    @abstractmethod
    def columns(self, header: Header) -> tuple[Column, ...]:
        """The columns of the layout but the last, which has the subwords.

        header: what the keys belong to."""

    @abstractmethod
    def encoded(self, header: Header, keys: PairKeys) -> Keys:
        """The rows of all columns.

        header: what the keys belong to.
        keys: the keys of a pair.

        Raises DataError for numbers that cannot be kept."""

    @abstractmethod
    def decoded(self, header: Header, keys: Keys) -> PairKeys:
        """The keys of a pair.

        header: what the keys belong to.
        keys: the rows of all columns."""


class Pairs(Layout):
    """Context and state."""

    def columns(self, header: Header) -> tuple[Column, ...]:
        return (
            Column("c.u8", "u1", row_bytes(header.context_size, header.bits)),
            Column("z.u8", "u1", row_bytes(header.hidden_size, header.bits)),
        )

    def encoded(self, header: Header, keys: PairKeys) -> Keys:
        vectors = (part.cpu().numpy() for part in (keys.contexts, keys.hiddens))
        ids = keys.ids.cpu().numpy().astype("<i4", copy=False)
        return (*(encode(part, header.bits) for part in vectors), ids)

    def decoded(self, header: Header, keys: Keys) -> PairKeys:
        sizes = header.context_size, header.hidden_size
        contexts, hiddens = (
            torch.from_numpy(decode(rows, size, header.bits))
            for rows, size in zip(keys[:2], sizes, strict=True)
        )
        return PairKeys(contexts, hiddens, torch.from_numpy(keys[-1].astype("int64")))


class Directions(Layout):
    """The direction of the state alone, and how likely the model found the subword, which stands
    in the last byte of this."""

    def columns(self, header: Header) -> tuple[Column, ...]:
        return (Column("s.u4", "u1", nibbles.width(header.hidden_size)),)

    def encoded(self, header: Header, keys: PairKeys) -> Keys:
        if keys.codes is None:
            raise ValueError("keys without codes")
        codes, ids = keys.codes.cpu().numpy(), keys.ids.cpu().numpy()
        certainties = codes[:, -1].astype("<u4") << WORD_BITS
        return np.ascontiguousarray(codes[:, :-1]), (certainties | ids.astype("<u4")).view("<i4")

    def decoded(self, header: Header, keys: Keys) -> PairKeys:
        words = keys[-1].astype("<i4", copy=False).view("<u4")
        ids = (words & ((1 << WORD_BITS) - 1)).astype("int64")
        certainties = (words >> WORD_BITS).astype("u1")
        codes = torch.from_numpy(np.hstack([keys[0], certainties[:, None]]))
        return directions_of(header.context_size, header.hidden_size, torch.from_numpy(ids), codes)


LAYOUTS: Mapping[str, Layout] = {PAIRS: Pairs(), DIRECTIONS: Directions()}
