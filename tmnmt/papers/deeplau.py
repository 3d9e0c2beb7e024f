"""DeepLAU (Wang et al. 2017, "Deep Neural Machine Translation with Linear Associative Unit"): deep
recurrent encoder and decoder, whose units let their input through linearly.

    r, z, g = sigmoid(W x + U h)                                 gates, each with its own W, U
    h~ = tanh((1 - r) W_h x + r U_h h)                           the paper's f is 1 - r
    h' = (1 - g) ((1 - z) h + z h~) + g H x

Every product is layer-normalised, as in Fu et al. 2019. The encoder's layers read in turn from
left to right and from right to left. OURS, where Fu et al. do not say: the attention is asked by
the last state of the top layer and y_{t-1}; the decoder's first layer reads [y_{t-1}; c_t];
embedding and read-out are those of RNNsearch; what is injected is added to the products of the
first layer after their normalisation, so that an untrained network changes nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tmnmt.config.bounds import ShareBelowOne, Size
from tmnmt.models.base import BaseConfig, Inject, Injectable, Trainable, shift
from tmnmt.models.products import Product, limited, product
from tmnmt.models.recurrence import OutputLoss
from tmnmt.models.rnnsearch import Annotations
from tmnmt.papers.associative import AssociativeDecoder, AssociativeLayer, unit
from tmnmt.vocab import BOS, PAD

INPUT_PRODUCTS, STATE_PRODUCTS = (
    5,
    4,
)  # products of the input, r z g h~ H, and of the state, r z g h~


class Normed(nn.Module):
    """Several products at once, each normalised by itself: (..., in) -> (..., parts, out)."""

    def __init__(self, size: int, parts: int, width: int) -> None:
        super().__init__()
        self.product = nn.Linear(size, parts * width, bias=False)
        self.scale = nn.Parameter(torch.ones(parts, width))
        self.bias = nn.Parameter(torch.zeros(parts, width))

    def forward(self, x: Tensor) -> Tensor:
        products = self.product(x).unflatten(-1, self.scale.shape)
        return torch.addcmul(self.bias, F.layer_norm(products, self.scale.shape[1:]), self.scale)


class LinearAssociativeUnit(nn.Module):
    """One layer: `read` once for all positions, then `step` from state to state."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.read, self.kept = (
            Normed(size, INPUT_PRODUCTS, hidden),
            Normed(hidden, STATE_PRODUCTS, hidden),
        )

    def step(self, input_products: Tensor, state: Tensor) -> Tensor:
        """input_products (B, 5, d) of x, state (B, d) -> the new state (B, d)."""
        new, _ = unit(input_products, self.kept(state), state)
        return new


@dataclass(frozen=True)
class DeepLAUConfig(BaseConfig):
    """The sizes of a DeepLAU."""

    kind: Literal["deeplau"] = "deeplau"
    embedding: Size = 512
    hidden: Size = 512
    attention: Size = 512
    encoder_layers: Size = 4
    decoder_layers: Size = 4
    dropout: ShareBelowOne = 0.2


