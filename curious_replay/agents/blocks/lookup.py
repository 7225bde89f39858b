"""Products with one-hot numbers: rows of the weights are looked up and added, not multiplied.

Most of what describes an imagined state are one-hot latents, of which a product uses one number in
`classes`. On a CPU looking the few rows up takes a fraction of the time of the whole product.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812


@dataclass(frozen=True)
class OneHotFeatures:
    """States that no gradient goes into, described by dense and one-hot numbers.

    They stand for the features [..., dense + size], and can be used where those can.
    """

    deter: Tensor  # [..., dense]
    ones: Tensor  # int64 [..., latents]: where in the one-hot numbers the ones are
    size: int  # of the one-hot numbers

    def __getitem__(self, part: slice) -> "OneHotFeatures":
        return OneHotFeatures(self.deter[part], self.ones[part], self.size)

    @property
    def feature(self) -> "OneHotFeatures":
        """What heads and policies see, as of a `State`."""
        return self

    @property
    def shape(self) -> torch.Size:
        """That of the features."""
        return torch.Size([*self.deter.shape[:-1], self.deter.shape[-1] + self.size])

    def detach(self) -> "OneHotFeatures":
        """As a tensor does: no gradient goes into these anyway."""
        return self

    @property
    def one_hot(self) -> Tensor:
        """The one-hot numbers, [..., size]."""
        zeros = self.deter.new_zeros(*self.ones.shape[:-1], self.size)
        return zeros.scatter_(-1, self.ones, 1.0)


Features = Tensor | OneHotFeatures
"""What describes states, [..., F]."""


def as_tensor(features: Features) -> Tensor:
    """All numbers of the features, [..., F]."""
    if isinstance(features, Tensor):
        return features
    return torch.cat([features.deter, features.one_hot], -1)


def stack(features: list[Features]) -> Features:
    """As `torch.stack`."""
    one_hot = [each for each in features if isinstance(each, OneHotFeatures)]
    if not one_hot:
        return torch.stack([as_tensor(each) for each in features])
    deter = torch.stack([each.deter for each in one_hot])
    return OneHotFeatures(deter, torch.stack([each.ones for each in one_hot]), one_hot[0].size)


def pays(x: Tensor) -> bool:
    """Whether looking up is quicker than multiplying: on a CPU, in single precision."""
    return x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")


def look_up(ones: Tensor, weight: Tensor) -> Tensor:
    """Product [..., out] of `weight` [out, size] with one-hot numbers; no gradient passes."""
    rows = F.embedding_bag(ones.flatten(0, -2), weight.detach().T.contiguous(), mode="sum")
    return rows.reshape(*ones.shape[:-1], -1)


def product(x: Features, weight: Tensor) -> Tensor:
    """`weight` [out, F] times features [..., F]: [..., out]."""
    if isinstance(x, Tensor):
        return F.linear(x, weight)
    multiply: Any = _Product.apply
    result: Tensor = multiply(x, weight)
    return result


class _Product(torch.autograd.Function):
    """`F.linear` of one-hot features; the gradient of the weight is made as ever."""

    @staticmethod
    def forward(ctx: Any, x: OneHotFeatures, weight: Tensor) -> Tensor:
        ctx.x = x
        dense = x.deter.shape[-1]
        result = F.linear(x.deter, weight[:, :dense])
        return result.add_(look_up(x.ones, weight[:, dense:]))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        of_products = gradient.flatten(0, -2).T
        parts = (ctx.x.deter, ctx.x.one_hot)
        return None, torch.cat([of_products @ part.flatten(0, -2) for part in parts], -1)
