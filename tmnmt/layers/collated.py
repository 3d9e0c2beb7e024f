"""What the sentences of a batch read, laid side by side and padded, before a layer makes it ready.

N: sentences   P: positions of all pairs of a sentence   C: cache slots   l, d: as in models/base
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tmnmt.keys.pair_keys import PairKeys
from tmnmt.vocab import BOS


@dataclass(frozen=True)
class Pairs:
    """The retrieved pairs of every sentence, one after the other."""

    contexts: Tensor  # (N, P, l) c'
    hiddens: Tensor  # (N, P, d) z'
    ids: Tensor  # (N, P) int64
    before: Tensor  # (N, P) int64: the word before it in its pair, <s> before the first
    mask: Tensor  # (N, P) bool
    pair: Tensor  # (N, P) int64: index of the pair in the sentence's list
    position: Tensor  # (N, P) int64: subword position in that pair's target
    # f and e: fuzzy score of that pair with the sentence, in [0, 1]; 1 where it is 1, else 0
    marks: Tensor  # (N, P, 2)
    # (N, P, w) uint8: the directions of z', where only these are read; contexts and hiddens are
    # (N, 0, ...) then
    codes: Tensor | None = None


@dataclass(frozen=True)
class Slots:
    """A snapshot of every sentence's session cache; does not change while it is decoded. Keys and
    values are contexts and hidden states, or what the cache has learned to keep of them."""

    keys: Tensor  # (N, C, l); or, where the cache has K, (N, C, rank)
    values: Tensor  # (N, C, d); likewise (N, C, 0)
    ids: Tensor  # (N, C) int64: the word of every slot
    # (N, C) int64: the word before it where it was written last, <s> before the first
    before: Tensor
    mask: Tensor  # (N, C) bool


@dataclass(frozen=True)
class Recent:
    """The positions of every document's confirmed segments, oldest first."""

    codes: Tensor  # (N, C, w) uint8: the directions of z' (`keys/nibbles.py`)
    ids: Tensor  # (N, C) int64
    mask: Tensor  # (N, C) bool


def collate(
    pairs: list[list[PairKeys]],
    scores: Sequence[Sequence[float]],
    device: torch.device | str = "cpu",
) -> Pairs | None:
    """The retrieved pairs of N sentences side by side, padded; None if no sentence has any.

    scores: the fuzzy score of every pair with its sentence. Keys kept in half precision become
    fp32."""
    if not any(pairs):
        return None
    lengths = torch.tensor(
        [sum(len(keys.ids) for keys in sentence) for sentence in pairs], device=device
    )
    ids = _positions(pairs, "ids", device)  # (N, P)
    position = _pad([[t for keys in s for t in range(len(keys.ids))] for s in pairs], device)
    fuzzy = _pad(
        [_by_position(s, own) for s, own in zip(pairs, scores, strict=True)], device, torch.float32
    )
    return Pairs(
        contexts=_positions(pairs, "contexts", device).float(),
        hiddens=_positions(pairs, "hiddens", device).float(),
        ids=ids,
        before=_before(ids, position),
        mask=torch.arange(ids.shape[1], device=device) < lengths[:, None],
        pair=_pad([[m for m, keys in enumerate(s) for _ in keys.ids] for s in pairs], device),
        position=position,
        marks=torch.stack([fuzzy, (fuzzy >= 1).to(fuzzy.dtype)], -1),
        codes=_positions(pairs, "codes", device) if _in_codes(pairs) else None,
    )


def _in_codes(pairs: list[list[PairKeys]]) -> bool:
    return any(keys.codes is not None for sentence in pairs for keys in sentence)


def _positions(pairs: list[list[PairKeys]], name: str, device: torch.device | str) -> Tensor:
    """One field of all pairs, a sentence's pairs one after the other: (N, P, ...)."""
    nothing = next(getattr(keys, name) for sentence in pairs for keys in sentence)[:0]
    joined = [
        torch.cat([nothing, *(getattr(keys, name) for keys in sentence)]) for sentence in pairs
    ]
    return pad_sequence(joined, batch_first=True).to(device)


def _before(ids: Tensor, position: Tensor) -> Tensor:
    """The word before each position in its pair (N, P), <s> before the first."""
    return torch.where(position == 0, BOS, ids.roll(1, 1))


def _by_position(pairs: list[PairKeys], scores: Sequence[float]) -> list[float]:
    return [score for keys, score in zip(pairs, scores, strict=True) for _ in keys.ids]


def _pad(rows: list[Any], device: torch.device | str, dtype: torch.dtype = torch.int64) -> Tensor:
    return pad_sequence([torch.tensor(row, dtype=dtype) for row in rows], batch_first=True).to(
        device
    )
