"""Settings and sizes of DreamerV3; nothing here needs PyTorch.

Defaults are those of the paper for Crafter; presets replace them.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from curious_replay.bounds import NotNegative, Positive, Share, Within


@dataclass(frozen=True)
class Size:
    """Widths of the networks."""

    deter: int
    units: int
    depth: int
    layers: int
    latents: int = 32
    classes: int = 32
    vector_layers: int = 5
    vector_units: int = 1024


SIZES = {
    "XL": Size(deter=4096, units=1024, depth=96, layers=5),
    "L": Size(deter=2048, units=768, depth=64, layers=4),
    "M": Size(deter=1024, units=640, depth=48, layers=3),
    "S": Size(deter=512, units=512, depth=32, layers=2),
    "XS": Size(deter=256, units=256, depth=24, layers=1, vector_layers=2, vector_units=256),
    "tiny": Size(256, 256, 16, 1, classes=16, vector_layers=2, vector_units=256),
    "nano": Size(128, 128, 8, 1, latents=16, classes=8, vector_layers=1, vector_units=128),
    "micro": Size(64, 64, 8, 1, latents=8, classes=8, vector_layers=1, vector_units=64),
    "debug": Size(16, 16, 2, 1, latents=4, classes=4, vector_layers=1, vector_units=16),
}
SizeName = Literal["XL", "L", "M", "S", "XS", "tiny", "nano", "micro", "debug"]


@dataclass(frozen=True)
class DreamerV3Config:
    """Settings of DreamerV3."""

    size: SizeName = "XL"
    """Widths of all networks; XL, L, M and S are the published ones."""
    unimix: Share = 0.01
    """Share of the uniform distribution mixed into latents and discrete actions."""
    bins: Annotated[int, Within(2, 100_001)] = 255
    """Bins of the two-hot reward and value, even in symlog space from -20 to 20."""
    free_nats: NotNegative = 1.0
    """KL below which it is not reduced further, per step."""
    dynamics_scale: NotNegative = 0.5
    """Weight of the KL that trains the prior."""
    representation_scale: NotNegative = 0.1
    """Weight of the KL that trains the posterior."""
    model_lr: Positive = 1e-4
    """Learning rate of the world model."""
    model_eps: Positive = 1e-8
    """Epsilon of the world model's Adam."""
    model_clip: Positive = 1000.0
    """Largest norm of the world model's gradient."""
    actor_lr: Positive = 3e-5
    """Learning rate of the actor."""
    critic_lr: Positive = 3e-5
    """Learning rate of the critic."""
    actor_critic_eps: Positive = 1e-5
    """Epsilon of the Adams of actor and critic."""
    actor_critic_clip: Positive = 100.0
    """Largest norm of the actor's and of the critic's gradient."""
    imagination: Annotated[int, Within(1, 1000)] = 15
    """Steps imagined from every replayed one."""
    discount_horizon: Annotated[float, Within(1.001, 1e30)] = 333.0
    """The discount is 1 - 1 / discount_horizon."""
    starts: Annotated[float, Within(1e-06, 1.0)] = 1.0
    """Share of the states of a batch that imagination begins from, drawn anew at each update; 1:
    all of them, as published."""
    return_lambda: Share = 0.95
    """Mixture of imagined returns: 0 asks the critic after one step, 1 only at the end."""
    entropy: NotNegative = 3e-4
    """Weight of the actor's entropy."""
    return_decay: Share = 0.99
    """Decay of the running 5th and 95th percentile of returns."""
    slow_fraction: Share = 0.02
    """How far the slow critic moves to the critic at each update."""
    td: Literal["imagined", "predicted", "replayed"] = "imagined"
    """Reward in the signal "td": of the first imagined state (the paper, DreamerV3), predicted
    for the replayed state (the paper, DreamerV2), or the replayed one."""
