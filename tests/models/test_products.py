"""Products for decoding: weights that fp16 holds are kept in it, and give the same numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tmnmt.models import products
from tmnmt.models.decoding import for_decoding
from tmnmt.models.kinds import make
from tmnmt.models.products import product

SIZES: dict[str, dict[str, Any]] = {
    "rnnsearch": {"embedding": 16, "hidden": 24, "attention": 16},
    "transformer": {"hidden": 32, "feed_forward": 48, "heads": 2},
}


def in_fp16(*shape: int) -> Tensor:
    return torch.randn(shape).half().float()


@pytest.mark.parametrize("rows", [(1,), (5,), (3, 2), (2, 0)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_packed_product_is_the_product(rows: tuple[int, ...], bias: bool) -> None:
    weight, x = in_fp16(70, 30), torch.randn(*rows, 60)[..., ::2]
    added = torch.randn(70) if bias else None
    torch.testing.assert_close(
        product(weight, added)(x), F.linear(x, weight, added), atol=2e-5, rtol=0
    )


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_a_product_may_end_in_its_positive_part(dtype: torch.dtype | None) -> None:
    weight, added, x = in_fp16(70, 30), torch.randn(70), torch.randn(5, 30)
    for one in (weight, weight + 1e-7):  # packed, and not
        positive = product(one, added, dtype, relu=True)(x)
        assert torch.equal(positive, product(one, added, dtype)(x).relu())


def test_few_rows_are_not_rounded_to_bf16_before_their_product() -> None:
    """It takes longer, and is less exact: both ways end in bf16."""
    weight, x = in_fp16(70, 30), torch.randn(products.FEW_ROWS, 30)
    rounded, exact = product(weight, None, torch.bfloat16), F.linear(x, weight)
    few, many = rounded(x[:-1]), rounded(x)
    assert few.dtype == many.dtype == torch.bfloat16
    assert torch.allclose(few.float(), exact[:-1], atol=1e-4, rtol=2**-8)
    assert not torch.allclose(many.float(), exact, atol=1e-4, rtol=2**-8)


def test_what_fp16_cannot_hold_is_not_rounded() -> None:
    x = torch.randn(4, 30)
    for weight in (torch.randn(70, 30), 1e6 * in_fp16(70, 30), 1e-6 * in_fp16(70, 30)):
        assert not products._can_be_packed(weight)
        assert torch.equal(product(weight)(x), F.linear(x, weight))


def test_weights_in_fp16_are_packed_where_that_is_possible() -> None:
    packs = "fbgemm" in torch.backends.quantized.supported_engines
    assert products._can_be_packed(in_fp16(70, 30)) == packs
    assert not products._can_be_packed(in_fp16(70, 30).double())


@pytest.mark.parametrize("kind", SIZES)
def test_a_model_in_fp16_decodes_as_it_is(kind: str) -> None:
    torch.manual_seed(3)
    model = make(60, {"kind": kind, **SIZES[kind]}).eval()
    model.load_state_dict({name: value.half() for name, value in model.state_dict().items()})
    src, lengths = torch.randint(4, 60, (3, 7)), torch.tensor([7, 5, 2])
    tgt = torch.randint(4, 60, (3, 6))
    fast = for_decoding(model)
    with torch.inference_mode():
        contexts, hiddens = model.forced(model.encode(src, lengths), tgt)
        ours = fast.forced(fast.encode(src, lengths), tgt)
        for value, exact in zip(ours, (contexts, hiddens), strict=True):
            torch.testing.assert_close(value, exact, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(
            fast.readout(tgt, *reversed(ours)),
            model.readout(tgt, hiddens, contexts),
            atol=1e-4,
            rtol=1e-4,
        )
