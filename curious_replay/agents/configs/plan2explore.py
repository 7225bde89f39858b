"""Settings of Plan2Explore on either Dreamer; nothing here needs PyTorch.

Defaults are the published ones for Crafter (of the ensemble: on DreamerV2); presets replace them.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config
from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.bounds import NotNegative, Positive, Share, Within
from curious_replay.errors import UsageError

Alignment = Literal["correct", "released"]
Switch = Literal["on", "off"]


@dataclass(frozen=True)
class EnsembleConfig:
    """Settings of the one-step models whose disagreement is sought."""

    members: Annotated[int, Within(2, 1000)] = 10
    """Models in the ensemble."""
    loss: Literal["normal", "squared"] = "normal"
    """Negative log-likelihood under unit variance, or the sum of squares: twice as steep."""
    lr: Positive = 3e-4
    """Learning rate of the ensemble."""
    eps: Positive = 1e-5
    """Epsilon of Adam."""
    adam: Literal["tensorflow", "pytorch"] = "tensorflow"
    """Where Adam adds its epsilon, as in the settings of DreamerV2."""
    clip: Positive = 100.0
    """Largest norm of the gradient, of all members together."""
    decay: Share = 1e-6
    """Share of every parameter that each update takes off."""
    layers: Annotated[int, Within(1, 100)] | None = None
    """Hidden layers of each model; None: as many as a head of its Dreamer has."""
    units: Annotated[int, Within(1, 1_000_000)] | None = None
    """Width of these layers; None: that of a head of its Dreamer."""
    target: Literal["sample", "mean", "embedding"] = "sample"
    """What the models predict of the next step: its stochastic state as it was drawn, as published
    for Dreamers; the mean of what that was drawn from; or how the encoders embed what is seen, as
    in the paper of Plan2Explore. Where the state says little, draws are mostly noise, and models
    then differ by how they follow it."""


V3_ENSEMBLE = EnsembleConfig(members=8, loss="squared", lr=1e-4, adam="pytorch", decay=0.0)
"""As published for DreamerV3."""


@dataclass(frozen=True)
class Plan2ExploreConfig:
    """Settings of Plan2Explore on DreamerV2."""

    dreamer: DreamerV2Config = field(default_factory=DreamerV2Config)
    ensemble: EnsembleConfig = field(default_factory=EnsembleConfig)
    intrinsic_scale: NotNegative = 1.0
    """Reward for a unit of disagreement."""
    normalise: Switch = "off"
    """Divide disagreement by its running standard deviation over replayed steps, so that weights
    of reward and entropy keep their meaning while the ensemble learns; off, as published."""
    alignment: Alignment = "correct"
    """Which action the ensemble sees with a state when it predicts the next one: the action taken
    there, or, as in the released code on DreamerV2, the one that led there."""
    task_actor: Switch = "on"
    """Whether a second actor and critic learn from predicted rewards, to be evaluated. Off saves
    their time where there are no rewards; then the exploring policy is evaluated."""

    def __post_init__(self) -> None:
        if self.dreamer.td == "replayed":
            raise UsageError(
                'td must be "predicted" or "imagined" in Plan2Explore: its critic knows '
                "disagreement, not the rewards that were replayed"
            )


@dataclass(frozen=True)
class Plan2ExploreV3Config:
    """Settings of Plan2Explore on DreamerV3, which strives for disagreement only."""

    dreamer: DreamerV3Config = field(default_factory=DreamerV3Config)
    ensemble: EnsembleConfig = V3_ENSEMBLE
    intrinsic_scale: NotNegative = 1.0
    """Reward for a unit of disagreement."""
    normalise: Switch = "off"
    """Divide disagreement by its running standard deviation over replayed steps, so that weights
    of reward and entropy keep their meaning while the ensemble learns; off, as published."""
    alignment: Alignment = "correct"
    """Which action the ensemble sees with a state when it predicts the next one: the action taken
    there (also in the released code on DreamerV3), or the one that led there."""
    task_actor: Switch = "on"
    """Whether a second actor and critic learn from predicted rewards, to be evaluated. Off saves
    their time where there are no rewards; then the exploring policy is evaluated."""

    def __post_init__(self) -> None:
        if self.dreamer.td != "imagined":
            raise UsageError(
                'td must be "imagined" in Plan2Explore on DreamerV3: its critic knows disagreement '
                "of imagined states"
            )
