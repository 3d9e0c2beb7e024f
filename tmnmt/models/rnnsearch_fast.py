"""RNNsearch for decoding: the same numbers from fewer and larger operations.

What depends only on y_{t-1} becomes a table over the vocabulary (the embedding folded into the GRU's input weights and
into the read-out), and the annotations are shared by the rows of a sentence's beam instead of copied for each.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from tmnmt.models.base import Backbone, Encoded, Inject, shift
from tmnmt.models.recurrence import gru_gates
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.vocab import BOS


class FastRNNsearch(Backbone):
    """Decodes as `model` does (to 1e-5 in fp32), without gradients; the tables hold V (3 d + embedding) numbers.

    `step` takes an `Encoded` of B rows and R = B K rows of everything else: K consecutive rows read the same one."""

    shares_encoded = True

    def __init__(self, model: RNNsearch) -> None:
        super().__init__()
        self.model = model.eval()
        self.hidden_size, self.context_size, self.vocab_size = model.hidden_size, model.context_size, model.vocab_size
        self.attention = model.attention_vector.shape[0]
        with torch.inference_mode():
            words = model.embedding.weight
            self.input_table = model.decoder_input(words)  # (V, 3d)
            self.readout_table = model.readout_word(words) + model.readout_context.bias  # (V, e)
            self.state_bias = F.pad(model.state_bias, (self.attention, 0))

    def encode(self, src: Tensor, src_len: Tensor) -> Encoded:
        return self.model.encode(src, src_len)

    def start(self, encoded: Encoded) -> Tensor:
        return encoded.start

    def step(
        self, prev: Tensor, state: Tensor, encoded: Encoded, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        model, a, n = self.model, self.attention, encoded.mask.shape[0]
        h1 = torch.addmm(model.decoder_bias, state, model.decoder_weight)
        *_, middle = gru_gates(self.input_table[prev], h1, state)
        projected = torch.addmm(self.state_bias, middle, model.state_weight)
        query = projected[:, :a].view(n, -1, 1, a)
        energy = (encoded.keys[:, None] + query).tanh_() @ model.attention_vector  # (n, K, S)
        alpha = energy.masked_fill_(~encoded.mask[:, None], -torch.inf).softmax(-1)
        context = torch.bmm(alpha, encoded.values).flatten(0, 1)  # (R, l)
        x2 = model.context_input(context)
        if inject is not None:
            x2 = x2 + inject(prev, middle, context)
        *_, new = gru_gates(x2, projected[:, a:], middle)
        return new, context, new

    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        total = self.readout_table[prev] + F.linear(hidden, self.model.readout_hidden.weight)
        total = (total + F.linear(context, self.model.readout_context.weight)).tanh_()
        return F.linear(total, self.model.embedding.weight, self.model.output_bias)

    def forced(self, encoded: Encoded, tgt: Tensor) -> tuple[Tensor, Tensor]:
        """As `RNNsearch.forced`, but keeps nothing for gradients."""
        state, contexts, hiddens = encoded.start, [], []
        for prev in shift(tgt, BOS).unbind(1):
            state, context, hidden = self.step(prev, state, encoded)
            contexts.append(context)
            hiddens.append(hidden)
        return torch.stack(contexts, 1), torch.stack(hiddens, 1)
