"""Settings and sizes of IRIS; nothing here needs PyTorch.

Defaults are the published ones; presets replace them.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from curious_replay.bounds import NotNegative, Positive, Share, Within
from curious_replay.errors import UsageError


@dataclass(frozen=True)
class Size:
    """Widths of the networks."""

    channels: int
    """Of the tokenizer's convolutions."""
    groups: int
    """Of their norms."""
    blocks: int
    """Residual blocks at each resolution of the encoder; the decoder has one more."""
    codes: int
    """Different tokens."""
    code: int
    """Numbers that describe a token."""
    layers: int
    """Of the transformer."""
    heads: int
    width: int
    units: int
    """Of the actor's and critic's memory."""
    eye: tuple[int, int, int, int] = (32, 32, 64, 64)
    """Channels of the convolutions before it."""
    initial: float = 0.02
    """Standard deviation of the transformer's first weights. Narrow layers need larger ones: with
    weights this small they look everywhere alike, and take long to learn where to look."""


SIZES = {
    "paper": Size(64, 32, 2, codes=512, code=512, layers=10, heads=4, width=256, units=512),
    "small": Size(32, 16, 1, codes=256, code=128, layers=4, heads=4, width=128, units=256),
    "nano": Size(
        16,
        8,
        1,
        codes=64,
        code=32,
        layers=2,
        heads=4,
        width=64,
        units=128,
        eye=(16, 16, 32, 32),
        initial=0.1,
    ),
    "micro": Size(
        16,
        8,
        0,
        codes=8,
        code=16,
        layers=2,
        heads=4,
        width=64,
        units=64,
        eye=(8, 16, 16, 32),
        initial=0.2,
    ),
    "debug": Size(4, 2, 1, codes=8, code=4, layers=2, heads=2, width=8, units=8, eye=(4, 4, 4, 4)),
}
SizeName = Literal["paper", "small", "nano", "micro", "debug"]


@dataclass(frozen=True)
class IrisConfig:
    """Settings of IRIS."""

    size: SizeName = "paper"
    """Widths of all networks."""
    context: Annotated[int, Within(2, 10_000)] = 20
    """Steps that the transformer can look back, and most of a window of the world model."""
    dropout: Annotated[float, Within(0.0, 0.99)] = 0.1
    """In the transformer, while it learns."""
    pictures: Annotated[int, Within(1, 65_536)] = 256
    """Pictures that the tokenizer learns from at each update."""
    starts: Annotated[int, Within(1, 65_536)] = 64
    """Dreams that actor and critic learn from at each update."""
    burn_in: Annotated[int, Within(0, 10_000)] = 20
    """Steps that they see before a dream begins."""
    imagination: Annotated[int, Within(2, 1000)] = 20
    """States in a dream; the value of the last one stands for what would follow."""
    model_after: Annotated[int, Within(0, 1_000_000_000)] = 4000
    """Updates of the tokenizer alone before the world model learns too."""
    actor_after: Annotated[int, Within(0, 1_000_000_000)] = 9000
    """Updates before actor and critic learn too."""
    tokenizer_lr: Positive = 1e-4
    """Learning rate of the tokenizer."""
    settled: Share = 1.0
    """Factor of the tokenizer's learning rate from when the world model learns too. Below 1, tokens
    keep their meaning while it learns what they mean."""
    model_lr: Positive = 1e-4
    """Learning rate of the world model."""
    actor_critic_lr: Positive = 1e-4
    """Learning rate of the actor and critic."""
    eps: Positive = 1e-8
    """Epsilon of Adam."""
    clip: Positive = 10.0
    """Largest norm of each of the three gradients."""
    decay: Share = 0.01
    """Share of the weights of the world model's linear layers that an update takes off, times its
    learning rate."""
    reconstruction: Literal["absolute", "squared"] = "absolute"
    """Error of pictures that the tokenizer reduces. Without the perceptual loss, the absolute one
    is content to leave small things out."""
    commitment: NotNegative = 1.0
    """Weight of the loss that keeps the encoder near its codes."""
    vgg: str = ""
    """File with the weights of VGG16 for the perceptual loss; without it there is no such loss."""
    lpips: str = ""
    """File with the five linear layers of LPIPS for it."""
    discount: Share = 0.995
    """What a reward is worth one step earlier, from 0 to 1."""
    return_lambda: Share = 0.95
    """Mixture of imagined returns: 0 asks the critic after one step, 1 only at the end."""
    entropy: NotNegative = 1e-3
    """Weight of the actor's entropy."""
    exploration: Share = 0.01
    """Share of random actions while collecting."""
    temperature: Annotated[float, Within(1e-06, 1000000.0)] = 0.5
    """By which the actor's logits are divided where it is evaluated."""

    def __post_init__(self) -> None:
        if self.actor_after < self.model_after:
            raise UsageError(
                f"actor_after must be at least model_after ({self.model_after}): "
                f"actor and critic learn inside the world model, got {self.actor_after}"
            )
        if bool(self.vgg) != bool(self.lpips):
            given, missing = ("vgg", "lpips") if self.vgg else ("lpips", "vgg")
            raise UsageError(f"{given} needs {missing}: the perceptual loss is made of both")
