"""How long products in bf16 take here. Processors that can multiply in bf16 are up to twice as fast
by it; one that lacks the units for it may be slower than in fp32."""

from __future__ import annotations

import time

import torch
from torch import Tensor

ROWS, IN, OUT = 256, 512, 1536  # of a product as training makes them
TIMES = 5


def bf16_takes() -> float:
    """Seconds of a product in bf16 over those of one in fp32, on the CPU, of each the fastest of
    five."""
    x, w = torch.randn(ROWS, IN), torch.randn(IN, OUT)
    return _seconds(x.bfloat16(), w.bfloat16()) / _seconds(x, w)


def _seconds(x: Tensor, w: Tensor) -> float:
    taken = []
    for _ in range(TIMES):
        start = time.perf_counter()
        torch.mm(x, w)
        taken.append(time.perf_counter() - start)
    return min(taken)
