"""Settings and sizes of DreamerV2; nothing here needs PyTorch.

Defaults are those of the paper for Crafter; presets replace them.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from curious_replay.bounds import NotNegative, Positive, Share, Within


@dataclass(frozen=True)
class Size:
    """Widths of the networks, and the kind of the latent."""

    deter: int
    hidden: int
    """Width of the hidden layers of the recurrent model."""
    depth: int
    """Channels of the first convolution; each further one has twice as many."""
    layers: int
    units: int
    """Hidden layers of heads, actor and critic are `layers` x `units`."""
    latents: int
    classes: int
    """Classes of each latent; 0: the latents are Gaussian."""
    norm: bool
    """Whether hidden layers have a layer norm; the recurrent cell always has."""


SIZES = {
    # As the paper ran them: categorical on Crafter, Gaussian on control and object interaction.
    "D": Size(1024, 1024, 48, 4, 400, latents=32, classes=32, norm=True),
    "G": Size(200, 200, 48, 4, 400, latents=32, classes=0, norm=False),
    # What the released settings of control and object interaction say, against the paper.
    "released-control": Size(200, 200, 48, 4, 400, latents=32, classes=32, norm=False),
    # For CPUs.
    "small-D": Size(256, 256, 16, 2, 200, latents=32, classes=16, norm=True),
    "small-G": Size(200, 200, 16, 2, 200, latents=32, classes=0, norm=False),
    "nano-D": Size(128, 128, 8, 2, 128, latents=16, classes=8, norm=True),
    "nano-G": Size(128, 128, 8, 2, 128, latents=16, classes=0, norm=False),
    "debug-D": Size(16, 16, 2, 1, 16, latents=4, classes=4, norm=True),
    "debug-G": Size(16, 16, 2, 1, 16, latents=6, classes=0, norm=False),
}
SizeName = Literal[
    "D", "G", "released-control", "small-D", "small-G", "nano-D", "nano-G", "debug-D", "debug-G"
]


@dataclass(frozen=True)
class DreamerV2Config:
    """Settings of DreamerV2."""

    size: SizeName = "D"
    """Widths of all networks; names with D have categorical latents and layer norm, names with G
    have Gaussian latents and none. D and G are the paper's."""
    reward_transform: Literal["none", "tanh"] = "tanh"
    """What becomes of rewards before anything learns from them."""
    discount: Share = 0.999
    """What a reward is worth one step earlier, from 0 to 1."""
    discount_head: bool = True
    """Predict ends of episodes. Without, imagined episodes never end."""
    grad_heads: Literal["all", "observed"] = "all"
    """Which heads shape the state of the model: all of them, or only those of what is observed
    (the paper on control and object interaction; the released code has all)."""
    kl_scale: NotNegative = 1.0
    """Weight of the KL."""
    kl_balance: Share = 0.8
    """Share of the KL that trains the prior; the rest trains the posterior."""
    free_nats: NotNegative = 0.0
    """KL below which it is not reduced further, as a mean over the batch."""
    model_lr: Positive = 1e-4
    """Learning rate of the world model."""
    actor_lr: Positive = 1e-4
    """Learning rate of the actor."""
    critic_lr: Positive = 1e-4
    """Learning rate of the critic."""
    eps: Positive = 1e-5
    """Epsilon of all three Adams."""
    adam: Literal["tensorflow", "pytorch"] = "tensorflow"
    """Where Adam adds its epsilon: before the second moment is corrected for its start (as
    published), or after."""
    clip: Positive = 100.0
    """Largest norm of each of the three gradients."""
    decay: Share = 1e-6
    """Share of every parameter that each update takes off; the learning rate does not scale it."""
    imagination: Annotated[int, Within(2, 1000)] = 15
    """Steps imagined from every replayed one; at least 2."""
    starts: Annotated[float, Within(1e-06, 1.0)] = 1.0
    """Share of the states of a batch that imagination begins from, drawn anew at each update; 1:
    all of them, as published."""
    return_lambda: Share = 0.95
    """Mixture of imagined returns: 0 asks the critic after one step, 1 only at the end."""
    entropy: NotNegative = 3e-3
    """Weight of the actor's entropy."""
    target_every: Annotated[int, Within(1, 1_000_000)] = 100
    """Updates between two copies of the critic to the one that makes its targets."""
    td: Literal["predicted", "imagined", "replayed"] = "predicted"
    """Reward in the signal "td": predicted for the replayed state that is left (the paper,
    DreamerV2), of the first imagined state (the paper, DreamerV3), or the replayed one."""

    @property
    def widths(self) -> Size:
        """What the name of the size stands for."""
        return SIZES[self.size]
