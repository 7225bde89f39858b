"""The agents by name: their settings, how one is made, and their presets.

A further agent is one more entry here and one more table of presets.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curious_replay.agents.dreamer_pro_config import DreamerProConfig
from curious_replay.agents.dreamer_v2_config import DreamerV2Config
from curious_replay.agents.dreamer_v3_config import DreamerV3Config
from curious_replay.agents.iris_config import IrisConfig
from curious_replay.agents.plan2explore_config import Plan2ExploreConfig, Plan2ExploreV3Config
from curious_replay.run.settings import option, within

if TYPE_CHECKING:  # PyTorch is imported when an agent is made
    from curious_replay.agents.interface import Agent
    from curious_replay.agents.spaces import Spaces


@dataclass(frozen=True)
class AgentEntry:
    """One agent."""

    config: type
    """Dataclass of its settings."""
    make: "Callable[[Any, Spaces, int, str], Agent]"
    """Makes one from settings, spaces, seed and device."""
    bounds: Mapping[str, tuple[float, float | None]]
    """Least and most value of its numbers."""
    predicts_images: bool = True
    """Whether its `open_loop` works."""
    longest: str | None = None
    """Which of its settings limits the steps of a window; None: any length will do."""

    def check(self, config: Any, batch_length: int) -> None:
        """Refuse settings that cannot work, with windows of `batch_length` steps."""
        if type(config) is not self.config:
            raise TypeError(f"expected {self.config.__name__}, got {config!r}")
        within("agent", config, self.bounds)
        if self.longest is not None and batch_length > getattr(config, self.longest):
            raise ValueError(
                f"--train.batch-length must be at most {option(f'agent.{self.longest}')} "
                f"({getattr(config, self.longest)}), got {batch_length}"
            )


def _make_dreamer_v2(config: Any, spaces: "Spaces", seed: int, device: str) -> "Agent":
    from curious_replay.agents.dreamer_v2 import DreamerV2  # noqa: PLC0415

    return DreamerV2(config, spaces, seed, device)


def _make_plan2explore(config: Any, spaces: "Spaces", seed: int, device: str) -> "Agent":
    from curious_replay.agents.plan2explore import Plan2Explore  # noqa: PLC0415

    return Plan2Explore(config, spaces, seed, device)


def _make_dreamer_v3(config: Any, spaces: "Spaces", seed: int, device: str) -> "Agent":
    from curious_replay.agents.dreamer_v3 import DreamerV3  # noqa: PLC0415

    return DreamerV3(config, spaces, seed, device)


def _make_dreamer_pro(config: Any, spaces: "Spaces", seed: int, device: str) -> "Agent":
    from curious_replay.agents.dreamer_pro import DreamerPro  # noqa: PLC0415

    return DreamerPro(config, spaces, seed, device)


def _make_iris(config: Any, spaces: "Spaces", seed: int, device: str) -> "Agent":
    from curious_replay.agents.iris import Iris  # noqa: PLC0415

    return Iris(config, spaces, seed, device)


POSITIVE = (1e-30, 1e30)
SHARE = (0.0, 1.0)

NOT_NEGATIVE = (0.0, 1e30)

DREAMER_V3_BOUNDS = {
    "unimix": SHARE,
    "bins": (2, 100_001),
    "free_nats": NOT_NEGATIVE,
    "dynamics_scale": NOT_NEGATIVE,
    "representation_scale": NOT_NEGATIVE,
    "model_lr": POSITIVE,
    "model_eps": POSITIVE,
    "model_clip": POSITIVE,
    "actor_lr": POSITIVE,
    "critic_lr": POSITIVE,
    "actor_critic_eps": POSITIVE,
    "actor_critic_clip": POSITIVE,
    "imagination": (1, 1000),
    "discount_horizon": (1.001, 1e30),
    "return_lambda": SHARE,
    "entropy": NOT_NEGATIVE,
    "return_decay": SHARE,
    "slow_fraction": SHARE,
}
DREAMER_V2_BOUNDS = {
    "discount": SHARE,
    "kl_scale": NOT_NEGATIVE,
    "kl_balance": SHARE,
    "free_nats": NOT_NEGATIVE,
    "model_lr": POSITIVE,
    "actor_lr": POSITIVE,
    "critic_lr": POSITIVE,
    "eps": POSITIVE,
    "clip": POSITIVE,
    "decay": SHARE,
    "imagination": (2, 1000),  # an action counts from the state it leads to
    "return_lambda": SHARE,
    "entropy": NOT_NEGATIVE,
    "target_every": (1, 1_000_000),
}
DREAMER_PRO_BOUNDS = {
    **DREAMER_V2_BOUNDS,
    "prototypes": (2, 1_000_000),
    "prototype_size": (2, 100_000),
    "frozen_updates": (0, None),
    "sinkhorn_eps": POSITIVE,
    "temperature": POSITIVE,
    "norm_scale": NOT_NEGATIVE,
    "reward_scale": NOT_NEGATIVE,
    "teacher_fraction": SHARE,
    "shift": NOT_NEGATIVE,
}
PLAN2EXPLORE_BOUNDS = {
    "intrinsic_scale": NOT_NEGATIVE,
    "ensemble.members": (2, 1000),
    "ensemble.lr": POSITIVE,
    "ensemble.eps": POSITIVE,
    "ensemble.clip": POSITIVE,
    "ensemble.decay": SHARE,
}
IRIS_BOUNDS = {
    "context": (2, 10_000),
    "dropout": (0.0, 0.99),
    "pictures": (1, 65_536),
    "starts": (1, 65_536),
    "burn_in": (0, 10_000),
    "imagination": (2, 1000),  # the last state only stands for what would follow
    "model_after": (0, 10**9),
    "actor_after": (0, 10**9),
    "tokenizer_lr": POSITIVE,
    "settled": SHARE,
    "model_lr": POSITIVE,
    "actor_critic_lr": POSITIVE,
    "eps": POSITIVE,
    "clip": POSITIVE,
    "decay": SHARE,
    "commitment": NOT_NEGATIVE,
    "discount": SHARE,
    "return_lambda": SHARE,
    "entropy": NOT_NEGATIVE,
    "exploration": SHARE,
    "temperature": (1e-6, 1e6),
}


def _plan2explore_on(bounds: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Bounds of Plan2Explore, and those of its Dreamer one level below."""
    return {**PLAN2EXPLORE_BOUNDS, **{f"dreamer.{name}": b for name, b in bounds.items()}}


AGENTS: dict[str, AgentEntry] = {
    "dreamerv3": AgentEntry(DreamerV3Config, _make_dreamer_v3, DREAMER_V3_BOUNDS),
    "dreamerv2": AgentEntry(DreamerV2Config, _make_dreamer_v2, DREAMER_V2_BOUNDS),
    "dreamerpro": AgentEntry(
        DreamerProConfig, _make_dreamer_pro, DREAMER_PRO_BOUNDS, predicts_images=False
    ),
    "plan2explore": AgentEntry(
        Plan2ExploreConfig, _make_plan2explore, _plan2explore_on(DREAMER_V2_BOUNDS)
    ),
    "plan2explore-v3": AgentEntry(
        Plan2ExploreV3Config, _make_plan2explore, _plan2explore_on(DREAMER_V3_BOUNDS)
    ),
    "iris": AgentEntry(IrisConfig, _make_iris, IRIS_BOUNDS, longest="context"),
}
