"""What moves the parameters of a base: Adam alone, or Muon for its matrices and Adam for the
rest."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from tmnmt.models.base import Trainable
from tmnmt.training.config import Kind
from tmnmt.training.muon import Muon


class Optimiser:
    """One step for all parameters of `model`.

    rate: of Adam. matrix_rate: of Muon, which moves a matrix by about that much in every direction
    (times the square root of how much higher than wide it is)."""

    def __init__(self, model: Trainable, kind: Kind, rate: float, matrix_rate: float) -> None:
        matrices = _matrices(model) if kind == "muon" else []
        matrix_ids = {id(matrix) for matrix in matrices}
        rest = [p for p in model.parameters() if id(p) not in matrix_ids]
        fused = all(p.is_cpu for p in rest)  # on a GPU it wants its steps there, checkpoints do not
        adam = torch.optim.Adam(rest, lr=rate, betas=(0.9, 0.98), fused=fused)
        self.parts: list[tuple[Optimizer, float]] = [(adam, rate)]
        # of every parameter, as checkpoints keep it
        self.state: MutableMapping[Tensor, Any] = adam.state
        if matrices:
            muon = Muon(matrices, matrix_rate, model.dtype)
            muon.state = self.state
            self.parts.append((muon, matrix_rate))

    def zero_grad(self) -> None:
        for part, _ in self.parts:
            part.zero_grad()

    def step(self, share: float) -> None:
        """Moves every parameter by its gradient, at this share of the rates."""
        for part, rate in self.parts:
            for group in part.param_groups:
                group["lr"] = rate * share
            part.step()


def _matrices(model: Trainable) -> list[Tensor]:
    """The weights of products; not tables with a row for every word, and no vectors."""
    return [
        p
        for p in model.parameters()
        if p.dim() == 2 and min(p.shape) > 1 and model.vocab_size not in p.shape
    ]
