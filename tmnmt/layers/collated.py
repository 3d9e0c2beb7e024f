"""What the sentences of a batch read, laid side by side and padded, before a layer makes it ready.

N: sentences   P: positions of all pairs of a sentence   C: positions of a document
l, d: as in models/base
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tmnmt.keys.pair_keys import PairKeys
from tmnmt.layers.packed import Stretch
from tmnmt.vocab import BOS

Array = NDArray[Any]


@dataclass(frozen=True)
class Pairs:
    """The retrieved pairs of every sentence, one after the other."""

    contexts: Tensor  # (N, P, l) c'
    hiddens: Tensor  # (N, P, d) z'
    ids: Tensor  # (N, P) int64
    previous_ids: Tensor  # (N, P) int64: the word before it in its pair, <s> before the first
    mask: Tensor  # (N, P) bool
    pair: Tensor  # (N, P) int64: index of the pair in the sentence's list
    position: Tensor  # (N, P) int64: subword position in that pair's target
    # f and e: fuzzy score of that pair with the sentence, in [0, 1]; 1 where it is 1, else 0
    marks: Tensor  # (N, P, 2)
    # (N, P, w + 1) uint8: the codes of positions, where only these are read; contexts, hiddens,
    # before and marks are (N, 0, ...) then
    codes: Tensor | None = field(default_factory=lambda: None)

    @classmethod
    def of_directions(
        cls, keys: Sequence[Sequence[PairKeys]], device: torch.device | str = "cpu"
    ) -> Pairs:
        """Pairs of which directions alone are read. They are laid out when one of the fields is
        first needed, because compiled code reads the keys as they are.

        keys: the keys of every sentence's pairs.
        device: where they are laid out."""
        pairs = object.__new__(cls)
        pairs.__dict__.update(_keys=keys, _device=torch.device(device))
        return pairs

    def __getattr__(self, name: str) -> Any:
        if "_keys" not in self.__dict__ or name not in _FIELDS:
            raise AttributeError(name)
        self.__dict__.update(vars(_directions_side_by_side(self._keys, self._device)))
        return self.__dict__[name]

    @property
    def as_keys(self) -> Sequence[Sequence[PairKeys]] | None:
        """The keys of every sentence's pairs, where only their directions are read, on the CPU."""
        on_cpu = "_keys" in self.__dict__ and self._device.type == "cpu"
        return self._keys if on_cpu else None

    @property
    def words(self) -> list[Tensor]:
        """All words of them, of any shape."""
        if self.as_keys is None:
            return [self.ids]
        return [keys.ids for sentence in self.as_keys for keys in sentence]


_FIELDS = {part.name for part in fields(Pairs)}


@dataclass(frozen=True)
class Recent:
    """The positions of every document's confirmed segments, oldest first."""

    codes: Tensor  # (N, C, w + 1) uint8: the codes of the positions (`keys/pair.py`)
    ids: Tensor  # (N, C) int64
    mask: Tensor  # (N, C) bool
    stretches: Sequence[Stretch | None] = ()  # the same of every document for compiled code


def collate(
    pairs: list[list[PairKeys]],
    scores: Sequence[Sequence[float]],
    device: torch.device | str = "cpu",
) -> Pairs | None:
    """The retrieved pairs of N sentences side by side, padded. None where no sentence has any. Keys
    in half precision become fp32.

    pairs: the keys of every sentence's pairs.
    scores: the fuzzy score of every pair with its sentence, from 0 to 1.
    device: where the result lies."""
    if not any(pairs):
        return None
    every = [keys for sentence in pairs for keys in sentence]
    if any(keys.codes is not None for keys in every):
        return Pairs.of_directions(pairs, device)
    layout = _Layout.of(pairs, every)
    side = partial(layout.side_by_side, every, device=device)
    ids, position = side("ids"), layout.padded(layout.position, device)
    pair, mask = layout.padded(layout.by_position(layout.numbers), device), layout.mask(device)
    values = [score for row in scores for score in row]
    fuzzy = layout.padded(layout.by_position(values, np.float32), device)
    return Pairs(
        contexts=side("contexts").float(),
        hiddens=side("hiddens").float(),
        ids=ids,
        previous_ids=torch.where(position == 0, BOS, ids.roll(1, 1)),
        mask=mask,
        pair=pair,
        position=position,
        marks=torch.stack([fuzzy, (fuzzy >= 1).to(fuzzy.dtype)], -1),
    )


