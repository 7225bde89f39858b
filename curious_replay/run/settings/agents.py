"""The agents by name: their settings, presets and how one is made. One entry is one agent.

Bounds of settings stand in the agent's own dataclass, and its networks are imported when one is
made. `register_agent` adds an agent from outside of this package.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curious_replay.agents.configs.dreamer_pro import DreamerProConfig
from curious_replay.agents.configs.dreamer_v2 import DreamerV2Config
from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.agents.configs.iris import IrisConfig
from curious_replay.agents.configs.plan2explore import Plan2ExploreConfig, Plan2ExploreV3Config
from curious_replay.errors import UsageError
from curious_replay.run.settings import agent_presets as presets
from curious_replay.run.settings.config_io import option, within
from curious_replay.run.settings.dreamer_v3_presets import Preset, dreamer_v3

if TYPE_CHECKING:  # PyTorch is imported when an agent is made
    from curious_replay.agents.interface import Agent
    from curious_replay.agents.spaces import Spaces


@dataclass(frozen=True)
class AgentEntry:
    """One agent."""

    config: type
    """Dataclass of its settings."""
    kind: "str | Callable[[Any, Spaces, int, str], Agent]"
    """Makes one from settings, spaces, seed and device: its class, or "module:Class"."""
    preset: Preset
    """What differs from the defaults, by family of environments and choice."""
    predicts_images: bool = True
    """Whether its `open_loop` works."""
    longest: str | None = None
    """Which of its settings limits the steps of a window; None: any length will do."""

    def make(self, config: Any, spaces: "Spaces", seed: int, device: str) -> "Agent":
        """Make an agent with these settings."""
        kind = self.kind
        if isinstance(kind, str):
            module, _, name = kind.partition(":")
            kind = getattr(importlib.import_module(module), name)
        agent: Agent = kind(config, spaces, seed, device)
        return agent

    def check(self, config: Any, batch_length: int) -> None:
        """Refuse settings that cannot work, with windows of `batch_length` steps."""
        if type(config) is not self.config:
            raise TypeError(f"expected {self.config.__name__}, got {config!r}")
        within("agent", config)
        if self.longest is not None and batch_length > getattr(config, self.longest):
            raise UsageError(
                f"--train.batch-length must be at most {option(f'agent.{self.longest}')} "
                f"({getattr(config, self.longest)}), got {batch_length}"
            )


_HERE = "curious_replay.agents"
AGENTS: dict[str, AgentEntry] = {
    "dreamerv3": AgentEntry(DreamerV3Config, f"{_HERE}.dreamer_v3:DreamerV3", dreamer_v3),
    "dreamerv2": AgentEntry(DreamerV2Config, f"{_HERE}.dreamer_v2:DreamerV2", presets.dreamer_v2),
    "dreamerpro": AgentEntry(
        DreamerProConfig, f"{_HERE}.dreamer_pro:DreamerPro", presets.dreamer_pro,
        predicts_images=False,
    ),
    "plan2explore": AgentEntry(
        Plan2ExploreConfig, f"{_HERE}.plan2explore:Plan2Explore", presets.plan2explore
    ),
    "plan2explore-v3": AgentEntry(
        Plan2ExploreV3Config, f"{_HERE}.plan2explore:Plan2Explore", presets.plan2explore_v3
    ),
    "iris": AgentEntry(IrisConfig, f"{_HERE}.iris:Iris", presets.iris, longest="context"),
}  # fmt: skip


def register_agent(
    name: str,
    config: type,
    kind: "str | Callable[[Any, Spaces, int, str], Agent]",
    preset: Preset | None = None,
    *,
    predicts_images: bool = True,
    longest: str | None = None,
) -> None:
    """Make an agent known as `--agent name`; each field of its `config` is an option.

    `config` is a frozen dataclass, `kind` makes an agent from (config, spaces, seed, device): a
    class, or "module:Class", which is imported when it is needed. `preset(family, choice)` says
    what differs from the defaults of all settings; without it nothing does. See `AgentEntry`.
    """
    if name in AGENTS and AGENTS[name].config is not config:
        raise UsageError(f"there is an agent {name!r} already: choose another name")
    AGENTS[name] = AgentEntry(config, kind, preset or _as_it_is, predicts_images, longest)


def _as_it_is(_family: str, _choice: Any) -> dict[str, dict[str, Any]]:
    return {}
