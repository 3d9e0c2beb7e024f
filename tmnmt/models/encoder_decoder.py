"""What a Transformer (Vaswani et al. 2017) and a student have in common: the encoder, the decoder's
attention over the source and its feed-forward parts, embeddings and the read-out. They differ in
what a position of the decoder knows of the words before it. By default layer norms come before
every part, and one table of embeddings serves source, target and output; models of Marian have
layer norms after every part, and may have tables of their own.

Memories match with the input of the last feed-forward layer (`context`: of the vectors a decoder
has, it finds the right word among retrieved pairs best) and mix into the sum that the final norm
reads (`hidden`). That sum is brought to a mean square of 1. The norm takes it as it takes the sum
itself, and sums of several positions can be mixed.

    d: hidden size    f: feed-forward size    H: heads    k: d / H    B: rows
    S: source length    T: target length
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, Protocol, Self, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tmnmt.compiled.kernels import (
    Array,
    NormWeights,
    Spans,
    attend_to_source,
    attend_within,
    can_be_compiled,
    read_out,
)
from tmnmt.models.base import Columns, Trainable, shift
from tmnmt.models.decoding import check_int8, for_decoding
from tmnmt.models.int8 import Int8Product, Int8Weight
from tmnmt.models.products import Exact, Product, Rounded, product
from tmnmt.models.recurrence import Linear, OutputLoss
from tmnmt.models.transformer_state import (
    PADDED,
    EncodedSource,
    Padded,
    Unpadded,
    bias_of,
)
from tmnmt.models.transformer_step import LEVEL, CompiledStep, Int8Step
from tmnmt.models.transformer_step import Part as CompiledPart
from tmnmt.models.weights import reduced_copy
from tmnmt.vocab import BOS, PAD

S = TypeVar("S")  # a decoder's state
Norm = Literal["pre", "post"]
Positions = Literal["vaswani", "marian"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "swish": F.silu,
    "gelu": F.gelu,
}
Activation = Literal["relu", "swish", "gelu"]


class EncoderDecoder(Trainable[EncodedSource, S]):
    """d = l = `hidden`, a multiple of twice `heads`. Products are made in `dtype` where it is set,
    all else in fp32. A subclass says what its decoder layers are (`_decoder_layer`), and how they
    read the words before a position: all at once (`_read_past`), step by step (`start`, `step`,
    `reordered`), and in a compiled step (`_past_part`)."""

    shares_encoded = True
    # for_decoding: its layers, None: output
    products: dict[nn.Module | None, Product] | None = None
    # for_decoding, on a CPU in fp32 but for the inside of products
    compiled: CompiledStep | Int8Step | None = None
    norms: Mapping[nn.LayerNorm, NormWeights] = MappingProxyType({})  # for_decoding, likewise
    # the weights of products by name, of a model that was stored in int8
    int8: Mapping[str, Int8Weight] = MappingProxyType({})
    output_int8: Int8Weight | None = None  # for_decoding in int8
    _columns: Columns | None = None  # limited_to
    _columns_bias: Tensor | None = None  # limited_to, in another precision

    def __init__(
        self,
        vocab_size: int,
        hidden: int = 256,
        feed_forward: int = 1024,
        heads: int = 4,
        encoder_layers: int = 6,
        decoder_layers: int = 2,
        dropout: float = 0.1,
        norm: Norm = "pre",
        activation: Activation = "relu",
        scaled: bool = True,
        source_words: int = 0,
        tied: bool = True,
        positions: Positions = "vaswani",
    ) -> None:
        """vocab_size: how many words there are.
        hidden: the hidden size d, a multiple of twice `heads`.
        feed_forward: the feed-forward size f.
        heads: how many heads an attention has.
        encoder_layers: how many layers the encoder has.
        decoder_layers: how many layers the decoder has.
        dropout: the share of numbers that training leaves out, from 0 to 1.
        norm: "pre" for a layer norm before every part, "post" for one after it.
        activation: the function inside the feed-forward parts.
        scaled: whether embeddings are multiplied by sqrt(d).
        source_words: how many words a source vocabulary of its own has; 0 where both sides share
        one.
        tied: whether the output reads the embeddings of the target; otherwise it has a table of its
        own.
        positions: the sinusoids as Vaswani et al. 2017 print them, or as Marian computes them
        (`_sinusoids`); a model that Marian has trained needs the latter.

        Raises ValueError for a norm, an activation or positions that are not there, or sizes that
        do not fit."""
        super().__init__()
        if norm not in ("pre", "post") or activation not in ACTIVATIONS:
            raise ValueError(f"norm {norm!r} or activation {activation!r} is unknown")
        if positions not in ("vaswani", "marian"):
            raise ValueError(f"positions {positions!r} are unknown")
        if hidden % (2 * heads):
            raise ValueError(f"hidden is {hidden}, which is no multiple of twice {heads} heads")
        self.positions = positions
        self.norm, self.activation = norm, ACTIVATIONS[activation]
        self.scale = math.sqrt(hidden) if scaled else 1.0
        self.vocab_size = vocab_size
        self.word_size = hidden
        self.hidden_size = hidden
        self.context_size = hidden
        self.heads, self.dropout = heads, dropout
        self.embedding = nn.Embedding(vocab_size, hidden, padding_idx=PAD)
        self.source = nn.Embedding(source_words, hidden, padding_idx=PAD) if source_words else None
        self.output = nn.Parameter(torch.empty(vocab_size, hidden)) if not tied else None
        layers = nn.ModuleList(EncoderLayer(hidden, feed_forward) for _ in range(encoder_layers))
        self.encoder = cast("Sequence[EncoderLayer]", layers)
        self.encoder_norm = nn.LayerNorm(hidden) if norm == "pre" else None
        layers = nn.ModuleList(self._decoder_layer(feed_forward) for _ in range(decoder_layers))
        self.decoder = cast("Sequence[SourceReader]", layers)
        self.decoder_norm = nn.LayerNorm(hidden) if norm == "pre" else None
        self.output_bias = nn.Parameter(torch.zeros(vocab_size))
        self._positions = torch.empty(0, hidden)
        self.reset_parameters()

    @abstractmethod
    def _decoder_layer(self, feed_forward: int) -> nn.Module:
        """A layer of the decoder that knows nothing yet, a `SourceReader`."""

    @abstractmethod
    def _read_past(self, number: int, x: Tensor, dtype: torch.dtype) -> Tensor:
        """x (B, T, d), with what every position knows of itself and of those before it in the
        decoder's layer of this number. dtype: of the products' results."""

    @abstractmethod
    def _past_part(self, number: int) -> CompiledPart:
        """The same for one position, as the part of a compiled step."""

    def reset_parameters(self) -> None:
        """Glorot for products, those that end a part scaled down by depth; 1/sqrt(size) for the
        shared embedding."""
        depth = 2 * len(self.encoder) + 3 * len(self.decoder)
        tables = [t for t in (self.embedding, self.source) if t is not None]
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2 and not name.startswith(("embedding", "source", "output")):
                nn.init.xavier_uniform_(
                    parameter, gain=depth**-0.5 if name.endswith("out.weight") else 1.0
                )
        for weight in [
            *(t.weight for t in tables),
            *([] if self.output is None else [self.output]),
        ]:
            nn.init.normal_(weight, std=self.hidden_size**-0.5)
        with torch.no_grad():
            for table in tables:
                table.weight[PAD] = 0

    def for_decoding(self, dtype: torch.dtype | None = None) -> Self:
        """The same parameters, in evaluation mode and packed for products, which alone have the
        weights that they read. It learns nothing, and follows no change of the parameters.

        dtype: the type of the products; None takes their own precision, and int8 takes whole
        numbers, with results in fp32, on the CPU."""
        linears = {
            name: layer for name, layer in self.named_modules() if isinstance(layer, nn.Linear)
        }
        in_int8 = dtype == torch.int8
        clone = copy.copy(self.eval())
        clone.products, clone.compiled, clone.norms, clone.int8 = None, None, {}, {}
        clone = reduced_copy(clone, [f"{name}.weight" for name in linears])
        clone.int8 = {} if in_int8 else self.int8
        clone.dtype = None if in_int8 else dtype
        positive = {
            layer.inner
            for layer in self.modules()
            if isinstance(layer, FeedForward) and self.activation is F.relu
        }
        if in_int8:
            clone.output_int8 = self._int8_weight(*self._output_named)
        clone.products = {
            clone.get_submodule(name): Int8Product.build(
                self._int8_weight(f"{name}.weight", self._weight(layer)),
                layer.bias,
                layer in positive,
            )
            if in_int8
            else product(self._weight(layer), layer.bias.detach(), dtype, layer in positive)
            for name, layer in linears.items()
        }
        clone.products[None] = clone._output(slice(None))
        clone.compiled = clone._compiled_step()
        if clone.compiled is not None:
            norms = [layer for layer in clone.modules() if isinstance(layer, nn.LayerNorm)]
            clone.norms = {norm: NormWeights.of(norm) for norm in norms}
        return clone

    def _weight(self, layer: nn.Linear) -> Tensor:
        """The weight of a layer, which a backbone that decodes has in its product alone."""
        if self.products is None:
            return layer.weight.detach()
        layer_product = self.products[layer]
        if not isinstance(layer_product, Exact):
            raise TypeError("these weights are rounded")
        return layer_product.weight

    def in_bytes(self) -> Self:
        """The same, packed for products in int8, with what is multiplied in 8 bits in place of 16:
        for states whose direction is read, not for what a model says."""
        clone = copy.copy(self)
        clone.products = {
            layer: replace(layer_product, in_bytes=True)
            if isinstance(layer_product, Int8Product)
            else layer_product
            for layer, layer_product in (self.products or {}).items()
        }
        return clone

    def stored_int8(self) -> dict[str, Int8Weight]:
        """Those weights by name that were stored in int8 and have not changed."""
        now = self.state_dict()
        return {
            name: stored
            for name, stored in self.int8.items()
            if torch.equal(stored.exact(), now[name].cpu())
        }

    def _int8_weight(self, name: str, weight: Tensor) -> Int8Weight:
        """As it was stored, where it is still that; else rounded."""
        stored = self.int8.get(name)
        if stored is not None and torch.equal(stored.exact(), weight):
            return stored
        return Int8Weight.rounded(weight.detach())

    def _compiled_step(self) -> CompiledStep | Int8Step | None:
        """None where the parameters are no numbers of fp32 in a CPU's memory."""
        table = self.embedding.weight.detach()
        if table.device.type != "cpu" or table.dtype != torch.float32:
            return None
        parts = []
        for number, layer in enumerate(self.decoder):
            cross, feed_forward = layer.cross, layer.feed_forward
            inner: Product = partial(self._inner, feed_forward)
            if self.activation is F.relu:  # which is in the product
                (inner,) = self._in_fp32(feed_forward.inner)
            parts += [
                self._past_part(number),
                CompiledPart(
                    "source", NormWeights.of(cross.norm), *self._in_fp32(cross.query, cross.out)
                ),
                CompiledPart(
                    "feed-forward",
                    NormWeights.of(feed_forward.norm),
                    inner,
                    *self._in_fp32(feed_forward.out),
                ),
            ]
        words = Array.of("embeddings", table)
        final = NormWeights.of(self.final_norm)
        step = CompiledStep(parts, words, self.scale, self.heads, self.norm == "pre", final)
        return Int8Step.build(step) or step

    def _in_fp32(self, *layers: nn.Linear) -> list[Product]:
        """Their products as packed, with results in fp32."""
        products = [self.products[layer] for layer in layers] if self.products is not None else []
        return [
            layer_product.in_fp32 if isinstance(layer_product, Rounded) else layer_product
            for layer_product in products
        ]

    def limited_to(self, words: Tensor) -> Self:
        clone = copy.copy(self)
        columns = clone._columns = Columns.build(words, self.vocab_size)
        clone.products = {**(self.products or {}), None: self._output(columns.words)}
        if self.dtype is not None:
            clone._columns_bias = self.output_bias.detach()[columns.words]
        return clone

    @property
    def columns(self) -> Columns | None:
        return self._columns

    def _output(self, words: Tensor | slice) -> Product:
        """The read-out's product with rows of the output table; in another precision the bias is
        added after it."""
        if self.output_int8 is not None:
            rows = words if isinstance(words, Tensor) else None
            return Int8Product.build(self.output_int8, self.output_bias, rows=rows)
        bias = None if self.dtype is not None else self.output_bias.detach()[words]
        return product(self.output_table.detach()[words], bias, self.dtype)

    def _linear(self, layer: nn.Linear, x: Tensor) -> Tensor:
        """layer(x), in the precision of the products."""
        if self.products is not None:
            return self.products[layer](x)
        if self.dtype is None:
            return F.linear(x, layer.weight, layer.bias)
        result: Tensor = Linear.apply(x, layer.weight, layer.bias, self.dtype)
        return result

    def _drop(self, x: Tensor) -> Tensor:
        return _dropout(x, self.dropout) if self.training and self.dropout else x

    @property
    def final_norm(self) -> nn.LayerNorm:
        """What the read-out applies to the last sum: of norms after every part the last one."""
        norm = self.decoder_norm
        return norm if norm is not None else self.decoder[-1].feed_forward.norm

    def _final_normed(self, hidden: Tensor) -> Tensor:
        """`final_norm` of it; where the backbone decodes, by compiled code."""
        if self.compiled is None or hidden.dim() != 2 or not can_be_compiled(hidden):
            normed: Tensor = self.final_norm(hidden)
            return normed
        return self.compiled.final_norm.normed(hidden.contiguous())

    @property
    def output_table(self) -> Tensor:
        """(V, d)"""
        return self._output_named[1]

    @property
    def _output_named(self) -> tuple[str, Tensor]:
        """With the name of the parameter."""
        tied = "embedding.weight", self.embedding.weight
        return tied if self.output is None else ("output", self.output)

    def _is_compiled(self, x: Tensor) -> bool:
        """Whether compiled code takes over what lies between products: of a backbone as it decodes,
        in fp32 on a CPU."""
        return bool(self.norms) and self.dtype is None and can_be_compiled(x)

    def _normed(self, norm: nn.LayerNorm, x: Tensor) -> Tensor:
        """The layer norm of x (..., d)."""
        if not self._is_compiled(x):
            result: Tensor = norm(x)
            return result
        return self.norms[norm].normed(x.contiguous().view(-1, x.shape[-1])).view_as(x)

    def _part_input(self, part: Part, x: Tensor) -> Tensor:
        """What a part reads of the sum so far."""
        return self._normed(part.norm, x) if self.norm == "pre" else x

    def _part_output(self, part: HasNorm, x: Tensor) -> Tensor:
        """The sum with what a part has added."""
        return x if self.norm == "pre" else self._normed(part.norm, x)

    def _with_part(self, part: HasNorm, x: Tensor, added: Tensor) -> Tensor:
        """x with what a part adds. What compiled code does so is done in the place of x."""
        if not self._is_compiled(x):
            return self._part_output(part, x + added)
        if self.norm == "pre":
            return x.add_(added)
        flat, flat_added = (y.contiguous().view(-1, y.shape[-1]) for y in (x, added))
        return self.norms[part.norm](flat, flat_added, flat).view_as(x)

    def _embed(self, table: nn.Embedding, ids: Tensor, start: int = 0) -> Tensor:
        """Scaled embeddings plus positions start, start + 1, …: (B, T) -> (B, T, d)."""
        words = F.embedding(ids, table.weight, PAD) * self.scale
        return self._drop(words + self._sinusoids(start + ids.shape[1], words)[start:])

    def _sinusoids(self, length: int, template: Tensor) -> Tensor:
        """Positions 0 to length - 1, all sines first, then all cosines: (length, d). The slowest
        wave has the rate 1/10,000 in Marian, one step more than that in Vaswani et al. 2017."""
        if len(self._positions) < length or self._positions.device != template.device:
            half = self.hidden_size // 2
            steps = half - 1 if self.positions == "marian" else half
            rate = torch.exp(
                torch.arange(half, device=template.device) * (-math.log(10_000.0) / steps)
            )
            angle = torch.arange(max(length, 256), device=template.device)[:, None] * rate
            self._positions = torch.cat([angle.sin(), angle.cos()], 1)
        return self._positions[:length].to(template.dtype)

    def _split(self, x: Tensor) -> Tensor:
        """(B, T, d) -> (B, H, T, k)."""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def _attend(self, q: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> Tensor:
        """q (B, H, T, k), keys and values (B, H, S, k), bias to be added to the energies -> (B, T,
        d). Learning is faster in two plain products, all else in one piece."""
        if not q.requires_grad:
            attended = F.scaled_dot_product_attention(q, keys, values, attn_mask=bias)
            return attended.transpose(1, 2).flatten(2)
        energy = (q * q.shape[-1] ** -0.5) @ keys.transpose(2, 3)
        if bias is not None:
            energy = energy + bias
        return (torch.softmax(energy, -1) @ values).transpose(1, 2).flatten(2)

    def _inner(self, layer: FeedForward, x: Tensor) -> Tensor:
        """(..., d) -> (..., f)"""
        inner = self._linear(layer.inner, x)
        if self.products is None or self.activation is not F.relu:
            inner = self.activation(inner)
        return inner

    def _feed_forward(self, layer: FeedForward, x: Tensor) -> Tensor:
        return self._linear(layer.out, self._inner(layer, x))

    def _self_attended(
        self,
        part: Attention,
        x: Tensor,
        bias: Tensor,
        laid_out: Padded | Unpadded,
        spans: Spans | None = None,
        causal: bool = False,
    ) -> Tensor:
        """x, laid out so, with what its positions read of each other; by compiled code where their
        spans are told."""
        qkv = self._linear(part.qkv, self._part_input(part, x))
        if spans is not None:
            flat = qkv.view(-1, qkv.shape[-1])
            attended = attend_within(flat, spans, self.heads, causal).view_as(x)
            return self._with_part(part, x, self._linear(part.out, attended))
        qkv = laid_out.pad(qkv)
        q, keys, values = (self._split(chunk) for chunk in qkv.chunk(3, -1))
        attended = laid_out.unpad(self._attend(q, keys, values, bias))
        return self._with_part(part, x, self._drop(self._linear(part.out, attended)))

    def encode(self, src: Tensor, src_len: Tensor) -> EncodedSource:
        mask = torch.arange(src.shape[1], device=src.device) < src_len[:, None]  # (B, S)
        table = self.source if self.source is not None else self.embedding
        laid_out = (
            PADDED if self.products is None or not mask.is_cpu else Unpadded.where_it_pays(mask)
        )
        x = laid_out.unpad(self._embed(table, src))
        spans = laid_out.spans(mask) if self._is_compiled(x) else None
        bias = bias_of(mask, self.dtype or x.dtype)
        for layer in self.encoder:
            x = self._self_attended(layer.attention, x, bias, laid_out, spans)
            feed_forward = layer.feed_forward
            added = self._feed_forward(feed_forward, self._part_input(feed_forward, x))
            x = self._with_part(feed_forward, x, self._drop(added))
        x = self._normed(self.encoder_norm, x) if self.encoder_norm is not None else x
        keys_values = [
            laid_out.pad(self._linear(layer.cross.keys_values, x)).chunk(2, -1)
            for layer in self.decoder
        ]
        split = [(self._split(k).contiguous(), self._split(v).contiguous()) for k, v in keys_values]
        return EncodedSource(tuple(k for k, _ in split), tuple(v for _, v in split), mask)

    def _read_source(
        self, number: int, x: Tensor, encoded: EncodedSource
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The parts of a decoder layer behind what it knows of earlier words, for one position:
        x (R, 1, d) -> what the layer gives, what its feed-forward part reads, and the sum behind
        that part, each (R, 1, d). `encoded` may hold one row for several consecutive rows."""
        layer = self.decoder[number]
        cross, sentences = layer.cross, len(encoded.mask)
        q = self._linear(cross.query, self._part_input(cross, x))
        q = q.view(sentences, -1, self.hidden_size)
        source = encoded.keys[number], encoded.values[number], encoded.bias
        attended = self._attend(self._split(q), *source)
        x = self._part_output(cross, x + self._linear(cross.out, attended).view_as(x))
        query = self._part_input(layer.feed_forward, x)
        total = x + self._feed_forward(layer.feed_forward, query)
        return self._part_output(layer.feed_forward, total), query, total

    def embed(self, ids: Tensor) -> Tensor:
        words: Tensor = self.embedding(ids)
        return words

    def readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        """Logits; y_{t-1} and c_t are in h already."""
        normed = self._final_normed(hidden)
        if self.products is None:
            return F.linear(normed, self.output_table, self.output_bias)
        logits = self.products[None](normed)
        if self.dtype is None:
            return logits
        bias = self.output_bias if self._columns_bias is None else self._columns_bias
        return logits.to(normed.dtype).add_(bias)

    def log_readout(self, prev: Tensor, hidden: Tensor, context: Tensor) -> Tensor:
        output = self.products[None] if self.products is not None else None
        is_compiled = self.compiled is not None and hidden.dim() == 2 and can_be_compiled(hidden)
        if self.compiled is None or not is_compiled or not isinstance(output, Int8Product):
            return super().log_readout(prev, hidden, context)
        return read_out(self.compiled.final_norm, output.panels, hidden.contiguous())

    def forced(self, encoded: EncodedSource, tgt: Tensor) -> tuple[Tensor, Tensor]:
        query, total = self._forced(encoded, tgt)
        return query, level_of(total)

    def alphas(self, encoded: EncodedSource, tgt: Tensor) -> Tensor:
        """The mean of the heads of the last layer but one, which is nearest to an alignment (Garg
        et al. 2019). Of two layers it is the last one's: the first often looks at the word
        before (eval/results/place-codes.md)."""
        layers = len(self.decoder)
        layer = max(1, layers - 2) if layers > 1 else 0
        q, keys = self._queries_along(encoded, tgt, layer), encoded.keys[layer]
        energy = (q * q.shape[-1] ** -0.5) @ keys.transpose(2, 3)
        weights = torch.softmax(energy + encoded.bias, -1)
        return weights.float().mean(1)

    def _forced(self, encoded: EncodedSource, tgt: Tensor) -> tuple[Tensor, Tensor]:
        """What the last feed-forward part reads at every position of a known target, and the sum
        behind it, (B, T, d) each."""
        x = total = inputs = self._embed(self.embedding, shift(tgt, BOS))
        spans = self._target_spans(tgt, x)
        for number in range(len(self.decoder)):
            x = self._read_past(number, x, encoded.keys[0].dtype)
            x, inputs, total = self._read_source_along(number, x, encoded, spans)
        return inputs, total

    def _queries_along(self, encoded: EncodedSource, tgt: Tensor, layer: int) -> Tensor:
        """What a layer asks the source with at every position of a known target, (B, H, T, k).
        Nothing behind it is computed."""
        x = self._embed(self.embedding, shift(tgt, BOS))
        spans = self._target_spans(tgt, x)
        for number in range(layer):
            x = self._read_past(number, x, encoded.keys[0].dtype)
            x, _, _ = self._read_source_along(number, x, encoded, spans)
        x = self._read_past(layer, x, encoded.keys[0].dtype)
        cross = self.decoder[layer].cross
        return self._split(self._linear(cross.query, self._part_input(cross, x)))

    def _target_spans(self, tgt: Tensor, x: Tensor) -> Spans | None:
        """Where the positions of known targets stand, for compiled code."""
        return Spans.of_rows(*tgt.shape) if self._is_compiled(x) else None

    def _read_source_along(
        self, number: int, x: Tensor, encoded: EncodedSource, spans: Spans | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `_read_source`, for all positions of known targets, x (B, T, d)."""
        layer = self.decoder[number]
        cross = layer.cross
        query = self._linear(cross.query, self._part_input(cross, x))
        if spans is not None:
            flat = query.view(-1, self.hidden_size)
            context = attend_to_source(flat, spans, encoded.source, number, self.heads)
            attended = context.view_as(x)
        else:
            source = encoded.keys[number], encoded.values[number], encoded.bias
            attended = self._attend(self._split(query), *source)
        x = self._with_part(cross, x, self._drop(self._linear(cross.out, attended)))
        inputs = self._part_input(layer.feed_forward, x)
        total = x + self._drop(self._feed_forward(layer.feed_forward, inputs))
        return self._part_output(layer.feed_forward, total), inputs, total

    def loss(self, src: Tensor, src_len: Tensor, tgt: Tensor, smoothing: float = 0.0) -> Tensor:
        """Summed cross-entropy in nats of tgt (B, T), padded with 0."""
        _, hiddens = self._forced(self.encode(src, src_len), tgt)
        real = (tgt != PAD).flatten().nonzero()[:, 0]
        hidden, ids = self.final_norm(hiddens.flatten(0, 1)[real]), tgt.flatten()[real]
        total: Tensor = OutputLoss.apply(
            hidden, self.output_table, self.output_bias, ids, smoothing, self.dtype
        )
        return total


class Attention(nn.Module):
    """Parameters of self-attention: queries, keys and values in one product."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)


class CrossAttention(nn.Module):
    """Parameters of attention over the source."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.query = nn.Linear(d, d)
        self.keys_values = nn.Linear(d, 2 * d)
        self.out = nn.Linear(d, d)


class FeedForward(nn.Module):
    """Parameters of the feed-forward part."""

    def __init__(self, d: int, f: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.inner = nn.Linear(d, f)
        self.out = nn.Linear(f, d)


class EncoderLayer(nn.Module):
    """Self-attention, feed-forward."""

    def __init__(self, d: int, f: int) -> None:
        super().__init__()
        self.attention = Attention(d)
        self.feed_forward = FeedForward(d, f)


class HasNorm(Protocol):
    """A part of a layer, with its norm."""

    norm: nn.LayerNorm


class SourceReader(Protocol):
    """What every layer of a decoder ends with: attention over the source, feed-forward."""

    cross: CrossAttention
    feed_forward: FeedForward


Part = Attention | CrossAttention | FeedForward  # of a layer


def level_of(total: Tensor) -> Tensor:
    """A sum at a mean square of 1. As it is, it is ten times as large, and gates that read it would
    stand at their ends.

    total: (..., d), the sum."""
    return total * (total.square().mean(-1, keepdim=True) + LEVEL).rsqrt()


def _dropout(x: Tensor, p: float) -> Tensor:
    """Zeros with probability p, to 1/256 on the CPU, where one drawn word decides eight numbers:
    drawing them one by one took a tenth of the training time."""
    if x.is_cuda:
        return F.dropout(x, p)
    limit = max(round(p * 256), 1)
    words = np.random.SFC64(int(torch.randint(2**62, ())))
    noise = torch.from_numpy(words.random_raw(-(-x.numel() // 8)).view(np.uint8))[: x.numel()]
    return x * (noise >= limit).to(x.dtype).mul_(256 / (256 - limit)).view_as(x)


@for_decoding.register(EncoderDecoder)
def _packed(backbone: EncoderDecoder[Any], dtype: torch.dtype | None = None) -> EncoderDecoder[Any]:
    check_int8(dtype, all(parameter.is_cpu for parameter in backbone.parameters()))
    return backbone.for_decoding(dtype)
