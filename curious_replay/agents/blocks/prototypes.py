"""Prototypes: directions that what is seen is sorted by, and how to sort it evenly.

A point is a vector; only its direction counts. Its scores are the cosines of the angles to all
prototypes. Sorted by scores alone, all points could end up with one prototype; `assign` therefore
gives every prototype the same share of the points (Sinkhorn's algorithm).
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.maths import set_if


class Prototypes(nn.Module):
    """`count` unit vectors of `size` numbers; no gradient reaches them in the first updates."""

    updates: Tensor

    def __init__(self, count: int, size: int, frozen_updates: int) -> None:
        super().__init__()
        self.frozen_updates = frozen_updates
        self.matrix = nn.Parameter(F.normalize(torch.randn(count, size), dim=-1))
        self.updates = nn.Buffer(torch.zeros((), dtype=torch.int64))

    def forward(self, points: Tensor) -> Tensor:
        """Return the scores [..., count] of points [..., size]."""
        frozen = self.updates < self.frozen_updates
        matrix = torch.where(frozen, self.matrix.detach(), self.matrix)  # of gradient 0, or its own
        return F.linear(F.normalize(points, dim=-1), matrix)

    @torch.no_grad()
    def settle(self, fine: Tensor) -> None:
        """Count an update, which has moved the vectors, and give them unit length again.

        An update that was not `fine`, a bool on their device, has not moved them.
        """
        set_if(fine, self.matrix, F.normalize(self.matrix, dim=-1))
        self.updates.add_(fine)


@torch.no_grad()
def assign(scores: Tensor, eps: float, iterations: int = 3) -> Tensor:
    """Return the shares [N, K] of N points in K prototypes, from their scores [N, K].

    The shares of each point sum to 1, those in each prototype to about N / K: the more exactly, the
    more iterations. A small `eps` gives a point to few prototypes.
    """
    points, prototypes = scores.shape
    log = scores / eps
    for _ in range(iterations):
        log = log - log.logsumexp(0, keepdim=True) - math.log(prototypes)
        log = log - log.logsumexp(1, keepdim=True) - math.log(points)
    return log.exp() * points


def cross_entropy(shares: Tensor, scores: Tensor, temperature: float) -> Tensor:
    """Return the nats [...] by which scores [..., K] miss the shares [..., K] of a point."""
    return -(shares * F.log_softmax(scores / temperature, -1)).sum(-1)
