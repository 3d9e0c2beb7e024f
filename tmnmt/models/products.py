"""Products with the weights of a finished model, as decoding makes them: few rows, again and again.

BLAS libraries are made for large products: five rows times a table of 8,000 words takes them five
times as long as reading the table. So weights that fp16 holds exactly, as those of a model folder
in fp16, are kept in fp16 and packed (by fbgemm, which comes with torch on x86). The numbers are the
same; products and sums are made in fp32."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

Product = Callable[[Tensor], Tensor]


def product(
    weight: Tensor, bias: Tensor | None = None, dtype: torch.dtype | None = None
) -> Product:
    """x (..., in) -> x W^T + b (..., out), for a weight (out, in) that changes no more.

    dtype: of the product and its result; None: the weight's own. Keeps nothing for gradients."""
    if dtype is not None:
        low = weight.to(dtype).contiguous()
        low_bias = bias.to(dtype) if bias is not None else None
        return lambda x: F.linear(x.to(dtype), low, low_bias)
    if _can_be_packed(weight):
        packed = torch.ops.quantized.linear_prepack_fp16(weight, bias)
        return lambda x: torch.ops.quantized.linear_dynamic_fp16(x, packed)
    weight = weight.contiguous()
    return lambda x: F.linear(x, weight, bias)


def limited(full: Product, words: Tensor, size: int) -> Product:
    """A product with `words` (n,) of a table as one with all `size`: -inf for the others."""

    def over_all(x: Tensor) -> Tensor:
        scores = full(x)
        every = scores.new_full((*scores.shape[:-1], size), -torch.inf)
        return every.index_copy_(-1, words, scores)

    return over_all


def _can_be_packed(weight: Tensor) -> bool:
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and "fbgemm" in torch.backends.quantized.supported_engines
        and bool(torch.equal(weight.half().float(), weight))
    )
