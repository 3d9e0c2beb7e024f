"""Products with the weights of a finished model, as decoding makes them: few rows, again and again.

BLAS libraries are made for large products: five rows times a table of 8,000 words takes them five
times as long as reading the table. So weights that fp16 holds exactly, as those of a model folder
in fp16, are kept in fp16 and packed (by fbgemm, which comes with torch on x86). The numbers are the
same; products and sums are made in fp32. Where bf16 is asked for, products of less than `FEW`
rows read the packed weights too, and at most their result is rounded to bf16: it is faster, and
more exact. Both copies of the weights are kept then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from tmnmt.compiled.kernels import version_of

Product = Callable[[Tensor], Tensor]
FEW_ROWS = 12  # rows: below it a product in bf16 takes longer than one of packed weights


def product(
    weight: Tensor,
    bias: Tensor | None = None,
    dtype: torch.dtype | None = None,
    relu: bool = False,
) -> Product:
    """A function that gives x W^T + b (..., out) of x (..., in), or its positive part. It keeps
    nothing for gradients.

    weight: (out, in), the weight W, which changes no more.
    bias: (out,), what is added, b; None adds nothing.
    dtype: the type of the product and its result; None takes the weight's own.
    relu: whether only the positive part is given."""
    if dtype is None:
        return _exact(weight, bias, relu)
    low, low_bias = weight.to(dtype).contiguous(), bias.to(dtype) if bias is not None else None
    exact = _exact(weight, bias, relu) if _can_be_packed(weight) else None
    return Rounded(low, low_bias, relu, exact)


class Exact(ABC):
    """x W^T + b, or its positive part, with W as it was given."""

    weight: Tensor

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor: ...


class Packed(Exact):
    """Of a weight that fp16 holds."""

    def __init__(self, packed: Any, relu: bool) -> None:
        quantized = torch.ops.quantized
        self._packed = packed
        self._product = (
            quantized.linear_relu_dynamic_fp16 if relu else quantized.linear_dynamic_fp16
        )

    def __call__(self, x: Tensor) -> Tensor:
        result: Tensor = self._product(x, self._packed)
        return result

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """(out, in), unpacked anew."""
        weight: Tensor = torch.ops.quantized.linear_unpack_fp16(self._packed)[0]
        return weight


@dataclass(frozen=True)
class Unpacked(Exact):
    """Of any other weight."""

    weight: Tensor
    bias: Tensor | None
    relu: bool

    def __call__(self, x: Tensor) -> Tensor:
        result = F.linear(x, self.weight, self.bias)
        return result.relu_() if self.relu else result


@dataclass(frozen=True)
class Rounded:
    """x W^T + b, or its positive part, in the precision of W."""

    weight: Tensor
    bias: Tensor | None
    relu: bool
    exact: Exact | None  # of packed weights, for few rows

    def __call__(self, x: Tensor) -> Tensor:
        if self.exact is not None and _is_small(x):
            return self.exact(x.float()).to(self.weight.dtype)
        return self._rounded(x)

    def in_fp32(self, x: Tensor) -> Tensor:
        """The result in fp32, which for few rows is not rounded at all.

        x: (..., in), what is multiplied."""
        return (
            self.exact(x.float())
            if self.exact is not None and _is_small(x)
            else self._rounded(x).float()
        )

    def _rounded(self, x: Tensor) -> Tensor:
        result = F.linear(x.to(self.weight.dtype), self.weight, self.bias)
        return result.relu_() if self.relu else result


def _is_small(x: Tensor) -> bool:
    return x.numel() < FEW_ROWS * x.shape[-1]


def _exact(weight: Tensor, bias: Tensor | None, relu: bool) -> Exact:
    """In the precision of the weight."""
    if _can_be_packed(weight):
        return Packed(torch.ops.quantized.linear_prepack_fp16(weight, bias), relu)
    return Unpacked(weight.contiguous(), bias, relu)


class ProductsKept:
    """Products of weights that are made again where the weights have changed."""

    def __init__(self) -> None:
        self._cache: dict[str, tuple[object, Product]] = {}

    def build(
        self, name: str, weights: Sequence[Tensor], bias: Tensor | None = None, dim: int = 0
    ) -> Product:
        """The product with several weights as one.

        name: a name that these weights share.
        weights: the weights, side by side.
        bias: what is added; None adds nothing.
        dim: the dimension in which they stand side by side."""
        version = version_of([*weights, *([] if bias is None else [bias])])
        entry = self._cache.get(name)
        if entry is None or entry[0] != version:
            weight = torch.cat([w.detach() for w in weights], dim)
            new_product = product(weight, bias.detach() if bias is not None else None)
            entry = self._cache[name] = version, new_product
        return entry[1]


def limited(full: Product, words: Tensor, size: int) -> Product:
    """A product with some words of a table as one with all, -inf for the others.

    full: the product with the words.
    words: (n,) int64, the words.
    size: how many words the table has."""

    def over_all(x: Tensor) -> Tensor:
        scores = full(x)
        full_scores = scores.new_full((*scores.shape[:-1], size), -torch.inf)
        return full_scores.index_copy_(-1, words, scores)

    return over_all


def _can_be_packed(weight: Tensor) -> bool:
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and "fbgemm" in torch.backends.quantized.supported_engines
        and bool(torch.equal(weight.half().float(), weight))
    )
