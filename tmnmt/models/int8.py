"""Products with weights in int8: a quarter of the bytes of fp32, and many times as fast with few
rows. What is multiplied is rounded row by row to 16 bits (`tmnmt.compiled.integers`), or to 8 where
that is enough. So a row gives the same numbers whatever stands beside it, and with 16 bits, weights
that were learned in int8 give the numbers of fp32.

A weight is a whole number from -127 to 127 times the scale of its output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tmnmt.compiled.kernels import Int8Panels

MAX_VALUE = 127


class Int8Weight(NamedTuple):
    """A matrix as whole numbers: (out, in) int8, and the scale of every output, (out,) fp32."""

    whole: Tensor
    scales: Tensor

    @classmethod
    def rounded(cls, weight: Tensor) -> Int8Weight:
        """The nearest matrix of whole numbers: the greatest number in a row becomes 127 or -127.

        weight: (out, in) fp32, the matrix."""
        scales = weight.abs().amax(1) / MAX_VALUE
        divisor = torch.where(scales > 0, scales, 1.0)[:, None]
        return cls((weight / divisor).round().to(torch.int8), scales)

    def exact(self) -> Tensor:
        """The same in fp32."""
        return self.whole.float() * self.scales[:, None]

    def side_by_side(self, *weights: Int8Weight) -> Int8Weight:
        """One matrix with the outputs of several.

        weights: the matrices whose outputs come behind these."""
        parts = self, *weights
        return Int8Weight(torch.cat([w.whole for w in parts]), torch.cat([w.scales for w in parts]))


@dataclass(frozen=True)
class Int8Product:
    """x (..., in) -> x W^T + b (..., out) in fp32, or its positive part, on the CPU."""

    panels: Int8Panels
    relu: bool
    in_bytes: bool = False  # what is multiplied is rounded to 8 bits, in half of the time

    @classmethod
    def build(
        cls,
        weight: Int8Weight,
        bias: Tensor | None = None,
        relu: bool = False,
        rows: Tensor | None = None,
    ) -> Int8Product:
        """The product with a matrix.

        weight: the matrix.
        bias: (out,) fp32, what is added; None adds nothing.
        relu: whether only the positive part is given.
        rows: (m,) int64, the outputs that are needed, in their order; None needs all.

        Raises ValueError for weights that are no matrix of int8 in the CPU's memory with a scale
        for every output."""
        whole, scales = weight.whole.contiguous(), weight.scales
        if whole.dim() != 2 or scales.shape != whole.shape[:1]:
            raise ValueError(f"{list(scales.shape)} scales for weights of {list(whole.shape)}")
        selection = torch.arange(len(whole)) if rows is None else rows.contiguous()
        added = torch.zeros(len(whole)) if bias is None else bias.detach().float()
        return cls(Int8Panels(whole, selection, scales.float(), added), relu)

    @property
    def inputs(self) -> int:
        return self.panels.inputs

    @property
    def outputs(self) -> int:
        return self.panels.outputs

    def __call__(self, x: Tensor) -> Tensor:
        """Raises ValueError for another number of inputs, or another device."""
        if x.dtype is not torch.float32:
            x = x.float()
        return self.panels.product(x.detach().contiguous(), self.relu, self.in_bytes)
