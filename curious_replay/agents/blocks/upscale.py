"""Transposed convolutions to few channels, such as the last one to an image, quickly on a CPU.

The kernels of CPUs work on many output channels at once, and an image has three. But of the four
pixels that a pixel becomes, each is a convolution of the pixels around: one convolution to all
twelve numbers, which are then put in their places, takes half the time.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812

# Rows of the 3 x 3 neighbours that the upper and the lower of two new rows are made of, each with
# its row of the 4 x 4 kernel. The same holds for columns.
_TAPS = (((0, 3), (1, 1)), ((1, 2), (2, 0)))


def upscale(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Double an image: `F.conv_transpose2d` with stride 2 and padding 1.

    x [N, H, W, C], weight [C, D, 4, 4], bias [D] -> [N, 2 H, 2 W, D].
    """
    few = x.device.type == "cpu" and weight.shape[1] < 8  # fewer than a register holds
    if few and not torch.is_autocast_enabled("cpu"):
        double: Any = _Upscale.apply
        result: Tensor = double(x, weight, bias)
        return result
    x = x.permute(0, 3, 1, 2)
    return F.conv_transpose2d(x, weight, bias, stride=2, padding=1).permute(0, 2, 3, 1)


class _Upscale(torch.autograd.Function):
    """See the module; backwards, where the image is the input, there is nothing to gain."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        inputs, outputs = weight.shape[:2]
        kernel = weight.new_zeros(2, 2, outputs, inputs, 3, 3)
        for down, rows in enumerate(_TAPS):
            for right, columns in enumerate(_TAPS):
                for row, from_row in rows:
                    for column, from_column in columns:
                        tap = weight[:, :, from_row, from_column].T
                        kernel[down, right, :, :, row, column] = tap
        kernel = kernel.flatten(0, 2).contiguous(memory_format=torch.channels_last)
        y = F.conv2d(x.permute(0, 3, 1, 2), kernel, bias.repeat(4), padding=1)
        n, height, width = x.shape[:3]
        y = y.permute(0, 2, 3, 1).reshape(n, height, width, 2, 2, outputs).transpose(2, 3)
        return y.reshape(n, 2 * height, 2 * width, outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = torch.ops.aten.convolution_backward(
            gradient.permute(0, 3, 1, 2),
            x.permute(0, 3, 1, 2),
            weight,
            bias_sizes=[weight.shape[1]],
            stride=[2, 2],
            padding=[1, 1],
            dilation=[1, 1],
            transposed=True,
            output_padding=[0, 0],
            groups=1,
            output_mask=[True, True, True],
        )
        return of_x.permute(0, 2, 3, 1), of_weight, of_bias
