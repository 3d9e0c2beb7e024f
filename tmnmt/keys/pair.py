"""The keys of one pair."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tmnmt.keys import nibbles

CERTAIN = 255  # of a word that the model is certain of


@dataclass(frozen=True)
class PairKeys:
    """The keys of one TM pair, from `forced(x', y')`: y' includes </s>."""

    contexts: Tensor  # (T, l) c'
    hiddens: Tensor  # (T, d) z'
    ids: Tensor  # (T,) int64 y'
    # (T, w + 1) uint8, where no more is read: the direction of z' (`nibbles.py`), and how likely
    # the model found y' there, from 0 to CERTAIN. Contexts and hidden states are (0, l) and (0, d)
    codes: Tensor | None = None

    def cut(self, length: int) -> PairKeys:
        """The first positions.

        length: how many positions stay."""
        codes = self.codes[:length] if self.codes is not None else None
        return PairKeys(self.contexts[:length], self.hiddens[:length], self.ids[:length], codes)

    def as_codes(self, probabilities: Tensor) -> PairKeys:
        """The same keys with codes alone.

        probabilities: (T,), those that the model gives the words."""
        codes = codes_of(self.hiddens, probabilities)
        return PairKeys(self.contexts[:0], self.hiddens[:0], self.ids, codes)


def codes_of(hiddens: Tensor, probabilities: Tensor) -> Tensor:
    """The codes (T, w + 1) of positions.

    hiddens: (T, d), the hidden states.
    probabilities: (T,), those that the model gives the words; 0 where they are not known."""
    certainties = (probabilities.float() * CERTAIN).round().to(torch.uint8)
    return torch.cat([nibbles.encode(hiddens), certainties[:, None]], 1)


def directions_of(context_size: int, hidden_size: int, ids: Tensor, codes: Tensor) -> PairKeys:
    """The keys of a pair as codes alone.

    context_size: how many numbers a context has, l.
    hidden_size: how many numbers a hidden state has, d.
    ids: (T,) int64, the subwords.
    codes: (T, w + 1) uint8, the codes."""
    no_contexts = torch.empty(0, context_size, device=ids.device)
    no_states = torch.empty(0, hidden_size, device=ids.device)
    return PairKeys(no_contexts, no_states, ids, codes.to(ids.device))
