"""RNNsearch for decoding: the same numbers from fewer and larger operations.

What depends only on y_{t-1} becomes a table over the vocabulary (the embedding folded into the
GRU's input weights and into the read-out), which is computed where it is read (`word_table.py`).
The annotations are shared by the rows of a sentence's beam instead of copied for each."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from tmnmt.models.base import Inject, Injectable, StepRecord, shift
from tmnmt.models.decoding import check_int8
from tmnmt.models.products import Product, limited, product
from tmnmt.models.recurrence import gru_gates
from tmnmt.models.rnnsearch import Annotations, RNNsearch
from tmnmt.models.weights import reduced_copy
from tmnmt.models.word_table import WordTable
from tmnmt.vocab import BOS, PAD

# weights that are read by packed products alone
PACKED = (
    "decoder_weight",
    "state_weight",
    "context_input.weight",
    "readout_hidden.weight",
    "readout_context.weight",
)
CACHED = 1 << 18  # numbers that attention works on at a time: 1 MiB


class FastRNNsearch(Injectable[Annotations, Tensor]):
    """Decodes as a model does (to 1e-5 in fp32), without gradients; the tables hold V (3 d +
    embedding) numbers at most. `model` is the same model without the weights in `PACKED`: it
    encodes, and embeds words.

    `dtype` bfloat16: the products with weights run in it, everything else stays in fp32.
    Attention's tanh(x) = 2 u - 1 with u = sigmoid(2 x) costs less, and leaves 2 v u in the softmax.
    `step` takes `Annotations` of B rows and R = B K rows of everything else: K consecutive rows
    read the same one."""

    shares_encoded = True
    reach = RNNsearch.reach
    encoder_reads = RNNsearch.encoder_reads
    notes: list[StepRecord] | None = None  # where they are asked for

    def __init__(self, model: RNNsearch, dtype: torch.dtype | None = None) -> None:
        """model: the model, which has learned.
        dtype: bfloat16 for products with weights in it; None for fp32."""
        super().__init__()
        check_int8(dtype, has_products=False)
        self.model, self.dtype = reduced_copy(model.eval(), PACKED), dtype
        self.hidden_size, self.context_size = model.hidden_size, model.context_size
        self.vocab_size, self.word_size = model.vocab_size, model.word_size
        self.annotation_size, self.update_size = model.annotation_size, model.update_size
        self.attention = model.attention_vector.shape[0]
        with torch.inference_mode():
            words = model.embedding.weight
            self.input_table = WordTable(words, model.decoder_input)  # (V, 3d)
            self.readout_table = WordTable(words, partial(_read_out, self.model))  # (V, e)
            self.decoder = self._product(model.decoder_weight.t(), model.decoder_bias)
            doubled = model.state_weight.clone()
            doubled[:, : self.attention] *= 2  # the query of sigmoid(2 x)
            bias = F.pad(model.state_bias, (self.attention, 0))
            self.state = self._product(doubled.t(), bias)
            self.attention_vector = 2 * model.attention_vector
            self.context = self._product(model.context_input.weight, model.context_input.bias)
            weight = torch.cat([model.readout_hidden.weight, model.readout_context.weight], 1)
            self.before_output = self._product(weight)
            self.output = self._product(words, model.output_bias)

    def _product(self, weight: Tensor, bias: Tensor | None = None) -> Product:
        """x W^T + b in fp32; a product in bf16 gets its bias afterwards."""
        if self.dtype is None:
            return product(weight, bias)
        low = product(weight, None, self.dtype)
        if bias is None:
            return lambda x: low(x).to(x.dtype)
        return lambda x: low(x).to(x.dtype).add_(bias)

    def encode(self, src: Tensor, src_len: Tensor) -> Annotations:
        return self.model.encode(src, src_len)

    def for_beam(self, encoded: Annotations) -> Annotations:
        """Every annotation beside its share of the GRU's input, W h + b, which attention sums up
        with it: no step reads W. Only where these are fewer numbers than W has, in bf16 by far,
        since there W costs less."""
        limit = self.context_size if self.dtype is None else self.context_size // 4
        if encoded.mask.numel() > limit:
            return encoded
        return replace(
            encoded,
            values=torch.cat([encoded.values, self.context(encoded.values)], -1),
        )

    def limited_to(self, words: Tensor) -> FastRNNsearch:
        clone, model = copy.copy(self), self.model
        output = self._product(model.embedding.weight[words], model.output_bias[words])
        clone.output = limited(output, words, self.vocab_size)
        return clone

    def noting(self) -> tuple[FastRNNsearch, list[StepRecord]]:
        clone, notes = copy.copy(self), list[StepRecord]()
        clone.notes = notes
        return clone, notes

    def annotations(self, encoded: Annotations) -> Tensor:
        return encoded.values[..., : self.annotation_size]

    def start(self, encoded: Annotations) -> Tensor:
        return encoded.start

    def reordered(self, state: Tensor, rows: Tensor) -> Tensor:
        return state.index_select(0, rows)

    def step(
        self, prev: Tensor, state: Tensor, encoded: Annotations, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        new, context, alpha = self._attending(prev, state, encoded, inject)
        if self.notes is not None:
            self.notes.append(StepRecord(new, alpha.flatten(0, 1)))
        return new, context, new

    def _attending(
        self, prev: Tensor, state: Tensor, encoded: Annotations, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The new state, the context, and the attention (n, K, S)."""
        a = self.attention
        middle, projected, alpha = self._looking(prev, state, encoded)
        blended = torch.bmm(alpha, encoded.values).flatten(0, 1)  # (R, l) or (R, l + 3d)
        context, x2 = blended[:, : self.context_size], blended[:, self.context_size :]
        if not x2.shape[1]:
            x2 = self.context(context)
        if inject is not None:
            x2 = x2 + inject(prev, state, context)
        *_, new = gru_gates(x2, projected[:, a:], middle)
        return new, context, alpha

    def _looking(
        self, prev: Tensor, state: Tensor, encoded: Annotations
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The state between two steps of its own, what is projected of it, the attention."""
        a, n = self.attention, encoded.mask.shape[0]
        *_, middle = gru_gates(self.input_table.rows(prev), self.decoder(state), state)
        projected = self.state(middle)
        query = projected[:, :a].view(n, -1, 1, a)
        energy = self._energy(query, encoded.keys[:, None])
        alpha = energy.masked_fill_(~encoded.mask[:, None], -torch.inf).softmax(-1)
        return middle, projected, alpha

    def _energy(self, query: Tensor, keys: Tensor) -> Tensor:
        """query: (n, K, 1, a), doubled; keys: (n, 1, S, a) -> (n, K, S); on a CPU as many sentences
        at a time as fit its cache, or else as many rows of one."""
        sentences = max(1, CACHED // max(1, query.shape[1] * keys.shape[2] * self.attention))
        sentences = sentences if query.device.type == "cpu" else max(1, len(query))
        if len(query) == 1:
            rows = max(1, CACHED // max(1, keys.shape[2] * self.attention))
            rows = rows if query.device.type == "cpu" else max(1, query.shape[1])
            together = torch.split(query, rows, 1)
            return torch.cat([self._energies(part, keys) for part in together], 1)
        parts = zip(torch.split(query, sentences), torch.split(keys, sentences), strict=True)
        return torch.cat([self._energies(q, k) for q, k in parts])

    def _energies(self, query: Tensor, keys: Tensor) -> Tensor:
        return torch.add(query, keys, alpha=2).sigmoid_() @ self.attention_vector

    def embed(self, ids: Tensor) -> Tensor:
        return self.model.embed(ids)

    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        total = self.readout_table.rows(prev).add_(
            self.before_output(torch.cat([hidden, context], -1))
        )
        return self.output(total.tanh_())

    def forced(
        self, encoded: Annotations, tgt: Tensor, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor]:
        """As `RNNsearch.forced`, but keeps nothing for gradients; 0 stands behind a target."""
        contexts = encoded.values.new_zeros(*tgt.shape, self.context_size)
        hiddens = encoded.values.new_zeros(*tgt.shape, self.hidden_size)
        for t, rows, state, context, _ in self._steps(encoded, tgt, inject):
            contexts[rows, t], hiddens[rows, t] = context, state
        real = (tgt != PAD)[..., None]
        return contexts * real, hiddens * real

    def alphas(self, encoded: Annotations, tgt: Tensor, inject: Inject | None = None) -> Tensor:
        alphas = encoded.values.new_zeros(*tgt.shape, encoded.mask.shape[1])
        for t, rows, *_, alpha in self._steps(encoded, tgt, inject):
            alphas[rows, t] = alpha[:, 0]
        return alphas

    def _steps(
        self, encoded: Annotations, tgt: Tensor, inject: Inject | None
    ) -> Iterator[tuple[int, Tensor, Tensor, Tensor, Tensor]]:
        """Every step of known targets with the rows that take it, since targets leave where they
        end: state, context and attention of each. With `inject`, which is asked for all rows, all
        stay in their places."""
        lengths = (tgt != PAD).sum(1)
        if inject is not None:
            lengths = torch.full_like(lengths, tgt.shape[1])
        order = lengths.argsort(descending=True, stable=True)
        going_on = (lengths[:, None] > torch.arange(tgt.shape[1], device=tgt.device)).sum(0)
        encoded, words = encoded.rows(order), shift(tgt, BOS)[order]
        state = encoded.start
        for t, n in enumerate(filter(None, going_on.tolist())):
            if n < len(state):
                encoded = Annotations(
                    encoded.values[:n], encoded.keys[:n], encoded.mask[:n], encoded.start[:n]
                )
            state, context, alpha = self._attending(words[:n, t], state[:n], encoded, inject)
            yield t, order[:n], state, context, alpha


def _read_out(model: RNNsearch, words: Tensor) -> Tensor:
    """What words (n, e) and the bias add to the read-out: (n, e)."""
    added: Tensor = model.readout_word(words) + model.readout_context.bias
    return added
