"""Products with one-hot numbers: rows are looked up and added, not multiplied.

Most of what describes an imagined state are one-hot latents, of which a product uses one number in
`classes`. On a CPU looking the few rows up takes a fraction of the time of the whole product.
Multiplying instead, an update takes 1.12 to 1.13 times as long at sizes `S` and `tiny`, whose
latents have 32 and 16 classes; as long at `micro`, and 0.94 times at `nano`, where they have 8.
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
        """Detach as a tensor does; return itself, as no gradient goes into these anyway."""
        return self

    @property
    def one_hot(self) -> Tensor:
        """The one-hot numbers, [..., size]."""
        zeros = self.deter.new_zeros(*self.ones.shape[:-1], self.size)
        return zeros.scatter_(-1, self.ones, 1.0)


Features = Tensor | OneHotFeatures
"""What describes states, [..., F]."""


def as_tensor(features: Features) -> Tensor:
    """Return all numbers of the features, [..., F]."""
    if isinstance(features, Tensor):
        return features
    return torch.cat([features.deter, features.one_hot], -1)


def stack(features: list[Features]) -> Features:
    """Stack features as `torch.stack` does."""
    one_hot = [each for each in features if isinstance(each, OneHotFeatures)]
    if not one_hot:
        return torch.stack([as_tensor(each) for each in features])
    deter = torch.stack([each.deter for each in one_hot])
    return OneHotFeatures(deter, torch.stack([each.ones for each in one_hot]), one_hot[0].size)


def pays(x: Tensor) -> bool:
    """Return whether looking up is quicker than multiplying: on a CPU, in single precision."""
    # A tensor of another type is a fake one, which stands for one of a card.
    return type(x) is Tensor and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")


def look_up(ones: Tensor, weight: Tensor) -> Tensor:
    """Return `weight` [out, size] times one-hot numbers, [..., out]; no gradient passes."""
    rows = F.embedding_bag(ones.flatten(0, -2), weight.detach().T.contiguous(), mode="sum")
    return rows.reshape(*ones.shape[:-1], -1)


def add_up(ones: Tensor, rows: Tensor, size: int) -> Tensor:
    """Return the product [size, out] of one-hot numbers, transposed, with `rows` [..., out].

    It is the gradient of what `look_up` gives: each of the `size` sums is over the rows that have
    a one there. Sorted by where their ones are, sums are looked up as well.
    """
    rows, ones = rows.flatten(0, -2), ones.flatten(0, -2)
    places = ones.T.flatten()
    order = torch.sort(places.int(), stable=True).indices % len(rows)
    counts = torch.bincount(places, minlength=size)
    return F.embedding_bag(order, rows, counts.cumsum(0) - counts, mode="sum")


def product(x: Features, weight: Tensor) -> Tensor:
    """Return `weight` [out, F] times features [..., F]: [..., out]."""
    if isinstance(x, Tensor):
        return F.linear(x, weight)
    multiply: Any = _Product.apply
    result: Tensor = multiply(x, weight)
    return result


class _Product(torch.autograd.Function):
    """`F.linear` of one-hot features."""

    @staticmethod
    def forward(ctx: Any, x: OneHotFeatures, weight: Tensor) -> Tensor:
        ctx.x = x
        dense = x.deter.shape[-1]
        result = look_up(x.ones, weight[:, dense:])
        result.flatten(0, -2).addmm_(x.deter.flatten(0, -2), weight[:, :dense].T)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        x = ctx.x
        of_dense = gradient.flatten(0, -2).T @ x.deter.flatten(0, -2)
        return None, torch.cat([of_dense, add_up(x.ones, gradient, x.size).T], -1)
