"""Networks of the same shape that learn the same task from different first weights."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.dense import NORM_EPS, Style
from curious_replay.agents.blocks.maths import to_float32


class Ensemble(nn.Module):
    """`members` multi-layer perceptrons, computed together: weights have an axis of members."""

    def __init__(
        self, members: int, inputs: int, layers: int, units: int, outputs: int, style: Style
    ) -> None:
        super().__init__()
        self.activation, self.members = style.activation, members
        widths = [inputs, *[units] * layers]
        self.hidden = nn.ModuleList(
            _Layers(members, before, after, style) for before, after in pairwise(widths)
        )
        weights = [style.fill_output_(torch.empty(outputs, units)).T for _ in range(members)]
        self.weight = nn.Parameter(torch.stack(weights))
        self.bias = nn.Parameter(torch.zeros(members, 1, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Return the predictions of all members, [N, inputs] -> [members, N, outputs]."""
        x = x.expand(self.members, *x.shape)
        for hidden in self.hidden:
            x = self.activation(hidden(x))
        return to_float32(torch.baddbmm(self.bias, x, self.weight))


class _Layers(nn.Module):
    """One hidden layer of every member, before its activation."""

    def __init__(self, members: int, inputs: int, outputs: int, style: Style) -> None:
        super().__init__()
        weights = [style.fill_(torch.empty(outputs, inputs)).T for _ in range(members)]
        self.weight = nn.Parameter(torch.stack(weights))
        zeros = torch.zeros(members, 1, outputs)
        self.bias = nn.Parameter(zeros) if style.bias else None
        self.scale = nn.Parameter(torch.ones_like(zeros)) if style.norm else None
        self.offset = nn.Parameter(zeros.clone()) if style.norm else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of all members, [members, N, inputs] -> [members, N, outputs]."""
        if self.bias is None:
            x = torch.bmm(x, self.weight)
        else:
            x = torch.baddbmm(self.bias, x, self.weight)
        if self.scale is not None and self.offset is not None:
            even = F.layer_norm(to_float32(x), x.shape[-1:], eps=NORM_EPS)
            x = torch.addcmul(self.offset, even, self.scale).to(x.dtype)
        return x


def disagreement(predictions: Tensor) -> Tensor:
    """Return how far predictions [members, N, outputs] differ, [N]: deviation, mean over outputs.

    The deviation is that of all there are (divided by their number), not an estimate from a sample.
    """
    spread: Any = _Spread.apply
    result: Tensor = spread(predictions)
    return result


class _Spread(torch.autograd.Function):
    """`predictions.std(0, correction=0).mean(-1)`, which along a first axis takes 20 times as long.

    Where all members agree, nothing pulls them apart: the gradient is 0.
    """

    @staticmethod
    def forward(ctx: Any, predictions: Tensor) -> Tensor:
        apart = predictions - predictions.mean(0)
        deviation = apart.square().mean(0).sqrt()
        ctx.save_for_backward(apart, deviation)
        return deviation.mean(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        apart, deviation = ctx.saved_tensors
        members, _, outputs = apart.shape
        pull = gradient.unsqueeze(-1) / (deviation * (members * outputs))
        of_predictions: Tensor = apart * pull.masked_fill_(deviation == 0, 0.0)
        return of_predictions
