"""The keys of one pair."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tmnmt.keys import nibbles


@dataclass(frozen=True)
class PairKeys:
    """The keys of one TM pair, from `forced(x', y')`: y' includes </s>."""

    contexts: Tensor  # (T, l) c'
    hiddens: Tensor  # (T, d) z'
    ids: Tensor  # (T,) int64 y'
    # (T, w) the directions of z' alone (`nibbles.py`), where no more is read: contexts and hidden
    # states are (0, l) and (0, d) then
    codes: Tensor | None = None

    def cut(self, length: int) -> PairKeys:
        """The first positions.

        length: how many positions stay."""
        codes = self.codes[:length] if self.codes is not None else None
        return PairKeys(self.contexts[:length], self.hiddens[:length], self.ids[:length], codes)

    def as_codes(self) -> PairKeys:
        """The same keys with the directions of the states alone."""
        if self.codes is not None:
            return self
        return PairKeys(self.contexts[:0], self.hiddens[:0], self.ids, nibbles.encode(self.hiddens))


def directions_of(context_size: int, hidden_size: int, ids: Tensor, codes: Tensor) -> PairKeys:
    """The keys of a pair as directions alone.

    context_size: how many numbers a context has, l.
    hidden_size: how many numbers a hidden state has, d.
    ids: (T,) int64, the subwords.
    codes: (T, w) uint8, the directions of the hidden states."""
    no_contexts = torch.empty(0, context_size, device=ids.device)
    no_states = torch.empty(0, hidden_size, device=ids.device)
    return PairKeys(no_contexts, no_states, ids, codes.to(ids.device))
