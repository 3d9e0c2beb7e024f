"""Two models one after another, for a pair of languages that has none of its own: the first
translates into a third language, the pivot, and the second reads that.

To whoever runs it this is one backbone. `encode` has the first model write the pivot; all else is
the second's. So contexts, hidden states, and whatever memories match with, are the second's, and a
memory of the pair of languages is read: the source of a pair goes through the first model as any
source does. What looks at the source looks at the first model's:

    alpha = alpha_2 M alpha_1

alpha_2, alpha_1: the attention of the second model along its target, and of the first along the
pivot. M: how the pivot's subwords in the second's vocabulary share those in the first's.

    B: rows    S: source length    P: length of the pivot, in subwords of the one model or the other
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tmnmt.models.base import Backbone, Columns, stacked
from tmnmt.models.decoding import for_decoding
from tmnmt.spans import piece_spans, shares
from tmnmt.vocab import BOS, EOS, PAD, UNK, Vocabulary

CACHE_SIZE = 4096  # sentences whose pivots are kept

Ids = tuple[int, ...]


@dataclass(frozen=True)
class PivotEncoded:
    """An encoded batch: sources, the pivots as the first model wrote them, and those as the second
    has encoded them."""

    src: Tensor  # (B, S), padded
    pivots: Tensor  # (B, P) of the first's target, with </s>, padded
    inner: Any

    @property
    def mask(self) -> Tensor:
        return self.src != PAD

    def rows(self, index: Tensor) -> PivotEncoded:
        """These rows, in their order.

        index: (R,) int64, the numbers of the rows."""
        src, pivots = (part.index_select(0, index) for part in (self.src, self.pivots))
        return PivotEncoded(src, pivots, self.inner.rows(index))

    def cut(self, length: int) -> PivotEncoded:
        """The beginning of every source, in a batch without longer sources: the pivots are as long
        as they have to be.

        length: how many positions stay."""
        longest = int(self.inner.mask.sum(1).max()) if len(self.src) else 0
        return PivotEncoded(self.src[:, :length], self.pivots, self.inner.cut(longest))

    def concat(self, batches: Sequence[PivotEncoded]) -> PivotEncoded:
        """These rows, then those of other batches.

        batches: the other batches."""
        src = stacked([self.src, *(batch.src for batch in batches)])
        pivots = stacked([self.pivots, *(batch.pivots for batch in batches)])
        return PivotEncoded(src, pivots, self.inner.concat([batch.inner for batch in batches]))


class Pivot(Backbone[PivotEncoded, Any]):
    """The first model's source side and the second's target side. The first one decodes greedily:
    small models are distilled for that, and it is asked once a sentence."""

    def __init__(
        self,
        first: Backbone,
        second: Backbone,
        first_vocab: Vocabulary,
        second_vocab: Vocabulary,
        first_dtype: torch.dtype | None = None,
    ) -> None:
        """first: the backbone of the first model.
        second: the backbone of the second model.
        first_vocab: the vocabulary of the first model.
        second_vocab: the vocabulary of the second model.
        first_dtype: the type of the first model's products where it decodes, whatever the second's
        are."""
        super().__init__()
        self.first, self.second, self.first_dtype = first, second, first_dtype
        self._written_in, self._read_in = first_vocab, second_vocab
        self.hidden_size, self.context_size = second.hidden_size, second.context_size
        self.vocab_size, self.word_size = second.vocab_size, second.word_size
        self.shares_encoded, self.reach = second.shares_encoded, second.reach
        self._pivots: OrderedDict[Ids, Ids] = OrderedDict()

    def with_parts(self, first: Backbone, second: Backbone) -> Pivot:
        """The same pivot with other backbones of the same models.

        first: the backbone of the first model.
        second: the backbone of the second model."""
        pivot = Pivot(first, second, self._written_in, self._read_in, self.first_dtype)
        pivot._pivots = self._pivots
        return pivot

    def encode(self, src: Tensor, src_len: Tensor) -> PivotEncoded:
        pivots = self._make_pivots(src, src_len)
        second_ids = [self._read(ids) for ids in pivots]
        length = torch.tensor([len(ids) for ids in second_ids], device=src.device)
        inner = self.second.encode(_padded(second_ids, src.device), length)
        return PivotEncoded(src, _padded([(*ids, EOS) for ids in pivots], src.device), inner)

    def _make_pivots(self, src: Tensor, src_len: Tensor) -> list[Ids]:
        """The pivots, without </s>. An empty source has an empty one."""
        sources = [
            tuple(row[:length]) for row, length in zip(src.tolist(), src_len.tolist(), strict=True)
        ]
        new = [row for row, ids in enumerate(sources) if len(ids) > 1 and ids not in self._pivots]
        pivots = {ids: self._pivots[ids] for ids in sources if ids in self._pivots}
        if new:
            rows = torch.tensor(new, device=src.device)
            lengths = src_len[rows]
            outputs = greedy(self.first, src[rows, : int(lengths.max())], lengths)
            pivots |= zip((sources[row] for row in new), outputs, strict=True)
        for ids, pivot in pivots.items():
            self._pivots[ids] = pivot
            self._pivots.move_to_end(ids)
        while len(self._pivots) > CACHE_SIZE:
            self._pivots.popitem(last=False)
        return [pivots.get(ids, ()) for ids in sources]

    def _read(self, pivot: Ids) -> Ids:
        """A pivot as the second model reads it, with </s>."""
        text = self._written_in.decode(pivot)
        return (*(self._read_in.encode_source(text) if text else ()), EOS)

    def for_beam(self, encoded: PivotEncoded) -> PivotEncoded:
        return replace(encoded, inner=self.second.for_beam(encoded.inner))

    def limited_to(self, words: Tensor) -> Pivot:
        return self.with_parts(self.first, self.second.limited_to(words))

    def log_readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        return self.second.log_readout(prev, hidden, context)

    @property
    def columns(self) -> Columns | None:
        return self.second.columns

    def start(self, encoded: PivotEncoded) -> Any:
        return self.second.start(encoded.inner)

    def reordered(self, state: Any, rows: Tensor) -> Any:
        return self.second.reordered(state, rows)

    def step(self, prev: Tensor, state: Any, encoded: PivotEncoded) -> tuple[Any, Tensor, Tensor]:
        return self.second.step(prev, state, encoded.inner)

    def embed(self, ids: Tensor) -> Tensor:
        return self.second.embed(ids)

    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        return self.second.readout(prev, hidden, context)

    def forced(self, encoded: PivotEncoded, tgt: Tensor) -> tuple[Tensor, Tensor]:
        return self.second.forced(encoded.inner, tgt)

    def alphas(self, encoded: PivotEncoded, tgt: Tensor) -> Tensor:
        of_second = self.second.alphas(encoded.inner, tgt)  # (B, T, P)
        lengths = encoded.mask.sum(1)
        of_first = self.first.alphas(self.first.encode(encoded.src, lengths), encoded.pivots)
        bridge = torch.zeros(len(tgt), of_second.shape[2], of_first.shape[1])
        for row, ids in enumerate(encoded.pivots.tolist()):
            piece_ids = [piece_id for piece_id in ids if piece_id > UNK]
            text = self._written_in.decode(piece_ids)
            links = self._links(piece_ids, text)
            bridge[row, : len(links), : len(piece_ids) + 1] = links
        return of_second @ bridge.to(of_second) @ of_first

    def _links(self, pivot: Sequence[int], text: str) -> Tensor:
        """How a pivot's subwords, and </s>, in the second's vocabulary share those in the first's.
        One that shares none has </s>."""
        pieces = self._read_in.source_pieces(text) if text else []
        links = torch.zeros(len(pieces) + 1, len(pivot) + 1)
        if pieces and pivot:
            pivot_spans = piece_spans(
                [self._written_in.piece(piece_id) for piece_id in pivot], text
            )
            links[:-1, :-1] = torch.from_numpy(shares(piece_spans(pieces, text), pivot_spans).T)
        links[:, -1] = 1 - links[:, :-1].sum(1)
        return links


@torch.no_grad()
def greedy(backbone: Backbone, src: Tensor, src_len: Tensor) -> list[Ids]:
    """The likeliest word at every step: the words before </s>, twice as many as the source has, and
    ten, at most.

    backbone: the model.
    src: (B, S) int64, the sources with </s>.
    src_len: (B,) int64, how many subwords each source has."""
    encoded = backbone.encode(src, src_len)
    state = backbone.start(encoded)
    outputs = torch.full((len(src), 1), BOS, device=src.device)
    ended = torch.zeros(len(src), dtype=torch.bool, device=src.device)
    for _ in range(2 * src.shape[1] + 10):
        state, context, hidden = backbone.step(outputs[:, -1], state, encoded)
        logits = backbone.readout(outputs[:, -1], hidden, context)
        logits[:, [PAD, BOS, UNK]] = -torch.inf
        word = logits.argmax(1).masked_fill(ended, EOS)
        outputs = torch.cat([outputs, word[:, None]], 1)
        ended |= word == EOS
        if bool(ended.all()):
            break
    rows = (ids[1:] for ids in outputs.tolist())
    return [tuple(ids[: ids.index(EOS)] if EOS in ids else ids) for ids in rows]


def _padded(rows: Sequence[Ids], device: torch.device) -> Tensor:
    """(B, longest) int64, filled up with PAD."""
    longest = max(map(len, rows))
    return torch.tensor([[*ids, *[PAD] * (longest - len(ids))] for ids in rows], device=device)


@for_decoding.register(Pivot)
def _of_both(backbone: Pivot, dtype: torch.dtype | None = None) -> Pivot:
    first = for_decoding(backbone.first, backbone.first_dtype)
    return backbone.with_parts(first, for_decoding(backbone.second, dtype)).eval()
