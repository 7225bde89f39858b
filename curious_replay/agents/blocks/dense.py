"""Fully connected layers, in the style of the agent they belong to."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.initial import normal_, uniform_
from curious_replay.agents.blocks.maths import to_float32
from curious_replay.agents.blocks.shortcuts.lookup import Features, product

NORM_EPS = 1e-3


@dataclass(frozen=True)
class Style:
    """How hidden layers look: activation, and whether they have a norm and biases before it."""

    activation: Callable[[Tensor], Tensor]
    norm: bool
    bias: bool
    fill_: Callable[[Tensor], Tensor]
    """Initialiser of hidden weights."""
    fill_output_: Callable[[Tensor], Tensor]
    """Initialiser of output weights."""


DREAMER_V3 = Style(F.silu, norm=True, bias=False, fill_=normal_, fill_output_=uniform_)
DREAMER_V2 = Style(F.elu, norm=False, bias=True, fill_=uniform_, fill_output_=uniform_)
DREAMER_V2_NORM = replace(DREAMER_V2, norm=True)


class Hidden(nn.Module):
    """What follows the product with the weights: bias, norm over the last axis, activation."""

    def __init__(self, width: int, style: Style) -> None:
        super().__init__()
        self.activation = style.activation
        self.bias = nn.Parameter(torch.zeros(width)) if style.bias else None
        self.norm = nn.LayerNorm(width, eps=NORM_EPS) if style.norm else None

    def forward(self, product: Tensor) -> Tensor:
        """Finish [..., width]."""
        dtype = product.dtype
        if self.bias is not None:
            product = product + self.bias
        if self.norm is not None:
            product = self.norm(to_float32(product))  # gradients are sums over thousands of rows
        if product.dtype != dtype:
            product = product.to(dtype)
        return self.activation(product)


class Dense(nn.Module):
    """A hidden layer: weights, then `Hidden`."""

    def __init__(self, inputs: int, outputs: int, style: Style) -> None:
        super().__init__()
        self.weight = nn.Parameter(style.fill_(torch.empty(outputs, inputs)))
        self.finish = Hidden(outputs, style)

    def forward(self, x: Features) -> Tensor:
        """Return the layer's outputs, [..., inputs] -> [..., outputs]."""
        finished: Tensor = self.finish(product(x, self.weight))
        return finished


def output_layer(inputs: int, outputs: int, style: Style, *, zero: bool = False) -> nn.Linear:
    """Return weights with biases and nothing after; `zero` makes their first predictions 0."""
    layer = nn.Linear(inputs, outputs)
    if zero:
        nn.init.zeros_(layer.weight)
    else:
        style.fill_output_(layer.weight.data)
    nn.init.zeros_(layer.bias)
    return layer


def hidden_layers(inputs: int, layers: int, units: int, style: Style) -> nn.Sequential:
    """Return `layers` hidden layers of `units` each."""
    widths = [inputs, *[units] * layers]
    return nn.Sequential(*(Dense(before, after, style) for before, after in pairwise(widths)))


def mlp(
    inputs: int, layers: int, units: int, outputs: int, style: Style, *, zero: bool = False
) -> nn.Sequential:
    """Return hidden layers, followed by an output layer."""
    hidden = hidden_layers(inputs, layers, units, style)
    return nn.Sequential(*hidden, output_layer(units, outputs, style, zero=zero))
