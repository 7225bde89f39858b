"""The agents by name: their settings, how one is made, and their presets.

A further agent is one more entry here and one more table of presets.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curious_replay.agents.dreamer_v3_config import DreamerV3Config
from curious_replay.run.settings import within

if TYPE_CHECKING:  # PyTorch is imported when an agent is made
    from curious_replay.agents.interface import Agent, Spaces


@dataclass(frozen=True)
class AgentEntry:
    """One agent."""

    config: type
    """Dataclass of its settings."""
    make: "Callable[[Any, Spaces, int, str], Agent]"
    """Makes one from settings, spaces, seed and device."""
    bounds: Mapping[str, tuple[float, float | None]]
    """Least and most value of its numbers."""

    def check(self, config: Any) -> None:
        """Refuse settings that cannot work."""
        if type(config) is not self.config:
            raise TypeError(f"expected {self.config.__name__}, got {config!r}")
        within("agent", config, self.bounds)


def _make_dreamer_v3(config: Any, spaces: "Spaces", seed: int, device: str) -> "Agent":
    from curious_replay.agents.dreamer_v3 import DreamerV3  # noqa: PLC0415

    return DreamerV3(config, spaces, seed, device)


POSITIVE = (1e-30, 1e30)
SHARE = (0.0, 1.0)

AGENTS: dict[str, AgentEntry] = {
    "dreamerv3": AgentEntry(
        config=DreamerV3Config,
        make=_make_dreamer_v3,
        bounds={
            "unimix": SHARE,
            "bins": (2, 100_001),
            "free_nats": (0, 1e30),
            "dynamics_scale": (0, 1e30),
            "representation_scale": (0, 1e30),
            "model_lr": POSITIVE,
            "model_eps": POSITIVE,
            "model_clip": POSITIVE,
            "actor_lr": POSITIVE,
            "critic_lr": POSITIVE,
            "actor_critic_eps": POSITIVE,
            "actor_critic_clip": POSITIVE,
            "imagination": (1, 1000),
            "discount_horizon": (1, 1e30),
            "return_lambda": SHARE,
            "entropy": (0, 1e30),
            "return_decay": SHARE,
            "slow_fraction": SHARE,
        },
    ),
}
