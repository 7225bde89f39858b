"""Transforms that tame large numbers, and their inverses."""

import torch
from torch import Tensor


def symlog(x: Tensor) -> Tensor:
    """Logarithm of the distance from 0, with the sign of x."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


def symexp(x: Tensor) -> Tensor:
    """Undo `symlog`."""
    return torch.sign(x) * torch.expm1(torch.abs(x))
