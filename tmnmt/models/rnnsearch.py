"""RNNsearch (Bahdanau et al. 2015): bidirectional GRU encoder, additive attention, conditional GRU
decoder.

One embedding table serves source, target and output. The attention sees the last word through the
first GRU; the read-out is tanh(linear [y_{t-1}; h_t; c_t]) into the embedding's size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tmnmt.config.bounds import EvenSize, Size
from tmnmt.models.base import BaseConfig, Inject, Injectable, Trainable, shift, stacked
from tmnmt.models.recurrence import AttendingDecoder, BidirectionalGRU, OutputLoss, gru_gates
from tmnmt.vocab import BOS, PAD


@dataclass(frozen=True)
class Annotations:
    """What RNNsearch reads of its sources."""

    values: Tensor  # (B, S, e) annotations h
    keys: Tensor  # (B, S, a) projected once
    mask: Tensor  # (B, S) bool, True on real positions
    start: Tensor  # (B, d) initial decoder state

    def rows(self, index: Tensor) -> Annotations:
        """These rows, in their order, for the beam, and to let finished sentences leave.

        index: (R,) int64, the numbers of the rows."""
        return Annotations(
            *(t.index_select(0, index) for t in (self.values, self.keys, self.mask, self.start))
        )

    def cut(self, length: int) -> Annotations:
        """The beginning of every source.

        length: how many positions stay."""
        return replace(
            self,
            values=self.values[:, :length],
            keys=self.keys[:, :length],
            mask=self.mask[:, :length],
        )

    def concat(self, batches: Sequence[Annotations]) -> Annotations:
        """These rows, then those of other batches.

        batches: the other batches."""
        encoded = [self, *batches]
        return Annotations(
            stacked([batch.values for batch in encoded]),
            stacked([batch.keys for batch in encoded]),
            stacked([batch.mask for batch in encoded]),
            torch.cat([batch.start for batch in encoded]),
        )


@dataclass(frozen=True)
class RNNsearchConfig(BaseConfig):
    """The sizes of an RNNsearch."""

    kind: Literal["rnnsearch"] = "rnnsearch"
    embedding: Size = 256
    hidden: EvenSize = 512
    attention: Size = 256


class RNNsearch(Trainable[Annotations, Tensor], Injectable[Annotations, Tensor]):
    """d = l = `hidden`; each direction of the encoder has hidden / 2 units; attention has
    `attention` units."""

    config = RNNsearchConfig
    reach = 3
    encoder_reads = ("embedding", "encoder_")  # the embedding serves both sides

    def __init__(
        self,
        vocab_size: int,
        embedding: int = 256,
        hidden: int = 512,
        attention: int = 256,
        dropout: float = 0.1,
    ) -> None:
        """vocab_size: how many words there are.
        embedding: how many numbers the embedding of a word has.
        hidden: how many numbers a hidden state has, an even number.
        attention: how many units the attention has.
        dropout: the share of numbers that training leaves out, from 0 to 1."""
        super().__init__()
        self.vocab_size = vocab_size
        self.word_size = embedding
        self.hidden_size = hidden
        self.context_size = hidden
        self.annotation_size = hidden
        self.update_size = 3 * hidden
        self.dropout = dropout
        d, half = hidden, hidden // 2
        self.embedding = nn.Embedding(vocab_size, embedding, padding_idx=PAD)
        self.encoder_input = nn.Linear(embedding, 2 * 3 * half)
        self.encoder_weight = nn.Parameter(torch.empty(2, half, 3 * half))
        self.encoder_bias = nn.Parameter(torch.zeros(2, 1, 3 * half))
        self.start_state = nn.Linear(hidden, d)
        self.attention_keys = nn.Linear(hidden, attention)
        self.attention_vector = nn.Parameter(torch.empty(attention))
        self.decoder_input = nn.Linear(embedding, 3 * d)
        self.decoder_weight = nn.Parameter(torch.empty(d, 3 * d))
        self.decoder_bias = nn.Parameter(torch.zeros(3 * d))
        self.state_weight = nn.Parameter(torch.empty(d, attention + 3 * d))
        self.state_bias = nn.Parameter(torch.zeros(3 * d))
        self.context_input = nn.Linear(hidden, 3 * d)
        self.readout_word = nn.Linear(embedding, embedding, bias=False)
        self.readout_hidden = nn.Linear(d, embedding, bias=False)
        self.readout_context = nn.Linear(hidden, embedding)
        self.output_bias = nn.Parameter(torch.zeros(vocab_size))
        if (
            not self.output_bias.is_meta
        ):  # else there is nothing to be initialised: the weights are read
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot for products, orthogonal for recurrences, 1/sqrt(size) for the shared
        embedding."""
        for name, parameter in self.named_parameters():
            if name.endswith(("encoder_weight", "decoder_weight", "state_weight")):
                blocks = parameter if parameter.dim() == 3 else parameter[None]
                for block in blocks:
                    for start in range(0, block.shape[1], block.shape[0]):
                        nn.init.orthogonal_(block.data[:, start : start + block.shape[0]])
            elif parameter.dim() == 2 and "embedding" not in name:
                nn.init.xavier_uniform_(parameter)
        nn.init.normal_(self.embedding.weight, std=self.embedding.embedding_dim**-0.5)
        nn.init.normal_(self.attention_vector, std=self.attention_vector.shape[0] ** -0.5)
        with torch.no_grad():
            self.embedding.weight[PAD] = 0

    def _linear(self, layer: nn.Linear, x: Tensor) -> Tensor:
        """layer(x), the product in the loops' precision."""
        if self.dtype is None:
            return F.linear(x, layer.weight, layer.bias)
        product = F.linear(x.to(self.dtype), layer.weight.to(self.dtype)).to(x.dtype)
        return product if layer.bias is None else product + layer.bias

    def _embed(self, ids: Tensor) -> Tensor:
        return F.dropout(self.embedding(ids), self.dropout, self.training)

    def encode(self, src: Tensor, src_len: Tensor) -> Annotations:
        rows, length = src.shape
        mask = torch.arange(length, device=src.device) < src_len[:, None]  # (B, S)
        x = self._linear(self.encoder_input, self._embed(src)).view(rows, length, 2, -1)
        x = x.permute(1, 2, 0, 3)  # (S, 2, B, 3 half)
        x = torch.stack([x[:, 0], x[:, 1].flip(0)], 1)
        time = mask.t()[..., None].to(x.dtype)  # (S, B, 1)
        steps = torch.stack([time, time.flip(0)], 1)
        states: Tensor = BidirectionalGRU.apply(
            x, steps, self.encoder_weight, self.encoder_bias, self.dtype
        )
        values = torch.cat([states[:, 0], states[:, 1].flip(0)], -1).transpose(0, 1)  # (B, S, d)
        values = values * mask[..., None]
        mean = values.sum(1) / src_len.clamp(min=1)[:, None]
        start = torch.tanh(self._linear(self.start_state, mean))
        return Annotations(values, self._linear(self.attention_keys, values), mask, start)

    def start(self, encoded: Annotations) -> Tensor:
        return encoded.start

    def reordered(self, state: Tensor, rows: Tensor) -> Tensor:
        return state.index_select(0, rows)

    def step(
        self, prev: Tensor, state: Tensor, encoded: Annotations, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = self.decoder_input(self.embedding(prev))
        new, context, _ = self._advance(x, prev, state, encoded, inject)
        return new, context, new

    def _advance(
        self,
        x: Tensor,
        prev: Tensor,
        state: Tensor,
        encoded: Annotations,
        inject: Inject | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The new state, the context, and the attention (B, S) that it was read with, after
        y_{t-1}, which the decoder reads as x (B, 3d)."""
        a = self.attention_vector.shape[0]
        h1 = torch.addmm(self.decoder_bias, state, self.decoder_weight)
        *_, middle = gru_gates(x, h1, state)
        projected = middle @ self.state_weight
        energy = torch.tanh(encoded.keys + projected[:, None, :a]) @ self.attention_vector  # (B, S)
        alpha = torch.softmax(energy.masked_fill(~encoded.mask, -torch.inf), -1)
        context = torch.bmm(alpha[:, None], encoded.values)[:, 0]
        x2 = self.context_input(context)
        if inject is not None:
            x2 = x2 + inject(prev, state, context)
        *_, new = gru_gates(x2, projected[:, a:] + self.state_bias, middle)
        return new, context, alpha

    def annotations(self, encoded: Annotations) -> Tensor:
        return encoded.values

    def alphas(self, encoded: Annotations, tgt: Tensor, inject: Inject | None = None) -> Tensor:
        return torch.stack([alpha for *_, alpha in self._steps(encoded, tgt, inject)], 1)

    def _steps(
        self, encoded: Annotations, tgt: Tensor, inject: Inject | None
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """State, context and attention of every step of a known target."""
        state, words = encoded.start, shift(tgt, BOS)
        inputs = self._linear(self.decoder_input, self._embed(words))
        for x, prev in zip(inputs.unbind(1), words.unbind(1), strict=True):
            state, context, alpha = self._advance(x, prev, state, encoded, inject)
            yield state, context, alpha

    def embed(self, ids: Tensor) -> Tensor:
        words: Tensor = self.embedding(ids)
        return words

    def _before_output(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        total = self._linear(self.readout_word, self._embed(prev)) + self._linear(
            self.readout_hidden, hidden
        )
        total = total + self._linear(self.readout_context, context)
        return F.dropout(torch.tanh(total), self.dropout, self.training)

    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        return F.linear(
            self._before_output(prev, hidden, context), self.embedding.weight, self.output_bias
        )

    def forced(
        self, encoded: Annotations, tgt: Tensor, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor]:
        if inject is not None:  # whose gradients are autograd's
            states, contexts, _ = zip(*self._steps(encoded, tgt, inject), strict=True)
            return torch.stack(contexts, 1), torch.stack(states, 1)
        # (T, B, 3d)
        x = self._linear(self.decoder_input, self._embed(shift(tgt, BOS))).transpose(0, 1)
        bias = encoded.values.new_zeros(encoded.mask.shape).masked_fill(~encoded.mask, -torch.inf)
        contexts, hiddens = AttendingDecoder.apply(
            x,
            encoded.start,
            encoded.values,
            encoded.keys,
            bias,
            self.decoder_weight,
            self.decoder_bias,
            self.state_weight,
            self.state_bias,
            self.attention_vector,
            self.context_input.weight.t(),
            self.context_input.bias,
            self.dtype,
        )
        return contexts.transpose(0, 1), hiddens.transpose(0, 1)

    def loss(self, src: Tensor, src_len: Tensor, tgt: Tensor, smoothing: float = 0.0) -> Tensor:
        """Summed cross-entropy in nats of tgt (B, T), padded with 0."""
        contexts, hiddens = self.forced(self.encode(src, src_len), tgt)
        real = (tgt != PAD).flatten().nonzero()[:, 0]
        # few shapes: see token_batches
        real = F.pad(real, (0, -len(real) % OutputLoss.BLOCK), value=0)
        ids = tgt.flatten()[real]
        ids[int((tgt != PAD).sum()) :] = PAD
        hidden = self._before_output(
            shift(tgt, BOS).flatten()[real],
            hiddens.flatten(0, 1)[real],
            contexts.flatten(0, 1)[real],
        )
        total: Tensor = OutputLoss.apply(
            hidden, self.embedding.weight, self.output_bias, ids, smoothing, self.dtype
        )
        return total
