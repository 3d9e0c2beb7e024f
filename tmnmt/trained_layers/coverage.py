"""What was read of a position already, and how much that counts against reading it again (Gu et
al. 2018, eq. 6). The last two kinds are as in the authors' code.

    off      nothing is kept
    plain    beta += q, energy - lambda beta         all that was looked at
    gated    beta += zeta q, energy - lambda beta    only what was really used
    gru      C = GRU(zeta q, C), energy - w C        ten numbers a position

    R: rows    P: positions    W: numbers a position
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

CoverageKind = Literal["off", "plain", "gated", "gru"]
GRU_WIDTH = 10


class Coverage(nn.Module):
    """Keeps (R, P, W) numbers, 0 at the start of a sentence; lambda starts at 0, as w does."""

    def __init__(self, kind: CoverageKind) -> None:
        super().__init__()
        self.kind = kind
        self.width = {"off": 0, "plain": 1, "gated": 1, "gru": GRU_WIDTH}[kind]
        self.weight = (
            nn.Parameter(torch.zeros(self.width if kind == "gru" else ()))
            if kind != "off"
            else None
        )
        self.gru = nn.GRUCell(1, GRU_WIDTH) if kind == "gru" else None

    def penalty(self, coverage: Tensor) -> Tensor | float:
        """What is taken off the energies (R, P) of positions of this `coverage` (R, P, W)."""
        return 0.0 if self.weight is None else (coverage * self.weight).sum(-1)

    def update(self, coverage: Tensor, share: Tensor, q: Tensor) -> Tensor:
        """`coverage` (R, P, W) after a step that read q (R, P) and used the share `share` (R,) in
        [0, 1] of it."""
        if self.kind == "off":
            return coverage
        mass = q if self.kind == "plain" else share[:, None] * q
        if self.gru is None:
            return coverage + mass[..., None]
        updated: Tensor = self.gru(mass.reshape(-1, 1), coverage.reshape(-1, GRU_WIDTH))
        return updated.view_as(coverage)
