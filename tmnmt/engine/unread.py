"""How likely words are behind others where no source is read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch

from tmnmt.keys.pair_keys import padded
from tmnmt.models.base import Backbone
from tmnmt.vocab import BOS, EOS

Ids = tuple[int, ...]
KEPT = 1 << 16  # answers, at most


class Unread:
    """A decoder that has read an empty source. What it was asked for is kept."""

    def __init__(self, backbone: Backbone) -> None:
        self._backbone = backbone
        self._known = dict[tuple[Ids, Ids], float]()

    def chances(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[float]:
        """log p of the second subwords of every pair behind the first."""
        if len(self._known) > KEPT:
            self._known.clear()
        if new := [one for one in dict.fromkeys(pairs) if one not in self._known]:
            self._known |= zip(new, self._read(new), strict=True)
        return [self._known[one] for one in pairs]

    @cached_property
    def _nothing(self) -> Any:
        device = next(self._backbone.parameters()).device
        empty = torch.tensor([[EOS]], device=device), torch.tensor([1], device=device)
        return self._backbone.encode(*empty)

    def _read(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[float]:
        backbone = self._backbone
        device = next(backbone.parameters()).device
        tgt = padded([[*first, *second] for first, second in pairs], device)
        rows = torch.zeros(len(pairs), dtype=torch.long, device=device)
        contexts, hiddens = backbone.forced(self._nothing.rows(rows), tgt)
        prev = torch.cat([torch.full_like(tgt[:, :1], BOS), tgt[:, :-1]], 1)
        sizes = [(len(first), len(second)) for first, second in pairs]
        row = [at for at, (_, size) in enumerate(sizes) for _ in range(size)]
        of = [at for first, size in sizes for at in range(first, first + size)]
        logits = backbone.readout(prev[row, of], hiddens[row, of], contexts[row, of]).float()
        chances = logits.log_softmax(-1).gather(1, tgt[row, of][:, None])[:, 0]
        return [float(one.sum()) for one in torch.split(chances, [size for _, size in sizes])]
