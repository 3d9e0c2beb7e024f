"""RNNsearch keeps the backbone's laws, and its hand-written gradients are right."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tmnmt.models.base import shift
from tmnmt.models.recurrence import OutputLoss
from tmnmt.models.rnnsearch import RNNsearch
from tmnmt.vocab import BOS, PAD


def tiny(seed: int = 0) -> RNNsearch:
    torch.manual_seed(seed)
    return RNNsearch(20, embedding=4, hidden=6, attention=5, dropout=0.0)


def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    src = torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0], [8, 9, 2, 0]])
    tgt = torch.tensor([[10, 11, 2, 0, 0], [12, 13, 14, 15, 2], [16, 2, 0, 0, 0]])
    return src, torch.tensor([4, 2, 3]), tgt


def test_step_repeated_equals_forced() -> None:
    model, (src, src_len, tgt) = tiny(), batch()
    with torch.no_grad():
        encoded = model.encode(src, src_len)
        contexts, hiddens = model.forced(encoded, tgt)
        state = model.start(encoded)
        for t, prev in enumerate(shift(tgt, BOS).unbind(1)):
            state, context, hidden = model.step(prev, state, encoded)
            torch.testing.assert_close(context, contexts[:, t], atol=1e-5, rtol=0)
            torch.testing.assert_close(hidden, hiddens[:, t], atol=1e-5, rtol=0)


def test_gradients_equal_numerical_ones_in_double() -> None:
    model, (src, src_len, tgt) = tiny().double(), batch()
    names = [n for n, p in model.named_parameters()]
    values = tuple(p.detach().clone().requires_grad_() for p in model.parameters())

    def loss(*parameters: torch.Tensor) -> torch.Tensor:
        named = dict(zip(names, parameters, strict=True))
        out: torch.Tensor = torch.func.functional_call(model, named, (src, src_len, tgt))
        return out

    model.forward = lambda *args: model.loss(*args)
    assert torch.autograd.gradcheck(loss, values, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_output_loss_equals_torch(smoothing: float) -> None:
    torch.manual_seed(1)
    hidden, w, b = (
        torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((700, 3), (9, 3), (9,))
    )
    ids = torch.randint(9, (700,))  # 0 is padding
    ours = OutputLoss.apply(hidden, w, b, ids, smoothing, None)
    theirs = F.cross_entropy(
        hidden @ w.t() + b, ids, reduction="sum", ignore_index=0, label_smoothing=smoothing
    )
    torch.testing.assert_close(ours, theirs)
    for mine, other in zip(
        torch.autograd.grad(ours, (hidden, w, b)),
        torch.autograd.grad(theirs, (hidden, w, b)),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)


def test_padding_changes_nothing() -> None:
    model, (src, src_len, tgt) = tiny(), batch()
    alone = sum(
        model.loss(
            src[i : i + 1, : src_len[i]],
            src_len[i : i + 1],
            tgt[i : i + 1, : int((tgt[i] != PAD).sum())],
        )
        for i in range(3)
    )
    torch.testing.assert_close(model.loss(src, src_len, tgt), alone)


def test_bf16_products_stay_close() -> None:
    model, (src, src_len, tgt) = tiny(), batch()
    exact = model.loss(src, src_len, tgt)
    model.dtype = torch.bfloat16
    low = model.loss(src, src_len, tgt)
    assert low != exact
    torch.testing.assert_close(low, exact, rtol=0.02, atol=0)
