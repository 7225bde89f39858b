"""Transposed convolutions to few channels, such as the last one to an image, quickly on a CPU.

The kernels of CPUs work on many output channels at once, and an image has three. But where four
pixels meet, all four new pixels between their centres are sums over the same four: one convolution
of 2 x 2 gives all their numbers, which are then put in their places, in a third of the time. With
an ordinary one a whole update takes 1.03 (`micro`, `nano`) to 1.04 times as long (`tiny`), and as
long where there is more to do (`S`).
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.maths import REGISTER


def upscale(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Double an image: `F.conv_transpose2d` with stride 2 and padding 1.

    x [N, H, W, C], weight [C, D, 4, 4], bias [D] -> [N, 2 H, 2 W, D].
    """
    few = x.device.type == "cpu" and weight.shape[1] < REGISTER
    if few and not torch.is_autocast_enabled("cpu"):
        double: Any = _Upscale.apply
        result: Tensor = double(x, weight, bias)
        return result
    x = x.permute(0, 3, 1, 2)
    return F.conv_transpose2d(x, weight, bias, stride=2, padding=1).permute(0, 2, 3, 1)


class _Upscale(torch.autograd.Function):
    """See the module; the gradients are those of the ordinary convolution that this one undoes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        inputs, outputs = weight.shape[:2]
        # A pixel's part in new row r of the two between it and the next is row 2 + r of the
        # kernel, and row r of the kernel is the next one's; so for columns.
        taps = weight.reshape(inputs, outputs, 2, 2, 2, 2).flip(2, 4)  # axes 2 and 4: which pixel
        rows = taps.permute(3, 5, 1, 0, 2, 4).flatten(1, 2)
        # Two new pixels side by side are filled up to whole registers, in a third less time.
        used, more = 2 * outputs, -2 * outputs % REGISTER
        kernel = F.pad(rows, (0, 0, 0, 0, 0, 0, 0, more)).flatten(0, 1)
        kernel = kernel.contiguous(memory_format=torch.channels_last)
        biases = F.pad(bias.repeat(2), (0, more)).repeat(2)
        y = F.conv2d(x.permute(0, 3, 1, 2), kernel, biases, padding=1)
        n, _, height, width = y.shape  # one more than pixels: also around the border
        y = y.permute(0, 2, 3, 1).reshape(n, height, width, 2, -1)[..., :used].transpose(2, 3)
        return y.reshape(n, 2 * height, 2 * width, outputs)[:, 1:-1, 1:-1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, _ = torch.ops.aten.convolution_backward(
            gradient.permute(0, 3, 1, 2),
            x.permute(0, 3, 1, 2),
            weight,
            bias_sizes=None,
            stride=[2, 2],
            padding=[1, 1],
            dilation=[1, 1],
            transposed=True,
            output_padding=[0, 0],
            groups=1,
            output_mask=[True, True, False],
        )
        of_bias = gradient.sum((0, 1)).sum(0)  # in one step, three sums at a time would be made
        return of_x.permute(0, 2, 3, 1), of_weight, of_bias