def _directions_side_by_side(
    pairs: Sequence[Sequence[PairKeys]], device: torch.device | str
) -> Pairs:
    keys = [keys for sentence in pairs for keys in sentence]
    layout = _Layout.of(pairs, keys)
    side = partial(layout.side_by_side, keys, device=device)
    ids = side("ids")
    contexts, hiddens, marks = (
        torch.empty(len(pairs), 0, size, device=device)
        for size in (keys[0].contexts.shape[1], keys[0].hiddens.shape[1], 2)
    )
    return Pairs(
        contexts,
        hiddens,
        ids,
        ids[:, :0],
        layout.mask(device),
        layout.padded(layout.by_position(layout.numbers), device),
        layout.padded(layout.position, device),
        marks,
        side("codes"),
    )


@dataclass(frozen=True)
class _Layout:
    """Where the positions of all pairs stand once the sentences are padded; M: positions in all."""

    sentences: int  # N
    lengths: Array  # of every pair
    numbers: Array  # of every pair in its sentence
    totals: Array  # (N,)

    @classmethod
    def of(cls, pairs: Sequence[Sequence[PairKeys]], every: Sequence[PairKeys]) -> _Layout:
        lengths = np.array([len(keys.ids) for keys in every], np.int64)
        numbers = np.array([m for sentence in pairs for m in range(len(sentence))], np.int64)
        sentence_of = np.repeat(np.arange(len(pairs)), [len(sentence) for sentence in pairs])
        totals = np.bincount(sentence_of, lengths, len(pairs)).astype(np.int64)
        return cls(len(pairs), lengths, numbers, totals)

    def by_position(self, values: Any, dtype: Any = np.int64) -> Array:
        """What every pair has, at each of its positions (M,)."""
        return np.repeat(np.asarray(values, dtype), self.lengths)

    @property
    def position(self) -> Array:
        """Of every position its number in its pair (M,)."""
        return np.arange(self.lengths.sum()) - self.by_position(
            self.lengths.cumsum() - self.lengths
        )

    @cached_property
    def longest(self) -> int:
        return int(self.totals.max())

    @cached_property
    def places(self) -> Tensor:
        """Where each of the M stands among the N P."""
        added = np.arange(self.sentences) * self.longest - (self.totals.cumsum() - self.totals)
        return torch.from_numpy(np.arange(self.totals.sum()) + np.repeat(added, self.totals))

    def mask(self, device: torch.device | str) -> Tensor:
        """(N, P) bool."""
        return torch.from_numpy(np.arange(self.longest) < self.totals[:, None]).to(device)

    def padded(self, flat: Array | Tensor, device: torch.device | str) -> Tensor:
        """(M, ...) -> (N, P, ...), padded by zeros."""
        if not isinstance(flat, Tensor):
            flat = torch.from_numpy(flat)
        flat = flat.to(device)
        if self.sentences > 1:
            wide = flat.new_zeros(self.sentences * self.longest, *flat.shape[1:])
            flat = wide.index_copy_(0, self.places.to(device), flat)
        return flat.view(self.sentences, self.longest, *flat.shape[1:])

    def side_by_side(
        self, every: Sequence[PairKeys], name: str, device: torch.device | str
    ) -> Tensor:
        """One field of all pairs, a sentence's pairs one after the other: (N, P, ...)."""
        return self.padded(torch.cat([getattr(keys, name) for keys in every]), device)
