"""Images to numbers and back: stride-2 convolutions, channels last in memory.

Two stacks are known. By default borders are padded, kernels are 4 x 4, and an image of 64 pixels
shrinks 64 > 32 > 16 > 8 > 4 and grows back the same way (DreamerV3). `valid` pads nothing: 64 > 31
> 14 > 6 > 2 with kernels of 4, and back 1 > 5 > 13 > 30 > 64 with kernels of 5, 5, 6, 6
(DreamerV2). Images of other sizes have less or more stages: unpadded 16 > 7 > 2 and back 1 > 6 > 16
(6, 6), 32 > 15 > 6 > 2 and back 1 > 5 > 14 > 32 (5, 6, 6), and 128 > 63 > 30 > 14 > 6 > 2 and back
1 > 5 > 13 > 29 > 62 > 128 (5, 5, 5, 6, 6).

Images are [N, H, W, C] here, which is how they are stored and what the norms over channels want;
for the convolutions it is PyTorch's channels-last format, so nothing is copied between them.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.dense import Hidden, Style, output_layer
from curious_replay.agents.blocks.shortcuts.upscale import upscale
from curious_replay.agents.spaces import IMAGE_SIZES
from curious_replay.errors import UsageError

SMALLEST = 4  # pixels per side where convolutions end
SMALLEST_VALID = 2  # and where they end if borders are not padded


def stages_of(size: int) -> int:
    """Return how often an image is halved on its way to 4 x 4."""
    if size not in IMAGE_SIZES:
        *sizes, largest = map(str, IMAGE_SIZES)
        right = f"{', '.join(sizes)} or {largest}"
        raise UsageError(f"images must have {right} pixels per side, got {size}")
    return size.bit_length() - SMALLEST.bit_length()


class Encoder(nn.Module):
    """Convolutions of 4 x 4, stride 2, that double the channels from `depth` on."""

    def __init__(self, size: int, depth: int, style: Style, *, valid: bool = False) -> None:
        super().__init__()
        self.padding = 0 if valid else 1
        channels = [3, *(depth << stage for stage in range(stages_of(size)))]
        self.weights = nn.ParameterList(
            _kernel(style.fill_(torch.empty(after, before, 4, 4)))
            for before, after in pairwise(channels)
        )
        self.finish = nn.ModuleList(Hidden(width, style) for width in channels[1:])
        end = SMALLEST_VALID if valid else SMALLEST
        self.size = end * end * channels[-1]

    def forward(self, image: Tensor) -> Tensor:
        """Encode images, float [N, H, W, 3] about 0, as [N, size]."""
        x = image
        for weight, finish in zip(self.weights, self.finish, strict=True):
            x = F.conv2d(x.permute(0, 3, 1, 2), weight, stride=2, padding=self.padding)
            x = finish(x.permute(0, 2, 3, 1))
        return x.flatten(1)


class Decoder(nn.Module):
    """The way back: a linear layer to 4 x 4, then transposed convolutions that halve channels.

    `valid`: to 1 x 1 and as many channels as the encoder has numbers.
    """

    def __init__(
        self, inputs: int, size: int, depth: int, style: Style, *, valid: bool = False
    ) -> None:
        super().__init__()
        stages = stages_of(size)
        channels = [*(depth << stage for stage in reversed(range(stages))), 3]
        kernels = [4] * stages
        self.padding, self.first = 1, SMALLEST
        if valid:
            channels[0] *= SMALLEST_VALID * SMALLEST_VALID
            kernels = [*[5] * (stages - 2), 6, 6]
            self.padding, self.first = 0, 1
        self.open = output_layer(inputs, self.first * self.first * channels[0], style)
        fills = [*[style.fill_] * (stages - 1), style.fill_output_]
        self.weights = nn.ParameterList(
            _kernel(fill_(torch.empty(before, after, side, side)))
            for (before, after), fill_, side in zip(pairwise(channels), fills, kernels, strict=True)
        )
        self.finish = nn.ModuleList(Hidden(width, style) for width in channels[1:-1])
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, feature: Tensor) -> Tensor:
        """Decode features [N, inputs] to images [N, H, W, 3] about 0."""
        x = self.open(feature)
        x = x.reshape(len(x), self.first, self.first, -1)
        for weight, finish in zip(self.weights[:-1], self.finish, strict=True):
            x = F.conv_transpose2d(x.permute(0, 3, 1, 2), weight, stride=2, padding=self.padding)
            x = finish(x.permute(0, 2, 3, 1))
        if self.padding:
            return upscale(x, self.weights[-1], self.bias)
        x = F.conv_transpose2d(x.permute(0, 3, 1, 2), self.weights[-1], self.bias, stride=2)
        return x.permute(0, 2, 3, 1)


def _kernel(weight: Tensor) -> nn.Parameter:
    return nn.Parameter(weight.contiguous(memory_format=torch.channels_last))
