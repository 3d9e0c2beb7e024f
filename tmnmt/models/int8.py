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

from tmnmt.compiled import steps

MOST = 127
FOUR, PANEL = 4, 64  # as `compiled/integers.py` has them, which imports numba
SUMS = 4 * 6 * PANEL  # bytes of the sums of the rows that are multiplied together


def room_of_product(rows: int, inputs: int) -> int:
    """Bytes of the room that a product of so many rows wants."""
    return SUMS + 4 * rows + 2 * rows * (inputs + FOUR)


class Int8Weight(NamedTuple):
    """A matrix as whole numbers: (out, in) int8, and the scale of every output, (out,) fp32."""

    whole: Tensor
    scales: Tensor

    @classmethod
    def rounded(cls, weight: Tensor) -> Int8Weight:
        """The nearest to a matrix of fp32: its greatest number in a row becomes 127 or -127."""
        scales = weight.abs().amax(1) / MOST
        divisor = torch.where(scales > 0, scales, 1.0)[:, None]
        return cls((weight / divisor).round().to(torch.int8), scales)

    def exact(self) -> Tensor:
        """The same in fp32."""
        return self.whole.float() * self.scales[:, None]

    def side_by_side(self, *others: Int8Weight) -> Int8Weight:
        """With the outputs of others behind these."""
        every = self, *others
        return Int8Weight(torch.cat([w.whole for w in every]), torch.cat([w.scales for w in every]))


@dataclass(frozen=True)
class Int8Product:
    """x (..., in) -> x W^T + b (..., out) in fp32, or its positive part, on the CPU."""

    panels: Tensor  # int8, as compiled code reads them
    begins: Tensor  # int32, what the sums of each output begin with
    scales: Tensor  # (out,)
    bias: Tensor  # (out,)
    inputs: int
    outputs: int
    relu: bool
    in_bytes: bool = False  # what is multiplied is rounded to 8 bits, in half of the time

    @classmethod
    def of(
        cls,
        weight: Int8Weight,
        bias: Tensor | None = None,
        relu: bool = False,
        rows: Tensor | None = None,
    ) -> Int8Product:
        """rows (m,): the outputs that are wanted, in their order; None: all. Raises ValueError for
        weights that are no matrix of int8 in the CPU's memory with a scale for every output."""
        whole, scales = weight.whole.contiguous(), weight.scales
        if whole.dtype != torch.int8 or whole.dim() != 2 or not whole.is_cpu:
            raise ValueError(f"weights are {whole.dtype} {list(whole.shape)} on {whole.device}")
        if scales.shape != whole.shape[:1]:
            raise ValueError(f"{list(scales.shape)} scales for weights of {list(whole.shape)}")
        chosen = torch.arange(len(whole)) if rows is None else rows.contiguous()
        if len(chosen) and not 0 <= int(chosen.min()) <= int(chosen.max()) < len(whole):
            raise ValueError(f"outputs that the {len(whole):,} rows of weights have not")
        outputs, inputs = len(chosen), whole.shape[1]
        size = -(-outputs // PANEL) * PANEL
        panels = torch.empty(size * (-(-inputs // FOUR) * FOUR), dtype=torch.int8)
        begins = torch.empty(size, dtype=torch.int32)
        steps.pack_panels(
            whole.data_ptr(),
            chosen.data_ptr(),
            outputs,
            inputs,
            panels.data_ptr(),
            begins.data_ptr(),
        )
        added = torch.zeros(len(whole)) if bias is None else bias.detach().float()
        return cls(
            panels,
            begins,
            scales[chosen].float().contiguous(),
            added[chosen].contiguous(),
            inputs,
            outputs,
            relu,
        )

    @property
    def plan(self) -> tuple[int, ...]:
        """As compiled code is told of it: addresses and sizes. It must be kept as long as they are
        used."""
        addresses = (t.data_ptr() for t in (self.panels, self.begins, self.scales, self.bias))
        return *addresses, self.inputs, self.outputs, int(self.relu)

    def __call__(self, x: Tensor) -> Tensor:
        """Raises ValueError for another number of inputs, or another device."""
        if x.shape[-1] != self.inputs or not x.is_cpu:
            raise ValueError(f"{list(x.shape)} on {x.device}, wanted: (..., {self.inputs})")
        x = x.detach().float().contiguous()
        rows = x.numel() // self.inputs
        out = torch.empty(*x.shape[:-1], self.outputs)
        room = torch.empty(room_of_product(rows, self.inputs), dtype=torch.uint8)
        addresses = *self.plan[:4], self.outputs, int(self.relu)
        steps.product_int8(
            x.data_ptr(),
            rows,
            self.inputs,
            *addresses,
            room.data_ptr(),
            out.data_ptr(),
            int(self.in_bytes),
        )
        return out
