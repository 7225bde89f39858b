"""Images moved by a few pixels."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812


def translate(images: Tensor, pixels: Tensor) -> Tensor:
    """Move images [T, B, H, W, C] by `pixels` [B, 2], right and down; any part of a pixel.

    All T images of a row move alike. Between pixels values are interpolated (bilinear), and what
    comes in from outside continues the border.
    """
    steps, rows, height, width, channels = images.shape
    across = torch.arange(width, device=images.device) - pixels[:, :1]  # where values come from
    down = torch.arange(height, device=images.device) - pixels[:, 1:]
    # In units that count from -1 to 1, from the centre of the first pixel to that of the last.
    x = (2 * across / (width - 1) - 1).unsqueeze(1).expand(-1, height, -1)
    y = (2 * down / (height - 1) - 1).unsqueeze(2).expand(-1, -1, width)
    stacked = images.permute(1, 0, 4, 2, 3).reshape(rows, steps * channels, height, width)
    moved = F.grid_sample(
        stacked, torch.stack([x, y], -1), padding_mode="border", align_corners=True
    )
    unstacked = moved.view(rows, steps, channels, height, width)
    return unstacked.permute(1, 0, 3, 4, 2).contiguous()
