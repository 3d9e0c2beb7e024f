"""The two loops of DeepLAU with their gradients written out: a layer of the encoder, and the
attending decoder. As in `recurrence`, a step does only what the next step needs.

A unit reads x and keeps the state h (Wang et al. 2017, see `deeplau`), with 5 and 4 products side
by side, each normalised by itself:

    R = norm(x W_read)     K = norm(h W_kept)
    r, z, g = sigmoid(R + K)        of their first three
    n = tanh((1 - r) R_4 + r K_4)
    m = h + z (n - h)
    h' = m + g (R_5 - m)"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tmnmt.models.recurrence import Attention, product_in

EPSILON = 1e-5  # of layer normalisation, as in torch
Saved = tuple[Tensor, ...]


class Norm:
    """The layer normalisation of several products at once, step by step: (B, parts d) -> (B,
    parts, d); and its gradients. `dtype`: of the products, None: the parameters' own.

    scale and bias: (parts, d)."""

    def __init__(self, scale: Tensor, bias: Tensor, dtype: torch.dtype | None) -> None:
        self.scale, self.bias, self.dtype = scale, bias, dtype
        self.steps: list[tuple[Tensor, Tensor]] = []  # what was normalised, and by how much

    def forward(self, product: Tensor) -> Tensor:
        product = product.to(self.scale.dtype).view(len(product), *self.scale.shape)
        normal, _, rstd = torch.native_layer_norm(product, product.shape[2:], None, None, EPSILON)
        self.steps.append((normal, rstd))
        return torch.addcmul(self.bias, normal, self.scale)

    def start_back(self) -> None:
        rows = len(self.steps[0][0])
        self.d_made = self.scale.new_empty(
            len(self.steps), rows, self.scale.numel(), dtype=self.dtype
        )  # gradients of all products
        self.unit_row = self.scale.new_ones(1, rows)
        self.d_scale, self.d_bias = self.scale.new_zeros(2, 1, self.scale.numel())

    def backward(self, t: int, grad: Tensor) -> Tensor:
        """Gradient of step t's result (B, parts, d) -> that of its products (B, parts d)."""
        normal, rstd = self.steps[t]
        of_scale = grad * normal
        self.d_bias.addmm_(self.unit_row, grad.flatten(1))
        self.d_scale.addmm_(self.unit_row, of_scale.flatten(1))
        projection = of_scale.mul_(self.scale).mean(-1, keepdim=True)
        grad = grad * self.scale
        grad = grad.sub_(grad.mean(-1, keepdim=True)).addcmul_(normal, projection, value=-1)
        self.d_made[t] = grad.mul_(rstd).flatten(1)
        return self.d_made[t]

    def gradients(self) -> tuple[Tensor, Tensor]:
        """Those of scale and bias, after the last `backward`."""
        return self.d_scale.view_as(self.scale), self.d_bias.view_as(self.scale)


class NormedProduct(Norm):
    """norm(x W), x (B, in), w (in, parts d); and its gradients."""

    def __init__(self, scale: Tensor, bias: Tensor, w: Tensor, dtype: torch.dtype | None) -> None:
        super().__init__(scale, bias, dtype)
        self.low = w if dtype is None else w.to(dtype)

    def product(self, x: Tensor) -> Tensor:
        return product_in(self.dtype, x, self.low)

    def input_gradient(self, t: int, grad: Tensor) -> Tensor:
        """Gradient of step t's result -> that of its x (B, in)."""
        return (self.backward(t, grad) @ self.low.t()).to(grad.dtype)

    def weight_gradient(self, x: Tensor) -> Tensor:
        """x of all steps (T B, in), after the last `back`."""
        d_products = self.d_made.flatten(0, 1)
        return (x.to(d_products.dtype).t() @ d_products).to(x.dtype)


