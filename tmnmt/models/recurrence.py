"""The two loops of RNNsearch with their gradients written out: the bidirectional GRU and the
attending decoder.

Autograd would record some thirty operations a step. Here a step does only what the next step needs:
everything else (input projections, weight gradients, gradients of the annotations) is one large
product before or after the loop. Products run in `dtype` (bfloat16 in training), everything else in
the precision of the inputs.

Gates are in the order reset r, update z, candidate n:

    h' = (1 - z) n + z h    n = tanh(x_n + r (W_n h + b_n))
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

SMALLEST = 1e-38  # probability whose logarithm is taken


def column_sums(x: Tensor) -> Tensor:
    """The sums (n,) of columns, as a product, which is ten times as fast as a sum in bf16.

    x: (N, n), the matrix."""
    return (x.new_ones(1, len(x)) @ x)[0]


class Linear(torch.autograd.Function):
    """x W^T + b in `dtype`, for weights and a bias in any: (..., in) -> (..., out).

    Autograd's own casts and products take longer, above all its sum for the bias."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
        low, low_w = x.to(dtype), w.to(dtype)
        ctx.save_for_backward(low, low_w)
        ctx.kinds = x.dtype, w.dtype, b.dtype
        return F.linear(low, low_w, b.to(dtype))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, w = ctx.saved_tensors
        grad = grads[0].flatten(0, -2)
        dx = (grad @ w).view(x.shape)
        dw = grad.t() @ x.flatten(0, -2)
        gradients = dx, dw, column_sums(grad)
        return *(d.to(kind) for d, kind in zip(gradients, ctx.kinds, strict=True)), None


def product_in(dtype: torch.dtype | None, a: Tensor, b: Tensor) -> Tensor:
    """a @ b, made in a type and given in the precision of `a`.

    dtype: the type; None makes it as it is.
    a: the left matrix.
    b: the right matrix, which may be of the type already."""
    if dtype is None or a.dtype == torch.float64:
        return a @ b
    return (a.to(dtype) @ b.to(dtype)).to(a.dtype)


