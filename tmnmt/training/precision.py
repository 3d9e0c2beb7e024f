"""In which precision products are made here. Processors that can multiply in bf16 are up to twice
as fast by it; one that lacks the units for it may be slower than in fp32. A GPU that lacks them
emulates bf16, several times slower: there products are made in fp32."""

from __future__ import annotations

import logging
import time
from typing import Literal

import torch
from torch import Tensor

TrainingPrecision = Literal["bf16", "fp32"]
ROWS, IN, OUT = 256, 512, 1536  # of a product as training makes them
TIMES = 5
SLOW = 1.2  # times as long as in fp32: from here on bf16 is warned of
NATIVE = (8, 0)  # compute capability of GPUs of NVIDIA, from which on they have units for bf16

log = logging.getLogger(__name__)


def precision_on(device: str, precision: TrainingPrecision) -> TrainingPrecision:
    """The precision in which products are made on a device where this one is asked for; a line says
    where it is another, or where it is slow."""
    if precision != "bf16":
        return precision
    if device.startswith("cuda") and not has_bf16(device):
        log.warning(
            "[training] precision: %s (%s) computes no bf16 but by emulation, which is slow; "
            "products are made in fp32",
            device,
            torch.cuda.get_device_name(device),
        )
        return "fp32"
    if device == "cpu" and (takes := bf16_takes()) > SLOW:
        log.warning(
            "[training] precision: products in bf16 take %.1f times as long as in fp32 on this "
            'processor; precision = "fp32" trains faster here',
            takes,
        )
    return precision


def has_bf16(device: str) -> bool:
    """Whether a GPU computes bf16 itself: those of AMD that torch knows do."""
    return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= NATIVE


def bf16_takes() -> float:
    """Seconds of a product in bf16 over those of one in fp32, on the CPU, of each the fastest of
    five."""
    x, w = torch.randn(ROWS, IN), torch.randn(IN, OUT)
    return _seconds(x.bfloat16(), w.bfloat16()) / _seconds(x, w)


def _seconds(x: Tensor, w: Tensor) -> float:
    durations = []
    for _ in range(TIMES):
        start = time.perf_counter()
        torch.mm(x, w)
        durations.append(time.perf_counter() - start)
    return min(durations)
