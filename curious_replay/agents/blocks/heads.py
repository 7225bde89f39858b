"""What a network's outputs say about a number, and how far that is from the truth."""

import math
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.maths import exact, symexp, symlog

LARGEST = 20.0  # of the bins, in symlog space


class TwoHot:
    """A distribution over bins that are even in symlog space, from -20 to 20 (DreamerV3, 2023)."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = exact(logits)  # [..., bins]
        self.bins = torch.linspace(-LARGEST, LARGEST, logits.shape[-1]).to(self.logits)

    @cached_property
    def _log_probabilities(self) -> Tensor:
        return F.log_softmax(self.logits, -1)

    @property
    def mean(self) -> Tensor:
        """Expectation [...], taken in symlog space."""
        # Not a product of matrices: autocast would make that one in half precision.
        return symexp((F.softmax(self.logits, -1) * self.bins).sum(-1))

    def loss(self, target: Tensor) -> Tensor:
        """Cross-entropy [...] in nats with the two bins on either side of `target` [...]."""
        lower, weight = two_hot(symlog(target), self.bins)
        upper = (lower + 1).clamp(max=len(self.bins) - 1)
        pair = self._log_probabilities.gather(-1, torch.stack([lower, upper], -1))
        return -torch.lerp(pair[..., 0], pair[..., 1], weight)


def two_hot(y: Tensor, bins: Tensor) -> tuple[Tensor, Tensor]:
    """Index of the bin below `y` and weight of the one above it, both [...].

    Beyond the ends all weight is on the last bin.
    """
    lower = (torch.bucketize(y, bins, right=True) - 1).clamp(0, len(bins) - 2)
    weight = (y - bins[lower]) / (bins[lower + 1] - bins[lower])
    return lower, weight.clamp(0, 1)


def binary_loss(logit: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy [...] in nats of a Bernoulli variable; `target` may be between 0 and 1."""
    return F.binary_cross_entropy_with_logits(exact(logit), target, reduction="none")


def squared_error(prediction: Tensor, target: Tensor, axes: int) -> Tensor:
    """Sum of squares over the last `axes` axes."""
    return (exact(prediction) - target).square().flatten(-axes).sum(-1)


def normal_loss(prediction: Tensor, target: Tensor, axes: int) -> Tensor:
    """Negative log-likelihood in nats under normal distributions of unit variance.

    Summed over the last `axes` axes, with the constant of each of their numbers.
    """
    count = math.prod(target.shape[-axes:])
    return 0.5 * squared_error(prediction, target, axes) + 0.5 * math.log(2 * math.pi) * count
