"""Images to numbers and back: stride-2 convolutions, channels last in memory.

Images are [N, H, W, C] here, which is how they are stored and what the norms over channels want;
for the convolutions it is PyTorch's channels-last format, so nothing is copied between them.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.dense import Hidden, Style, output_layer

SMALLEST = 4  # pixels per side where convolutions end


def _stages(size: int) -> int:
    """How often an image is halved on its way to 4 x 4."""
    stages = size.bit_length() - SMALLEST.bit_length()
    if size != SMALLEST << stages or not 32 <= size <= 128:
        raise ValueError(f"images must have 32, 64 or 128 pixels per side, got {size}")
    return stages


class Encoder(nn.Module):
    """Convolutions of 4 x 4, stride 2, that double the channels from `depth` on."""

    def __init__(self, size: int, depth: int, style: Style) -> None:
        super().__init__()
        channels = [3, *(depth << stage for stage in range(_stages(size)))]
        self.weights = nn.ParameterList(
            _kernel(style.fill_(torch.empty(after, before, 4, 4)))
            for before, after in pairwise(channels)
        )
        self.finish = nn.ModuleList(Hidden(width, style) for width in channels[1:])
        self.size = SMALLEST * SMALLEST * channels[-1]

    def forward(self, image: Tensor) -> Tensor:
        """Float [N, H, W, 3], about 0 -> [N, size]."""
        x = image
        for weight, finish in zip(self.weights, self.finish, strict=True):
            x = F.conv2d(x.permute(0, 3, 1, 2), weight, stride=2, padding=1)
            x = finish(x.permute(0, 2, 3, 1))
        return x.flatten(1)


class Decoder(nn.Module):
    """The way back: a linear layer to 4 x 4, then transposed convolutions that halve channels."""

    def __init__(self, inputs: int, size: int, depth: int, style: Style) -> None:
        super().__init__()
        stages = _stages(size)
        channels = [*(depth << stage for stage in reversed(range(stages))), 3]
        self.open = output_layer(inputs, SMALLEST * SMALLEST * channels[0], style)
        fills = [*[style.fill_] * (stages - 1), style.fill_output_]
        self.weights = nn.ParameterList(
            _kernel(fill_(torch.empty(before, after, 4, 4)))
            for (before, after), fill_ in zip(pairwise(channels), fills, strict=True)
        )
        self.finish = nn.ModuleList(Hidden(width, style) for width in channels[1:-1])
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, feature: Tensor) -> Tensor:
        """[N, inputs] -> [N, H, W, 3], about 0."""
        x = self.open(feature)
        x = x.reshape(len(x), SMALLEST, SMALLEST, -1)
        for weight, finish in zip(self.weights[:-1], self.finish, strict=True):
            x = F.conv_transpose2d(x.permute(0, 3, 1, 2), weight, stride=2, padding=1)
            x = finish(x.permute(0, 2, 3, 1))
        x = F.conv_transpose2d(
            x.permute(0, 3, 1, 2), self.weights[-1], self.bias, stride=2, padding=1
        )
        return x.permute(0, 2, 3, 1)


def _kernel(weight: Tensor) -> nn.Parameter:
    return nn.Parameter(weight.contiguous(memory_format=torch.channels_last))