def unit(input_products: Tensor, state_products: Tensor, state: Tensor) -> tuple[Tensor, Saved]:
    """R (B, 5, d), K (B, 4, d), h (B, d) -> h', and what its gradient needs."""
    gates = torch.sigmoid_(input_products[:, :3] + state_products[:, :3])
    r, z, g = gates.unbind(1)
    candidate = torch.lerp(input_products[:, 3], state_products[:, 3], r).tanh_()
    mixed = torch.lerp(state, candidate, z)
    new = torch.lerp(mixed, input_products[:, 4], g)
    return new, (
        gates,
        candidate,
        state_products[:, 3] - input_products[:, 3],
        candidate - state,
        input_products[:, 4] - mixed,
    )


def unit_back(grad: Tensor, saved: Saved) -> tuple[Tensor, Tensor, Tensor]:
    """Gradient of h' (B, d) -> those of R (B, 5, d), of K (B, 4, d), and of h by itself."""
    gates, candidate, difference, change, linear = saved
    r, z, g = gates.unbind(1)
    d_read = grad.new_empty(len(grad), 5, grad.shape[1])
    d_linear = torch.mul(grad, g, out=d_read[:, 4])
    d_mixed = grad - d_linear
    d_candidate = d_mixed * z
    d_before = torch.addcmul(d_candidate, d_candidate, candidate.square(), value=-1)  # of the tanh
    d_kept = grad.new_empty(len(grad), 4, grad.shape[1])
    d_across = torch.mul(d_before, r, out=d_kept[:, 3])
    torch.sub(d_before, d_across, out=d_read[:, 3])
    open_gates = torch.stack([d_before * difference, d_mixed * change, grad * linear], 1)
    d_gates = open_gates.mul_(torch.addcmul(gates, gates, gates, value=-1))
    d_read[:, :3] = d_gates
    d_kept[:, :3] = d_gates
    return d_read, d_kept, d_mixed - d_candidate


class AssociativeLayer(torch.autograd.Function):
    """A layer of the encoder, over all positions:

        read                     (S, B, 5d) x W_read, in any precision
        mask                     (S, B, 1)
        read_scale, read_bias    (5, d)
        scale, bias              (4, d)
        w                        (d, 4d) W_kept
        result                   states (S, B, d)

    A masked step keeps the state."""

    @staticmethod
    def forward(
        ctx: Any,
        input_products: Tensor,
        mask: Tensor,
        read_scale: Tensor,
        read_bias: Tensor,
        scale: Tensor,
        bias: Tensor,
        w: Tensor,
        dtype: torch.dtype | None,
    ) -> Tensor:
        reads = Norm(read_scale, read_bias, dtype)
        keeps = NormedProduct(scale, bias, w, dtype)
        state = scale.new_zeros(input_products.shape[1], scale.shape[1])
        states, saved = [], []
        for t in range(len(input_products)):
            state_products = keeps.forward(keeps.product(state))
            new, intermediates = unit(reads.forward(input_products[t]), state_products, state)
            saved.append(intermediates)
            state = torch.lerp(state, new, mask[t])
            states.append(state)
        result = torch.stack(states)
        ctx.save_for_backward(mask, result)
        ctx.reads, ctx.keeps, ctx.saved = reads, keeps, saved
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        mask, result = ctx.saved_tensors
        reads, keeps = ctx.reads, ctx.keeps
        reads.start_back()
        keeps.start_back()
        carry = torch.zeros_like(result[0])
        for t in range(len(result) - 1, -1, -1):
            grad = grads[0][t] + carry
            new = grad * mask[t]
            d_read, d_kept, old = unit_back(new, ctx.saved[t])
            reads.backward(t, d_read)
            carry = grad - new + old + keeps.input_gradient(t, d_kept)
        previous_states = torch.cat([torch.zeros_like(result[:1]), result[:-1]]).flatten(0, 1)
        dw = keeps.weight_gradient(previous_states)
        return reads.d_made, None, *reads.gradients(), *keeps.gradients(), dw, None


