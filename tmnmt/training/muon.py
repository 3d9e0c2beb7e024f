"""Muon (Jordan et al. 2024; Liu et al. 2025, arXiv:2502.16982): every update of a matrix is made
orthogonal, so that all directions move alike, not only those of large gradients.

    M <- 0.95 M + 0.05 G    O = orthogonal(0.95 M + 0.05 G)    W <- W - rate sqrt(max(1, h / w)) O

for a matrix W of height h and width w and its gradient G. The numbers are those of
`torch.optim.Muon`. OURS: the products may be in any precision, which there is always bf16, and
several processes share the matrices among them, where there each would do all the work."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.optim import Optimizer

MOMENTUM = 0.95
# of the quintic iteration a X + (b A + c A A) X, A = X X^T, and how often it is applied
COEFFICIENTS = 3.4445, -4.7750, 2.0315
ITERATIONS = 5
SMALLEST = 1e-7  # of a norm that is divided by


class Muon(Optimizer):
    """For matrices only. dtype: of the products that make an update orthogonal; None: that of the
    matrix."""

    def __init__(self, matrices: Sequence[Tensor], lr: float, dtype: torch.dtype | None) -> None:
        super().__init__(matrices, {"lr": lr})
        self.matrices, self.dtype = list(matrices), dtype

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Moves every matrix that has a gradient, which must be the same in all processes."""
        matrices = [matrix for matrix in self.matrices if matrix.grad is not None]
        rate = self.param_groups[0]["lr"]
        moves = [self._nesterov(matrix) for matrix in matrices]
        for matrix, update in zip(matrices, self._made_orthogonal(moves), strict=True):
            height, width = matrix.shape
            matrix.sub_(update, alpha=rate * math.sqrt(max(1.0, height / width)))

    def _nesterov(self, matrix: Tensor) -> Tensor:
        """The gradient and those before it, with Nesterov's look ahead."""
        grad, state = matrix.grad, self.state[matrix]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        buffer = state["momentum_buffer"]
        buffer.lerp_(grad, 1 - MOMENTUM)
        update: Tensor = torch.lerp(grad, buffer, MOMENTUM)  # type: ignore[arg-type]
        return update

    def _made_orthogonal(self, moves: list[Tensor]) -> list[Tensor]:
        """Each process does some of the matrices, and gets the others' from their sum."""
        if not dist.is_initialized() or dist.get_world_size() == 1 or not moves:
            return [orthogonal(matrix, self.dtype) for matrix in moves]
        mine = shared(moves, dist.get_world_size())[dist.get_rank()]
        flat = torch.cat([torch.zeros_like(matrix).flatten() for matrix in moves])
        views = torch.split(flat, [matrix.numel() for matrix in moves])
        for i in mine:
            views[i].copy_(orthogonal(moves[i], self.dtype).flatten())
        dist.all_reduce(flat)
        return [view.view_as(matrix) for view, matrix in zip(views, moves, strict=True)]


def orthogonal(matrix: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Nearly U V^T of the singular value decomposition U S V^T (h, w): its singular values are
    between 0.5 and 1.5 or so. By Newton-Schulz iterations in `dtype`; None: that of the matrix."""
    x = matrix.to(dtype or matrix.dtype)
    high = x.shape[0] > x.shape[1]
    if high:
        x = x.t()
    x = x / x.norm().clamp(min=SMALLEST)
    a, b, c = COEFFICIENTS
    for _ in range(ITERATIONS):
        gram = x @ x.t()
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.t() if high else x).to(matrix.dtype)


def shared(matrices: Sequence[Tensor], processes: int) -> list[list[int]]:
    """The numbers of the matrices that each process does, the costly ones dealt out first."""
    shares: list[list[int]] = [[] for _ in range(processes)]
    costs = [0] * processes
    for i in sorted(range(len(matrices)), key=lambda i: -_cost(matrices[i])):
        process = costs.index(min(costs))
        shares[process].append(i)
        costs[process] += _cost(matrices[i])
    return shares


def _cost(matrix: Tensor) -> int:
    """Multiplications of one iteration."""
    small, large = sorted(matrix.shape)
    return small * small * (2 * large + small)
