"""Networks of the same shape that learn the same task from different first weights."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.dense import NORM_EPS, Style
from curious_replay.agents.blocks.maths import exact


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
        """[N, inputs] -> predictions of all members [members, N, outputs]."""
        x = x.expand(self.members, *x.shape)
        for hidden in self.hidden:
            x = self.activation(hidden(x))
        return exact(torch.baddbmm(self.bias, x, self.weight))


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
        """[members, N, inputs] -> [members, N, outputs]."""
        if self.bias is None:
            x = torch.bmm(x, self.weight)
        else:
            x = torch.baddbmm(self.bias, x, self.weight)
        if self.scale is not None and self.offset is not None:
            normed = F.layer_norm(x, x.shape[-1:], eps=NORM_EPS)
            x = torch.addcmul(self.offset, normed, self.scale)
        return x


def disagreement(predictions: Tensor) -> Tensor:
    """How far predictions [members, N, outputs] are apart, [N]: deviation, mean over outputs.

    The deviation is that of all there are (divided by their number), not an estimate from a sample.
    """
    return predictions.std(0, correction=0).mean(-1)