class AssociativeDecoder(torch.autograd.Function):
    """The decoder over a whole target, teacher-forced. What attends is the top layer's last state
    and y_{t-1}; what the first layer reads is y_{t-1} and c_t.

        words      (T, B, 5d) y_{t-1} times its part of the first W_read, in any precision
        queries    (T, B, a) y_{t-1} times its part of W_q
        start      (B, L, d)
        values     (B, S, d), keys (B, S, a), bias (B, S), v (a,), as in `Attention`
        w_query    (d, a)
        weights    of each layer scale and bias (5, d) and W_read (d, 5d), scale and bias (4, d)
                   and W_kept (d, 4d)
        result     contexts (T, B, d), states of the top layer (T, B, d)"""

    @staticmethod
    def forward(
        ctx: Any,
        words: Tensor,
        queries: Tensor,
        start: Tensor,
        values: Tensor,
        keys: Tensor,
        bias: Tensor,
        v: Tensor,
        w_query: Tensor,
        dtype: torch.dtype | None,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        attention = Attention(values, keys, bias, v, dtype)
        low_query = w_query if dtype is None else w_query.to(dtype)
        triples = zip(weights[::3], weights[1::3], weights[2::3], strict=True)
        norms = [NormedProduct(scale, bias, w, dtype) for scale, bias, w in triples]
        layers = list(zip(norms[::2], norms[1::2], strict=True))
        states, saved, contexts = list(start.unbind(1)), [], []
        layer_states: list[list[Tensor]] = [[] for _ in layers]
        for t in range(len(words)):
            query = queries[t] + product_in(dtype, states[-1], low_query)
            x = attention.read(query)
            contexts.append(x)
            step = []
            for number, (reads, keeps) in enumerate(layers):
                products = reads.product(x)
                input_products = reads.forward(products + words[t] if number == 0 else products)
                state_products = keeps.forward(keeps.product(states[number]))
                x, intermediates = unit(input_products, state_products, states[number])
                step.append(intermediates)
                states[number] = x
                layer_states[number].append(x)
            saved.append(step)
        c, *s = map(torch.stack, (contexts, *layer_states))
        ctx.save_for_backward(start, low_query, c, *s)
        ctx.layers, ctx.saved, ctx.attention, ctx.dtype = layers, saved, attention, dtype
        return c, s[-1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        start, low_query, c, *s = ctx.saved_tensors
        grad_c, grad_s = grads
        dtype, attention, layers = ctx.dtype, ctx.attention, ctx.layers
        for part in (attention, *(norm for layer in layers for norm in layer)):
            part.start_back()
        carry = [torch.zeros_like(start[:, 0]) for _ in layers]
        d_context, d_queries = torch.empty_like(c), grad_c.new_empty(*c.shape[:2], len(attention.v))
        for t in range(len(c) - 1, -1, -1):
            d_input = grad_s[t]
            for number in range(len(layers) - 1, -1, -1):
                reads, keeps = layers[number]
                d_read, d_kept, old = unit_back(carry[number] + d_input, ctx.saved[t][number])
                carry[number] = old + keeps.input_gradient(t, d_kept)
                d_input = reads.input_gradient(t, d_read)
            d_context[t] = grad_c[t] + d_input
            d_queries[t] = attention.backward(t, d_context[t])
            carry[-1] = carry[-1] + product_in(dtype, d_queries[t], low_query.t())
        previous_states = [
            torch.cat([first[None], x[:-1]]).flatten(0, 1)
            for first, x in zip(start.unbind(1), s, strict=True)
        ]
        weights: list[Tensor] = []
        for (reads, keeps), x, state in zip(layers, [c, *s[:-1]], previous_states, strict=True):
            weights += [*reads.gradients(), reads.weight_gradient(x.flatten(0, 1))]
            weights += [*keeps.gradients(), keeps.weight_gradient(state)]
        d_values, d_keys, dv = attention.gradients(d_context)
        dw = product_in(dtype, previous_states[-1].t(), d_queries.flatten(0, 1))
        d_start = torch.stack(carry, 1)
        return (
            layers[0][0].d_made,
            d_queries,
            d_start,
            d_values,
            d_keys,
            None,
            dv,
            dw,
            None,
            *weights,
        )
