"""The keys of retrieved pairs: read where an index has them, else by teacher forcing, batched, and
kept in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tmnmt.keys.files import KeyFiles
from tmnmt.models.base import Backbone
from tmnmt.vocab import EOS, PAD, Vocabulary

Pair = tuple[str, str]  # source, target
Coded = tuple[list[int], list[int]]  # ids of both, each with </s>
POSITIONS_KEPT = 1 << 15  # about 130 MB at l = d = 512 in fp32
BATCH_POSITIONS = 4096  # padded target positions forced at once


@dataclass(frozen=True)
class PairKeys:
    """The keys of one TM pair, from `forced(x', y')`: y' includes </s>."""

    contexts: Tensor  # (T, l) c'
    hiddens: Tensor  # (T, d) z'
    ids: Tensor  # (T,) int64 y'


class PairKeyStore:
    """`keys_of` takes from `precomputed` what was computed by `tmnmt keys`, and computes what it
    does not have; the least recently used pairs are forgotten first.

    A pair longer than `max_subwords` on a side is cut there: its later words cannot be read. Any
    thread may ask; one is answered after another."""

    def __init__(
        self,
        backbone: Backbone,
        vocab: Vocabulary,
        max_subwords: int,
        positions_kept: int = POSITIONS_KEPT,
        device: torch.device | str = "cpu",
        precomputed: Sequence[KeyFiles] = (),
        gradients: bool = False,
    ) -> None:
        self.backbone, self.vocab, self.device, self.gradients = backbone, vocab, device, gradients
        self.max_subwords, self.positions_kept = max_subwords, positions_kept
        self.precomputed = list(precomputed)
        self._kept: OrderedDict[Pair, PairKeys] = OrderedDict()
        self._positions = 0
        self._lock = threading.Lock()

    def keys_of(self, sentences: Iterable[Iterable[Pair]]) -> list[list[PairKeys]]:
        """The keys of every sentence's pairs, in their order."""
        pairs_of = [list(pairs) for pairs in sentences]
        with self._lock:
            return self._keys_of(pairs_of)

    def _keys_of(self, pairs_of: list[list[Pair]]) -> list[list[PairKeys]]:
        keys_of: dict[Pair, PairKeys] = {}
        for pair in {pair: None for pairs in pairs_of for pair in pairs}:
            if pair in self._kept:
                self._kept.move_to_end(pair)
                keys_of[pair] = self._kept[pair]
        missing = list({pair: None for pairs in pairs_of for pair in pairs if pair not in keys_of})
        new = {pair: keys for pair in missing if (keys := self._read(pair)) is not None}
        missing = [pair for pair in missing if pair not in new]
        coded = [encode_pair(pair, self.vocab, self.max_subwords) for pair in missing]
        new |= zip(
            missing, force_all(self.backbone, coded, self.device, self.gradients), strict=True
        )
        for pair, keys in new.items():
            keys_of[pair] = self._kept[pair] = keys
            self._positions += len(keys.ids)
        self._forget()
        return [[keys_of[pair] for pair in pairs] for pairs in pairs_of]

    def __len__(self) -> int:
        """How many pairs are kept."""
        return len(self._kept)

    def _forget(self) -> None:
        while self._positions > self.positions_kept:
            _, keys = self._kept.popitem(last=False)
            self._positions -= len(keys.ids)

    def _read(self, pair: Pair) -> PairKeys | None:
        """The pair's keys as an index has them on disk, in fp32."""
        for files in self.precomputed:
            keys = files.find(*pair)
            if keys is not None:
                files.check_words(keys.ids, len(self.vocab))
                contexts, hiddens, ids = (
                    torch.from_numpy(array).to(self.device)
                    for array in (*files.header.decoded(keys), keys.ids)
                )
                return PairKeys(contexts, hiddens, ids.long())
        return None


def encode_pair(pair: Pair, vocab: Vocabulary, max_subwords: int) -> Coded:
    """The ids of source and target, each cut at `max_subwords`, with </s>."""
    src = [*vocab.encode_source(pair[0])[:max_subwords], EOS]
    tgt = [*vocab.encode(pair[1])[:max_subwords], EOS]
    return src, tgt


def force_all(
    backbone: Backbone, pairs: Sequence[Coded], device: torch.device | str, gradients: bool = False
) -> list[PairKeys]:
    """The keys of encoded pairs, in their order, forced in batches of like length."""
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][1]))
    keys: dict[int, PairKeys] = {}
    while order:
        rows = max(1, BATCH_POSITIONS // len(pairs[order[-1]][1]))
        batch, order = order[-rows:], order[:-rows]
        keys |= zip(
            batch, force(backbone, [pairs[i] for i in batch], device, gradients), strict=True
        )
    return [keys[i] for i in range(len(pairs))]


def force(
    backbone: Backbone, pairs: Sequence[Coded], device: torch.device | str, gradients: bool = False
) -> list[PairKeys]:
    """c', z' and y' of encoded pairs (source ids, target ids), each with </s>, in one batch of
    teacher forcing; with `gradients` the backbone's graph is recorded, unless torch is told
    otherwise."""
    src_len = torch.tensor([len(src) for src, _ in pairs], device=device)
    src, tgt = (padded([pair[side] for pair in pairs], device) for side in (0, 1))
    with torch.inference_mode(not gradients):
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
