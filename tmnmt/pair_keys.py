"""The keys of retrieved pairs, by teacher forcing at need, batched, and kept as long as there is room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import torch

from tmnmt.memories.base import PairKeys
from tmnmt.models.base import Backbone
from tmnmt.vocab import EOS, PAD, Vocabulary

Pair = tuple[str, str]  # source, target
POSITIONS_KEPT = 1 << 15  # about 130 MB at l = d = 512 in fp32
BATCH_POSITIONS = 4096  # padded target positions forced at once


class PairKeyStore:
    """`keys_of` computes what it does not have; the least recently used pairs are forgotten first.

    A pair longer than `max_subwords` on a side is cut there: its later words cannot be read."""

    def __init__(
        self, backbone: Backbone, vocab: Vocabulary, max_subwords: int, positions_kept: int = POSITIONS_KEPT,
        device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        self.backbone, self.vocab, self.device = backbone, vocab, device
        self.max_subwords, self.positions_kept = max_subwords, positions_kept
        self._kept: OrderedDict[Pair, PairKeys] = OrderedDict()
        self._positions = 0

    def keys_of(self, sentences: Iterable[Iterable[Pair]]) -> list[list[PairKeys]]:
        """The keys of every sentence's pairs, in their order."""
        wanted = [list(pairs) for pairs in sentences]
        found: dict[Pair, PairKeys] = {}
        for pair in {pair: None for pairs in wanted for pair in pairs}:
            if pair in self._kept:
                self._kept.move_to_end(pair)
                found[pair] = self._kept[pair]
        missing = list({pair: None for pairs in wanted for pair in pairs if pair not in found})
        for pair, keys in zip(missing, self._compute(missing), strict=True):
            found[pair] = self._kept[pair] = keys
            self._positions += len(keys.ids)
        self._forget()
        return [[found[pair] for pair in pairs] for pairs in wanted]

    def __len__(self) -> int:
        """How many pairs are kept."""
        return len(self._kept)

    def _forget(self) -> None:
        while self._positions > self.positions_kept:
            _, keys = self._kept.popitem(last=False)
            self._positions -= len(keys.ids)

    def _compute(self, pairs: list[Pair]) -> list[PairKeys]:
        coded = [tuple([*self.vocab.encode(t)[: self.max_subwords], EOS] for t in pair) for pair in pairs]
        order = sorted(range(len(coded)), key=lambda i: len(coded[i][1]))
        keys: dict[int, PairKeys] = {}
        while order:
            rows = max(1, BATCH_POSITIONS // len(coded[order[-1]][1]))
            batch, order = order[-rows:], order[:-rows]
            keys |= zip(batch, force(self.backbone, [coded[i] for i in batch], self.device), strict=True)
        return [keys[i] for i in range(len(coded))]


def force(backbone: Backbone, pairs: list[tuple[list[int], ...]], device: torch.device | str) -> list[PairKeys]:
    """c', z' and y' of encoded pairs (source ids, target ids), each with </s>, in one batch of teacher forcing."""
    src_len = torch.tensor([len(src) for src, _ in pairs], device=device)
    src, tgt = (padded([pair[side] for pair in pairs], device) for side in (0, 1))
    with torch.inference_mode():
        contexts, hiddens = backbone.forced(backbone.encode(src, src_len), tgt)
    # clones: a view would keep the whole batch alive for as long as one of its pairs is kept
    return [
        PairKeys(c[: len(ids)].clone(), h[: len(ids)].clone(), torch.tensor(ids, device=device))
        for c, h, (_, ids) in zip(contexts, hiddens, pairs, strict=True)
    ]


def padded(rows: list[list[int]], device: torch.device | str) -> torch.Tensor:
    """(B, longest) int64, filled up with PAD."""
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows], device=device)