def gru_gates(x: Tensor, h: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gates r, z, n and the new state, each (..., d).

    x: (..., 3d), the input parts.
    h: (..., 3d), the recurrent parts.
    state: (..., d), the state."""
    d = state.shape[-1]
    rz = torch.sigmoid_(x[..., : 2 * d] + h[..., : 2 * d])
    r, z = rz[..., :d], rz[..., d:]
    n = torch.addcmul(x[..., 2 * d :], r, h[..., 2 * d :]).tanh_()
    return r, z, n, torch.lerp(n, state, z)


def _gru_back(
    grad: Tensor, r: Tensor, z: Tensor, n: Tensor, h_n: Tensor, state: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradient of the new state -> gradients of x (.., 3d), h (.., 3d), and of the old state by the
    update gate."""
    dn = grad * (1 - z) * (1 - n * n)
    dz = grad * (state - n) * z * (1 - z)
    dr = dn * h_n * r * (1 - r)
    return torch.cat([dr, dz, dn], -1), torch.cat([dr, dz, dn * r], -1), grad * z


class BidirectionalGRU(torch.autograd.Function):
    """x: (S, 2, B, 3d) projected inputs, the second direction already reversed in time; mask: (S,
    2, B, 1);
    w: (2, d, 3d); b: (2, 1, 3d) -> states (S, 2, B, d). A masked step keeps the state."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, mask: Tensor, w: Tensor, b: Tensor, dtype: torch.dtype | None
    ) -> Tensor:
        length, _, rows, _ = x.shape
        d = w.shape[1]
        low = w if dtype is None else w.to(dtype)
        state = x.new_zeros(2, rows, d)
        states, saved = [], []
        for t in range(length):
            h = product_in(dtype, state, low) + b
            r, z, n, new = gru_gates(x[t], h, state)
            saved.append((r, z, n, h[..., 2 * d :]))
            state = torch.lerp(state, new, mask[t])
            states.append(state)
        result = torch.stack(states)
        ctx.save_for_backward(mask, w, result)
        ctx.saved, ctx.dtype = saved, dtype
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        mask, w, result = ctx.saved_tensors
        grad_out, dtype, d = grads[0], ctx.dtype, w.shape[1]
        low = w.transpose(1, 2) if dtype is None else w.to(dtype).transpose(1, 2)
        zero, carry = torch.zeros_like(result[0]), torch.zeros_like(result[0])
        dx = result.new_empty(*result.shape[:-1], 3 * d)
        dh = torch.empty_like(dx)
        for t in range(result.shape[0] - 1, -1, -1):
            grad = grad_out[t] + carry
            new = grad * mask[t]
            r, z, n, h_n = ctx.saved[t]
            previous_state = result[t - 1] if t else zero
            dx[t], dh[t], old = _gru_back(new, r, z, n, h_n, previous_state)
            carry = grad - new + old + product_in(dtype, dh[t], low)
        previous = torch.cat([zero[None], result[:-1]]).transpose(0, 1).flatten(1, 2)  # (2, S*B, d)
        flat = dh.transpose(0, 1).flatten(1, 2)  # (2, S*B, 3d)
        dw = product_in(dtype, previous.transpose(1, 2), flat)
        return dx, None, dw, flat.sum(1, keepdim=True), None


class Attention:
    """What every step of a known target reads of the source, and what that has for gradients:

        alpha = softmax(v tanh(q + K))
        c     = alpha H

        values     (B, S, e) H
        keys       (B, S, a) K
        bias       (B, S) 0 or -inf
        v          (a,)

    tanh(x) = 2 u - 1 with u = sigmoid(2 x) costs a third and, in the softmax, leaves 2 v u."""

    def __init__(
        self, values: Tensor, keys: Tensor, bias: Tensor, v: Tensor, dtype: torch.dtype | None
    ) -> None:
        """values: (B, S, e), H.
        keys: (B, S, a), K.
        bias: (B, S), 0 or -inf.
        v: (a,), the vector.
        dtype: the type of the products; None takes that of the numbers."""
        low = [x if dtype is None else x.to(dtype) for x in (values, 2 * keys, v)]
        self.values, self.keys, self.low_v = low
        self.bias, self.v = bias, v
        self.steps: list[tuple[Tensor, Tensor]] = []  # u (B, S, a) and alpha (B, S)

    def read(self, query: Tensor) -> Tensor:
        """The context (B, e) of a step.

        query: (B, a), the query of the step."""
        low_query = query[:, None].to(self.keys.dtype)
        u = torch.sigmoid_(torch.add(self.keys, low_query, alpha=2))
        alpha = torch.softmax((u @ self.low_v).to(query.dtype) * 2 + self.bias, -1)
        self.steps.append((u, alpha))
        context = torch.bmm(alpha[:, None].to(self.values.dtype), self.values)[:, 0]
        return context.to(query.dtype)

    def start_back(self) -> None:
        self.d_keys = torch.zeros_like(self.keys)
        self.dv = torch.zeros_like(self.v)

    def backward(self, t: int, d_context: Tensor) -> Tensor:
        """The gradient of a step's query (B, a).

        t: the number of the step.
        d_context: (B, e), the gradient of its context."""
        u, alpha = self.steps[t]
        low = torch.bmm(self.values, d_context[:, :, None].to(self.values.dtype))
        d_alpha = low[..., 0].to(d_context.dtype)
        d_energy = alpha * (d_alpha - (alpha * d_alpha).sum(-1, keepdim=True))  # (B, S)
        low_energy = d_energy.to(u.dtype)
        self.dv += (low_energy.view(1, -1) @ u.view(-1, u.shape[-1])).view(-1)
        d_inner = torch.addcmul(u, u, u, value=-1).mul_(low_energy[..., None])  # (B, S, a)
        self.d_keys += d_inner
        return d_inner.sum(1) * (4 * self.v)

    def gradients(self, d_contexts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of values, keys and v, after the last `backward`.

        d_contexts: (T, B, e), the gradients of all contexts."""
        alphas = torch.stack([alpha for _, alpha in self.steps]).permute(1, 2, 0)  # (B, S, T)
        d_values = torch.bmm(alphas, d_contexts.transpose(0, 1))
        return d_values, self.d_keys.to(self.v.dtype) * (4 * self.v), 2 * self.dv


class AttendingDecoder(torch.autograd.Function):
    """The decoder over a whole target, teacher-forced (Bahdanau et al. 2015, conditional GRU):

        s'_t  = GRU1(s_{t-1}, y_{t-1})
        c_t   = Attention(W_q s'_t)
        s_t   = GRU2(s'_t, c_t)

        x          (T, B, 3d) projected y_{t-1}
        start      (B, d)
        w1, b1     (d, 3d), (3d,)
        w_state    (d, a + 3d) = [W_q, GRU2's recurrent part]
        b2         (3d,)
        w_context, b_context    (e, 3d), (3d,)
        result     contexts (T, B, e), states (T, B, d)

    values, keys, bias and v are those of `Attention`."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        start: Tensor,
        values: Tensor,
        keys: Tensor,
        bias: Tensor,
        w1: Tensor,
        b1: Tensor,
        w_state: Tensor,
        b2: Tensor,
        v: Tensor,
        w_context: Tensor,
        b_context: Tensor,
        dtype: torch.dtype | None,
    ) -> tuple[Tensor, Tensor]:
        a, d = v.shape[0], start.shape[1]
        low = [w if dtype is None else w.to(dtype) for w in (w1, w_state, w_context)]
        low_w1, low_state, low_context = low
        attention = Attention(values, keys, bias, v, dtype)
        state, saved, contexts, states = start, [], [], []
        for t in range(x.shape[0]):
            h1 = product_in(dtype, state, low_w1) + b1
            r1, z1, n1, middle = gru_gates(x[t], h1, state)
            projected = product_in(dtype, middle, low_state)
            context = attention.read(projected[:, :a])
            x2 = product_in(dtype, context, low_context) + b_context
            h2 = projected[:, a:] + b2
            r2, z2, n2, state = gru_gates(x2, h2, middle)
            saved.append((r1, z1, n1, h1[:, 2 * d :], middle, r2, z2, n2, h2[:, 2 * d :]))
            contexts.append(context)
            states.append(state)
        c, s = torch.stack(contexts), torch.stack(states)
        ctx.save_for_backward(start, w1, w_state, w_context, c, s)
        ctx.saved, ctx.attention, ctx.dtype = saved, attention, dtype
        return c, s

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        start, w1, w_state, w_context, c, s = ctx.saved_tensors
        grad_c, grad_s = grads
        dtype, d = ctx.dtype, start.shape[1]
        a = w_state.shape[1] - 3 * d
        low = [w if dtype is None else w.to(dtype) for w in (w1.t(), w_state.t(), w_context.t())]
        low_w1, low_state, low_context = low
        attention: Attention = ctx.attention
        attention.start_back()
        length = s.shape[0]
        dx, dx2 = torch.empty_like(s).repeat(1, 1, 3), torch.empty_like(s).repeat(1, 1, 3)
        dh1 = torch.empty_like(dx)
        d_state = s.new_empty(*s.shape[:2], a + 3 * d)
        d_context = torch.empty_like(c)
        carry = torch.zeros_like(start)
        for t in range(length - 1, -1, -1):
            r1, z1, n1, h1n, middle, r2, z2, n2, h2n = ctx.saved[t]
            dx2[t], d_state[t, :, a:], d_middle = _gru_back(
                grad_s[t] + carry, r2, z2, n2, h2n, middle
            )
            d_context[t] = grad_c[t] + product_in(dtype, dx2[t], low_context)
            d_state[t, :, :a] = attention.backward(t, d_context[t])
            d_middle = d_middle + product_in(dtype, d_state[t], low_state)
            previous = s[t - 1] if t else start
            dx[t], dh1[t], old = _gru_back(d_middle, r1, z1, n1, h1n, previous)
            carry = old + product_in(dtype, dh1[t], low_w1)
        middles = torch.stack([saved[4] for saved in ctx.saved]).flatten(0, 1)
        previous = torch.cat([start[None], s[:-1]]).flatten(0, 1)
        d_values, d_keys, dv = attention.gradients(d_context)
        flat1, flat_state, flat2 = dh1.flatten(0, 1), d_state.flatten(0, 1), dx2.flatten(0, 1)
        return (
            dx,
            carry,
            d_values,
            d_keys,
            None,
            product_in(dtype, previous.t(), flat1),
            flat1.sum(0),
            product_in(dtype, middles.t(), flat_state),
            flat_state[:, a:].sum(0),
            dv,
            product_in(dtype, c.flatten(0, 1).t(), flat2),
            flat2.sum(0),
            None,
        )


class OutputLoss(torch.autograd.Function):
    """Cross-entropy of hidden @ w.T + b against ids, in blocks of rows so that the logits stay in
    the cache.

    hidden: (N, h); w: (V, h); b: (V,); ids: (N,), 0 is padding and counts nothing -> summed loss in
    nats (label smoothing: a share `smoothing` of each target's mass spread evenly over the
    vocabulary). The gradient is made with the value, in one pass."""

    BLOCK = 128

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        w: Tensor,
        b: Tensor,
        ids: Tensor,
        smoothing: float,
        dtype: torch.dtype | None,
    ) -> Tensor:
        low_w, low_hidden, low_b = (t if dtype is None else t.to(dtype) for t in (w, hidden, b))
        precision = torch.promote_types(hidden.dtype, torch.float32)
        total, real = hidden.new_zeros(()), ids != 0
        grad = low_hidden.new_empty(hidden.shape[0], w.shape[0])  # of the logits: p at first
        for start in range(0, hidden.shape[0], OutputLoss.BLOCK):
            rows = slice(start, start + OutputLoss.BLOCK)
            logits = torch.addmm(low_b, low_hidden[rows], low_w.t())
            torch.softmax(logits, -1, out=grad[rows])
            # the mean of -log p is that of the target, and how far its logit stands above the mean
            if smoothing:
                margin = logits.gather(1, ids[rows, None])[:, 0].to(precision)
                margin -= logits.mean(1, dtype=precision)
                total += smoothing * (margin * real[rows]).sum()
        p = grad.gather(1, ids[:, None])[:, 0].to(precision).clamp_min(SMALLEST)
        total -= (p.log() * real).sum()
        # scatter_add_ copies all of bf16
        grad[torch.arange(len(ids), device=ids.device), ids] += smoothing - 1
        if smoothing:
            grad -= smoothing / w.shape[0]
        if not bool(real.all()):
            grad *= real[:, None]
        d_hidden = (grad @ low_w).to(hidden.dtype)
        dw = (low_hidden.t() @ grad).t().to(w.dtype)
        db = column_sums(grad).to(b.dtype)
        ctx.save_for_backward(d_hidden, dw, db)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        d_hidden, dw, db = ctx.saved_tensors
        return grads[0] * d_hidden, grads[0] * dw, grads[0] * db, None, None, None
