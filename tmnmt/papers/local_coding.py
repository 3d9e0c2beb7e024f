"""Local coordinate coding (Yu et al. 2009) with learned weights (Fu et al. 2019): a point is said
by weights of anchor points.

    R: points    C: anchors    k: their size    a: hidden units of the score
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

# (own (R, .), compared (R, k)) -> weights (R, C)
Coding = Callable[[Tensor, Tensor], Tensor]


class LocalCoding(nn.Module):
    """The anchors v, and the weights gamma of a point by the tri-nonlinear score:

    gamma_j = softmax_j of v_s tanh(W v_j + U q + V (v_j * g))        eq. 11, 12; 20, 21

    Of M-RefNet q and g are the same point. Of B-RefNet g is g(q), since v_j * q, as it is printed
    in eq. 21, has no matching sizes (OURS)."""

    def __init__(self, anchors: int, size: int, own_size: int, hidden: int) -> None:
        super().__init__()
        self.anchors = nn.Parameter(torch.empty(anchors, size))
        self.of_anchor = nn.Linear(size, hidden, bias=False)  # W
        self.of_point = nn.Linear(own_size, hidden, bias=False)  # U
        self.of_both = nn.Linear(size, hidden, bias=False)  # V
        self.vector = nn.Parameter(torch.empty(hidden))  # v_s
        nn.init.normal_(self.anchors, std=size**-0.5)
        nn.init.normal_(self.vector, std=hidden**-0.5)

    def coding(self) -> Coding:
        """The weights as a function of points: what depends on the anchors alone is made once."""
        anchors = self.of_anchor(self.anchors)  # (C, a)
        anchor_weights = (self.of_both.weight * self.anchors[:, None]).flatten(0, 1).t()  # (k, C a)

        def weights(points: Tensor, compared: Tensor) -> Tensor:
            crossed = (compared @ anchor_weights).view(len(points), *anchors.shape)
            energy = torch.tanh(crossed + anchors + self.of_point(points)[:, None]) @ self.vector
            gamma: Tensor = energy.softmax(-1)
            return gamma

        return weights

    def localisation(self, points: Tensor, far: float, closeness: float) -> Tensor:
        """What anchors are found by, summed over points h (R, k): far ||h - gamma(h)|| + near sum_j
        gamma_j ||v_j - gamma(h)||^2, where gamma(h) = sum_j gamma_j v_j (eq. 10, 13)."""
        weights = self.coding()(points, points)
        approximations = weights @ self.anchors
        distances = torch.cdist(approximations, self.anchors).square()
        loss: Tensor = (
            far * (points - approximations).norm(dim=-1).sum()
            + closeness * (weights * distances).sum()
        )
        return loss


@torch.no_grad()
def spread(points: Tensor, count: int, seed: int, rounds: int = 10) -> Tensor:
    """Where anchors (count, k) begin (OURS): the centres of k-means over points (N, k), begun at
    points drawn by the seed. A centre that nothing is near to stays where it was."""
    generator = torch.Generator().manual_seed(seed)
    centres = points[
        torch.randperm(len(points), generator=generator)[:count].to(points.device)
    ].clone()
    for _ in range(rounds):
        nearest = torch.cdist(points, centres).argmin(-1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, points)
        counts = torch.bincount(nearest, minlength=count)[:, None]
        centres = torch.where(counts > 0, sums / counts.clamp_min(1), centres)
    return centres
