"""Small functions of tensors, and a size, that many blocks need."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812

REGISTER = 8  # numbers that a processor multiplies at once
FEW = 2 * REGISTER  # classes below which `F.softmax` works on one number at a time


def symlog(x: Tensor) -> Tensor:
    """Return the logarithm of the distance from 0, with the sign of x."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


def symexp(x: Tensor) -> Tensor:
    """Undo `symlog`."""
    return torch.sign(x) * torch.expm1(torch.abs(x))


def softmax(logits: Tensor) -> Tensor:
    """Return `F.softmax` over the last axis.

    If a CPU has few classes there, it takes a quarter of the time.
    """
    if logits.device.type != "cpu" or logits.shape[-1] >= FEW:
        return F.softmax(logits, -1)
    few: Any = _FewClasses.apply
    result: Tensor = few(logits)
    return result


def softmax_gradient(gradient: Tensor, probabilities: Tensor) -> Tensor:
    """Return the gradient of the logits of `softmax`, from that of its `probabilities`."""
    inner = gradient * probabilities
    return torch.addcmul(inner, probabilities, inner.sum(-1, keepdim=True), value=-1)


class _FewClasses(torch.autograd.Function):
    """`F.softmax`, by operations on all numbers at once."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        powers = (logits - logits.amax(-1, keepdim=True)).exp_()
        probabilities = powers.div_(powers.sum(-1, keepdim=True))
        ctx.save_for_backward(probabilities)
        return probabilities

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return softmax_gradient(gradient, *ctx.saved_tensors)


def is_finite(x: Tensor) -> Tensor:
    """Return `torch.isfinite` of x, in half as many kernels."""
    return x - x == 0  # of NaN and infinities the difference is NaN


def set_if(fine: Tensor, target: Tensor, value: Tensor) -> None:
    """Give `target` the numbers of `value` if `fine`, a scalar that the host need not know."""
    target.copy_(torch.where(fine, value, target))


def product_dtype(like: Tensor) -> torch.dtype:
    """Return the dtype in which products with a tensor are made: its own, or that of autocast."""
    kind = like.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else like.dtype


def exactly(like: Tensor) -> AbstractContextManager[None]:
    """Return a context without autocast on the device of a tensor."""
    kind = like.device.type
    on = torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if on else nullcontext()


def to_float32(x: Tensor) -> Tensor:
    """Return x, half precision made single: sums, logarithms and losses need it."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
