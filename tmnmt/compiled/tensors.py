"""What compiled code takes for granted of a tensor whose address it is told."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def expect(what: str, x: Tensor, dtype: torch.dtype, shape: Sequence[int]) -> Tensor:
    """`x` itself. Raises ValueError for a tensor of another type, shape, layout or device, which
    compiled code would misread."""
    if x.dtype != dtype or x.shape != torch.Size(shape) or not x.is_contiguous() or not x.is_cpu:
        allowed = f"{dtype} {list(shape)}, contiguous, on the CPU"
        raise ValueError(f"{what}: {x.dtype} {list(x.shape)} on {x.device}; wanted: {allowed}")
    return x
