"""Small functions of tensors, and a size, that many blocks need."""

import torch
from torch import Tensor

REGISTER = 8  # numbers that a processor multiplies at once


def symlog(x: Tensor) -> Tensor:
    """Logarithm of the distance from 0, with the sign of x."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


def symexp(x: Tensor) -> Tensor:
    """Undo `symlog`."""
    return torch.sign(x) * torch.expm1(torch.abs(x))


def exact(x: Tensor) -> Tensor:
    """Half precision made single: sums, logarithms and losses need it."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
