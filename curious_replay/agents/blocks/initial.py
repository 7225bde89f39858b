"""Initial weights of the Dreamers: variance 1 / mean of fan in and fan out."""

import math

import torch
from torch import Tensor, nn

# Standard deviation of a unit normal cut off at two standard deviations.
TRUNCATED_STD = 0.87962566103423978


def _mean_fan(weight: Tensor) -> float:
    """Return the mean of inputs and outputs of [out, in, ...], each times the kernel's area."""
    area = math.prod(weight.shape[2:])
    return area * (weight.shape[0] + weight.shape[1]) / 2


@torch.no_grad()
def normal_(weight: Tensor) -> Tensor:
    """Fill with a normal distribution cut off at two standard deviations: DreamerV3, hidden."""
    std = math.sqrt(1 / _mean_fan(weight)) / TRUNCATED_STD
    return nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)


@torch.no_grad()
def uniform_(weight: Tensor) -> Tensor:
    """Fill with a uniform distribution: output layers of DreamerV3, all of DreamerV2 (Glorot)."""
    limit = math.sqrt(3 / _mean_fan(weight))
    return nn.init.uniform_(weight, -limit, limit)
