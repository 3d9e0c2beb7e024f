"""A student: a Transformer whose decoder has a simple recurrent cell where others have
self-attention (SSRU, Kim et al. 2019, "From research to production and back"). Models that are
distilled for a CPU are built so, as those of Mozilla are (Bogoychev et al. 2020).

    f_t = sigmoid(W_f y_t + b_f)
    c_t = f_t * c_{t-1} + (1 - f_t) * W y_t        c_0 = 0
    y_t + relu(c_t), then a layer norm, is what the layer's attention over the source reads

The state of a hypothesis is one vector c a layer, however long it is. Layer norms come after every
part, embeddings are scaled, positions are Marian's, and the first word reads an embedding of zeros.

    d: hidden size    L: decoder layers    B, R: rows    S: source length    T: target length
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from tmnmt.compiled.kernels import NormWeights, run_cells_
from tmnmt.models.encoder_decoder import (
    CrossAttention,
    EncoderDecoder,
    FeedForward,
    level_of,
)
from tmnmt.models.transformer_state import CellState, EncodedSource
from tmnmt.models.transformer_step import Part as CompiledPart

EPSILON = 1e-6  # under the root of Marian's layer norms


class Cell(nn.Module):
    """Parameters of the recurrent cell: candidate W y and gate W_f y + b_f in one product."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.candidate_gate = nn.Linear(d, 2 * d)


class StudentLayer(nn.Module):
    """Recurrent cell, attention over the source, feed-forward."""

    def __init__(self, d: int, f: int) -> None:
        super().__init__()
        self.cell = Cell(d)
        self.cross = CrossAttention(d)
        self.feed_forward = FeedForward(d, f)


class Student(EncoderDecoder[CellState]):
    """d = l = `hidden`, a multiple of twice `heads`."""

    def __init__(
        self,
        vocab_size: int,
        hidden: int = 256,
        feed_forward: int = 1536,
        heads: int = 8,
        encoder_layers: int = 6,
        decoder_layers: int = 2,
        dropout: float = 0.1,
        source_words: int = 0,
    ) -> None:
        """vocab_size: how many words there are.
        hidden: the hidden size d, a multiple of twice `heads`.
        feed_forward: the feed-forward size f.
        heads: how many heads an attention has.
        encoder_layers: how many layers the encoder has.
        decoder_layers: how many layers the decoder has.
        dropout: the share of numbers that training leaves out, from 0 to 1.
        source_words: how many words a source vocabulary of its own has; 0 where both sides share
        one.

        Raises ValueError for sizes that do not fit."""
        super().__init__(
            vocab_size,
            hidden,
            feed_forward,
            heads,
            encoder_layers,
            decoder_layers,
            dropout,
            norm="post",
            source_words=source_words,
            positions="marian",
        )
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = EPSILON

    def _decoder_layer(self, feed_forward: int) -> StudentLayer:
        return StudentLayer(self.hidden_size, feed_forward)

    def _cell(self, number: int) -> Cell:
        return cast(StudentLayer, self.decoder[number]).cell

    def _past_part(self, number: int) -> CompiledPart:
        cell = self._cell(number)
        (candidate_gate,) = self._in_fp32(cell.candidate_gate)
        return CompiledPart("cell", NormWeights.of(cell.norm), candidate_gate, None)

    def start(self, encoded: EncodedSource) -> CellState:
        shape = len(self.decoder), len(encoded.mask), self.hidden_size
        return CellState(self.embedding.weight.new_zeros(shape), 0)

    def reordered(self, state: CellState, rows: Tensor) -> CellState:
        return state.rows(rows)

    def step(
        self, prev: Tensor, state: CellState, encoded: EncodedSource
    ) -> tuple[CellState, Tensor, Tensor]:
        """One target position; `encoded` may hold one row for several consecutive rows
        of `prev`."""
        if self.compiled is not None:
            position = self._sinusoids(state.length + 1, self.embedding.weight)[-1]
            return self.compiled.step(prev, position, state, encoded.source)
        x = total = query = self._embed(self.embedding, prev[:, None], state.length)
        cells = []
        for number in range(len(self.decoder)):
            candidate, gate = self._candidate_gate(number, x)
            cells.append(torch.lerp(candidate[:, 0], state.cells[number], gate[:, 0]))
            x = self._cell(number).norm(x + torch.relu(cells[-1][:, None]))
            x, query, total = self._read_source(number, x, encoded)
        return CellState(torch.stack(cells), state.length + 1), query[:, 0], level_of(total[:, 0])

    def _candidate_gate(self, number: int, x: Tensor) -> tuple[Tensor, Tensor]:
        """W y and f of every position: (B, T, d) -> twice (B, T, d)."""
        candidate_gate = self._linear(self._cell(number).candidate_gate, x).to(x.dtype)
        candidate, gate = candidate_gate.chunk(2, -1)
        return candidate, torch.sigmoid(gate)

    def _read_past(self, number: int, x: Tensor, dtype: torch.dtype) -> Tensor:
        if self._is_compiled(x):
            part = self._cell(number)
            return self._with_part(part, x, run_cells_(self._linear(part.candidate_gate, x)))
        candidate, gate = self._candidate_gate(number, x)
        cell, cells = torch.zeros_like(x[:, 0]), []
        for position in range(x.shape[1]):
            cell = torch.lerp(candidate[:, position], cell, gate[:, position])
            cells.append(cell)
        activations = torch.relu(torch.stack(cells, 1))  # (B, T, d)
        result: Tensor = self._cell(number).norm(x + self._drop(activations))
        return result

    def alphas(self, encoded: EncodedSource, tgt: Tensor) -> Tensor:
        """Head 0 of the last layer, which Marian trains as an alignment."""
        queries = self._queries_along(encoded, tgt, len(self.decoder) - 1)
        q, keys = queries[:, 0], encoded.keys[-1][:, 0]  # (B, T, k), (B, S, k)
        energy = (q * q.shape[-1] ** -0.5) @ keys.transpose(1, 2)
        return torch.softmax((energy + encoded.bias[:, 0]).float(), -1)