class DeepLAU(Trainable[Annotations, Tensor], Injectable[Annotations, Tensor]):
    """d = l = `hidden`. A state is (B, layers, d); its last layer is the hidden state."""

    config = DeepLAUConfig

    reach = 3
    encoder_reads = ("embedding", "encoder")
    output: Product | None = None  # where only some words are compared

    def __init__(
        self,
        vocab_size: int,
        embedding: int = 512,
        hidden: int = 512,
        attention: int = 512,
        encoder_layers: int = 4,
        decoder_layers: int = 4,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.vocab_size, self.word_size, self.dropout = vocab_size, embedding, dropout
        self.hidden_size = self.context_size = self.annotation_size = hidden
        self.update_size = INPUT_PRODUCTS * hidden
        self.embedding = nn.Embedding(vocab_size, embedding, padding_idx=PAD)
        sizes = [embedding, *[hidden] * (encoder_layers - 1)]
        layers = nn.ModuleList(LinearAssociativeUnit(size, hidden) for size in sizes)
        self.encoder = cast("Sequence[LinearAssociativeUnit]", layers)
        sizes = [embedding + hidden, *[hidden] * (decoder_layers - 1)]
        layers = nn.ModuleList(LinearAssociativeUnit(size, hidden) for size in sizes)
        self.decoder = cast("Sequence[LinearAssociativeUnit]", layers)
        self.start_state = nn.Linear(hidden, decoder_layers * hidden)
        self.attention_keys = nn.Linear(hidden, attention)
        self.attention_query = nn.Linear(hidden + embedding, attention, bias=False)
        self.attention_vector = nn.Parameter(torch.empty(attention))
        self.before_output = nn.Linear(embedding + 2 * hidden, embedding)
        self.output_bias = nn.Parameter(torch.zeros(vocab_size))
        nn.init.normal_(self.embedding.weight, std=embedding**-0.5)
        nn.init.normal_(self.attention_vector, std=attention**-0.5)
        with torch.no_grad():
            self.embedding.weight[PAD] = 0

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)

    def encode(self, src: Tensor, src_len: Tensor) -> Annotations:
        mask = torch.arange(src.shape[1], device=src.device) < src_len[:, None]  # (B, S)
        x = self._drop(self.embedding(src))
        for number, layer in enumerate(self.encoder):
            x = self._run_layer(layer, x, mask, backwards=number % 2 == 1)
        mean = x.sum(1) / src_len.clamp(min=1)[:, None]
        start = self._product(mean, self.start_state.weight) + self.start_state.bias
        keys = self._product(x, self.attention_keys.weight) + self.attention_keys.bias
        start = torch.tanh(start).view(len(x), -1, self.hidden_size)
        return Annotations(x, keys, mask, start)

    def _product(self, x: Tensor, w: Tensor) -> Tensor:
        """x w^T in the precision of training's products: (..., in), (out, in) -> (..., out)."""
        return F.linear(x.to(self.dtype or x.dtype), w.to(self.dtype or w.dtype))

    def _run_layer(
        self, layer: LinearAssociativeUnit, x: Tensor, mask: Tensor, backwards: bool
    ) -> Tensor:
        """The layer's states (B, S, d) along x (B, S, .), 0 behind a source."""
        input_products = self._product(x.transpose(0, 1), layer.read.product.weight)  # (S, B, 5d)
        real = mask.t()[..., None].to(x.dtype)  # (S, B, 1)
        if backwards:
            input_products, real = input_products.flip(0), real.flip(0)
        states: Tensor = AssociativeLayer.apply(
            input_products,
            real,
            layer.read.scale,
            layer.read.bias,
            layer.kept.scale,
            layer.kept.bias,
            layer.kept.product.weight.t(),
            self.dtype,
        )
        states = states.flip(0) if backwards else states
        return states.transpose(0, 1) * mask[..., None]

    def annotations(self, encoded: Annotations) -> Tensor:
        return encoded.values

    def start(self, encoded: Annotations) -> Tensor:
        return encoded.start

    def reordered(self, state: Tensor, rows: Tensor) -> Tensor:
        return state.index_select(0, rows)

    def step(
        self, prev: Tensor, state: Tensor, encoded: Annotations, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        new, context, _ = self._advance(self.embedding(prev), prev, state, encoded, inject)
        return new, context, new[:, -1]

    def _advance(
        self,
        word: Tensor,
        prev: Tensor,
        state: Tensor,
        encoded: Annotations,
        inject: Inject | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The new state, the context, and the attention (B, S), after a word (B, e)."""
        query = self.attention_query(torch.cat([state[:, -1], word], -1))
        energy = torch.tanh(encoded.keys + query[:, None]) @ self.attention_vector
        alpha = torch.softmax(energy.masked_fill(~encoded.mask, -torch.inf), -1)
        context = torch.bmm(alpha[:, None], encoded.values)[:, 0]
        x, new = torch.cat([word, context], -1), []
        for number, (layer, layer_state) in enumerate(
            zip(self.decoder, state.unbind(1), strict=True)
        ):
            input_products = layer.read(x)
            if inject is not None and number == 0:
                input_products = input_products + inject(prev, state[:, -1], context).view_as(
                    input_products
                )
            x = layer.step(input_products, layer_state)
            new.append(x)
        return torch.stack(new, 1), context, alpha

    def _steps(
        self, encoded: Annotations, tgt: Tensor, inject: Inject | None
    ) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        state, words = encoded.start, shift(tgt, BOS)
        embedded = self._drop(self.embedding(words))
        for word, prev in zip(embedded.unbind(1), words.unbind(1), strict=True):
            state, context, alpha = self._advance(word, prev, state, encoded, inject)
            yield state[:, -1], context, alpha

    def forced(
        self, encoded: Annotations, tgt: Tensor, inject: Inject | None = None
    ) -> tuple[Tensor, Tensor]:
        if inject is not None:  # whose gradients are autograd's
            hiddens, contexts, _ = zip(*self._steps(encoded, tgt, inject), strict=True)
            return torch.stack(contexts, 1), torch.stack(hiddens, 1)
        words = self._drop(self.embedding(shift(tgt, BOS))).transpose(0, 1)  # (T, B, e)
        d, e = self.hidden_size, self.word_size
        reads = [layer.read.product.weight for layer in self.decoder]
        of_word, reads[0] = reads[0][:, :e], reads[0][:, e:]
        asking = self.attention_query.weight
        weights: list[Tensor] = []
        for w, layer in zip(reads, self.decoder, strict=True):
            weights += [layer.read.scale, layer.read.bias, w.t()]
            weights += [layer.kept.scale, layer.kept.bias, layer.kept.product.weight.t()]
        contexts, hiddens = AssociativeDecoder.apply(
            self._product(words, of_word),
            self._product(words, asking[:, d:]).to(words.dtype),
            encoded.start,
            encoded.values,
            encoded.keys,
            encoded.values.new_zeros(encoded.mask.shape).masked_fill(~encoded.mask, -torch.inf),
            self.attention_vector,
            asking[:, :d].t(),
            self.dtype,
            *weights,
        )
        return contexts.transpose(0, 1), hiddens.transpose(0, 1)

    def alphas(self, encoded: Annotations, tgt: Tensor, inject: Inject | None = None) -> Tensor:
        return torch.stack([alpha for *_, alpha in self._steps(encoded, tgt, inject)], 1)

    def embed(self, ids: Tensor) -> Tensor:
        words: Tensor = self.embedding(ids)
        return words

    def _before_output(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        inputs = torch.cat([self._drop(self.embedding(prev)), hidden, context], -1)
        projection = self._product(inputs, self.before_output.weight) + self.before_output.bias
        return self._drop(torch.tanh(projection))

    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        features = self._before_output(prev, hidden, context)
        if self.output is not None:
            return self.output(features)
        return F.linear(features, self.embedding.weight, self.output_bias)

    def limited_to(self, words: Tensor) -> DeepLAU:
        clone = copy.copy(self)
        output = product(self.embedding.weight.detach()[words], self.output_bias.detach()[words])
        clone.output = limited(output, words, self.vocab_size)
        return clone

    def loss(self, src: Tensor, src_len: Tensor, tgt: Tensor, smoothing: float = 0.0) -> Tensor:
        contexts, hiddens = self.forced(self.encode(src, src_len), tgt)
        real = tgt != PAD
        features = self._before_output(shift(tgt, BOS)[real], hiddens[real], contexts[real])
        total: Tensor = OutputLoss.apply(
            features, self.embedding.weight, self.output_bias, tgt[real], smoothing, self.dtype
        )
        return total
