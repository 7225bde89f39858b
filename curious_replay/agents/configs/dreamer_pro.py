"""Settings and sizes of DreamerPro; nothing here needs PyTorch.

Defaults are those for Crafter; presets replace them.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config, Size
from curious_replay.bounds import NotNegative, Positive, Share, Within

SIZES = {
    # As published: categorical by default, Gaussian on control tasks.
    "D": Size(400, 400, 48, 4, 400, latents=32, classes=32, norm=False),
    "G": Size(200, 200, 48, 4, 400, latents=32, classes=0, norm=False),
    # For CPUs.
    "nano-D": Size(128, 128, 8, 2, 128, latents=16, classes=8, norm=False),
    "nano-G": Size(128, 128, 8, 2, 128, latents=16, classes=0, norm=False),
    "debug-D": Size(16, 16, 2, 1, 16, latents=4, classes=4, norm=False),
    "debug-G": Size(16, 16, 2, 1, 16, latents=6, classes=0, norm=False),
}
SizeName = Literal["D", "G", "nano-D", "nano-G", "debug-D", "debug-G"]


@dataclass(frozen=True)
class DreamerProConfig(DreamerV2Config):
    """Settings of DreamerPro; what it shares with DreamerV2 means the same there."""

    size: SizeName = "D"
    """Widths of all networks; names with D have categorical latents, names with G Gaussian ones."""
    model_lr: Positive = 3e-4
    """Learning rate of the world model."""
    imagination: Annotated[int, Within(2, 1000)] = 14
    """Steps imagined from every replayed one. Published as 15, which counts the first state too."""
    prototypes: Annotated[int, Within(2, 1_000_000)] = 2500
    """Directions that images and states are sorted by."""
    prototype_size: Annotated[int, Within(2, 100_000)] = 32
    """Numbers of each of them."""
    frozen_updates: Annotated[int, Within(0)] = 10_000
    """Updates in which no gradient moves the prototypes."""
    sinkhorn_eps: Positive = 0.05
    """How evenly targets spread over similar prototypes; small: one gets all."""
    temperature: Positive = 0.1
    """By which scores are divided to make predictions of them."""
    norm_scale: NotNegative = 1.0
    """Weight of the loss that keeps what is compared with prototypes at unit length."""
    reward_scale: NotNegative = 1.0
    """Weight of the loss of the reward; published: 1000 before natural videos."""
    teacher_fraction: Share = 0.05
    """Part of the way that the teacher follows the encoder with each update."""
    shift: NotNegative = 3.0
    """Most pixels, up or down and left or right, that a view is moved by."""

    @property
    def widths(self) -> Size:
        """What the name of the size stands for."""
        return SIZES[self.size]
