"""A Transformer (Vaswani et al. 2017): every layer of its decoder reads the words before a position
by self-attention.

    d: hidden size    H: heads    k: d / H    B, R: rows    S: source length    T: target length
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn

from tmnmt.compiled.kernels import NormWeights, Spans
from tmnmt.config.bounds import EvenSize, Size
from tmnmt.errors import UsageError
from tmnmt.models.base import BaseConfig
from tmnmt.models.encoder_decoder import (
    Attention,
    CrossAttention,
    EncoderDecoder,
    FeedForward,
    level_of,
)
from tmnmt.models.transformer_state import (
    CAPACITY,
    PADDED,
    DecoderState,
    EncodedSource,
    SeenState,
)
from tmnmt.models.transformer_step import Part as CompiledPart


class DecoderLayer(nn.Module):
    """Self-attention, attention over the source, feed-forward."""

    def __init__(self, d: int, f: int) -> None:
        super().__init__()
        self.attention = Attention(d)
        self.cross = CrossAttention(d)
        self.feed_forward = FeedForward(d, f)


@dataclass(frozen=True)
class TransformerConfig(BaseConfig):
    """The sizes of a Transformer."""

    kind: Literal["transformer"] = "transformer"
    hidden: EvenSize = 256  # a multiple of `heads`
    feed_forward: Size = 1024
    heads: Size = 4
    encoder_layers: Size = 6  # deep here, where a sentence passes once,
    decoder_layers: Size = 2  # and shallow there, where every word does

    def check(self) -> None:
        if self.hidden % self.heads or self.hidden // self.heads % 2:
            raise UsageError(
                f"hidden is {self.hidden}; it must be an even multiple of heads, {self.heads}"
            )


class Transformer(EncoderDecoder[DecoderState | SeenState]):
    """d = l = `hidden`, a multiple of twice `heads`."""

    config = TransformerConfig

    def _decoder_layer(self, feed_forward: int) -> DecoderLayer:
        return DecoderLayer(self.hidden_size, feed_forward)

    def _attention(self, number: int) -> Attention:
        return cast(DecoderLayer, self.decoder[number]).attention

    def _past_part(self, number: int) -> CompiledPart:
        part = self._attention(number)
        return CompiledPart("self", NormWeights.of(part.norm), *self._in_fp32(part.qkv, part.out))

    def start(self, encoded: EncodedSource) -> DecoderState | SeenState:
        if self.compiled is not None:
            return SeenState.empty(len(encoded.mask), len(self.decoder), self.hidden_size)
        shape = CAPACITY, len(self.decoder), len(encoded.mask), 2 * self.hidden_size
        return DecoderState.empty(encoded.keys[0].new_empty(shape))

    def reordered(self, state: DecoderState | SeenState, rows: Tensor) -> DecoderState | SeenState:
        return state.rows(rows)

    def step(
        self, prev: Tensor, state: DecoderState | SeenState, encoded: EncodedSource
    ) -> tuple[DecoderState | SeenState, Tensor, Tensor]:
        """One target position; `encoded` may hold one row for several consecutive rows
        of `prev`."""
        if self.compiled is not None and isinstance(state, SeenState):
            position = self._sinusoids(state.length + 1, self.embedding.weight)[-1]
            return self.compiled.step(prev, position, state, encoded.source)
        if isinstance(state, SeenState):
            raise TypeError("this state is of a compiled step")
        state, length = state.roomy(), state.length
        x = total = query = self._embed(self.embedding, prev[:, None], length)
        d, kv_cache = self.hidden_size, state.kv_cache[: length + 1]
        for number in range(len(self.decoder)):
            part = self._attention(number)
            qkv = self._linear(part.qkv, self._part_input(part, x))[:, 0]
            kv_cache[length, number] = qkv[:, d:]
            attended = self._look_back(qkv[:, :d], kv_cache[:, number])
            x = self._part_output(part, x + self._linear(part.out, attended))
            x, query, total = self._read_source(number, x, encoded)
        return state.longer(), query[:, 0], level_of(total[:, 0])

    def _look_back(self, q: Tensor, kv_cache: Tensor) -> Tensor:
        """Self-attention of one position: q (B, d), kv_cache (T, B, 2 d), keys then values
        -> (B, 1, d)."""
        length, rows, _ = kv_cache.shape
        keys, values = kv_cache.view(length, rows, 2, self.heads, -1).permute(2, 1, 3, 0, 4)
        return self._attend(q.view(rows, self.heads, 1, -1), keys, values, None)

    def _read_past(self, number: int, x: Tensor, dtype: torch.dtype) -> Tensor:
        length = x.shape[1]
        if self._is_compiled(x):
            spans = Spans.of_rows(len(x), length)
            return self._self_attended(self._attention(number), x, x, PADDED, spans, causal=True)
        causal = torch.full((length, length), -torch.inf, dtype=dtype, device=x.device)
        return self._self_attended(self._attention(number), x, causal.triu(1), PADDED)
