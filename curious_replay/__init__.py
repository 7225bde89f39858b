"""Curious Replay: world-model agents that adapt when their world changes.

import curious_replay as cr

buffer = cr.ReplayBuffer(capacity=100_000, length=64, rule=cr.Curious())
env = cr.make("toy/two-rooms", scale="mini")
config = cr.preset(cr.Choice(env="toy/mirror", agent="dreamerv3", replay="curious", scale="debug"))

Names are imported when they are first used, so that this import costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from curious_replay.agents.interface import Agent, Feedback
    from curious_replay.agents.spaces import Spaces
    from curious_replay.analysis.load import load_run
    from curious_replay.envs.registry import make, register_env
    from curious_replay.envs.schedule import Schedule
    from curious_replay.envs.switch import Switch
    from curious_replay.envs.vectors.vector import make_vector
    from curious_replay.errors import UsageError
    from curious_replay.experiments.catalogue import register_experiment
    from curious_replay.replay.batch import Batch
    from curious_replay.replay.buffer import ReplayBuffer
    from curious_replay.replay.mixture import Balanced, Mixture
    from curious_replay.replay.priority import (
        Adversarial,
        Count,
        Curious,
        TemporalDifference,
        Uniform,
    )
    from curious_replay.replay.rule import Rule
    from curious_replay.replay.saves.reading import SavedBuffer
    from curious_replay.run.forking import fork
    from curious_replay.run.saved_run import evaluate, load_agent
    from curious_replay.run.settings.agents import register_agent
    from curious_replay.run.settings.config import Choice, Config
    from curious_replay.run.settings.presets import preset
    from curious_replay.run.settings.replay_config import register_rule
    from curious_replay.run.training import train

_HOMES = {
    "replay": (
        "ReplayBuffer", "Batch", "SavedBuffer", "Rule", "Curious", "Balanced", "Count",
        "Adversarial", "TemporalDifference", "Uniform", "Mixture",
    ),
    "envs": ("make", "make_vector", "Schedule", "Switch", "register_env"),
    "agents.interface": ("Agent", "Feedback"),
    "agents.spaces": ("Spaces",),
    "run.settings.config": ("Choice", "Config"),
    "run.settings.presets": ("preset",),
    "run.training": ("train",),
    "run.forking": ("fork",),
    "run.saved_run": ("load_agent", "evaluate"),
    "analysis.load": ("load_run",),
    "run.settings.agents": ("register_agent",),
    "run.settings.replay_config": ("register_rule",),
    "experiments.catalogue": ("register_experiment",),
    "errors": ("UsageError",),
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Adversarial",
    "Agent",
    "Balanced",
    "Batch",
    "Choice",
    "Config",
    "Count",
    "Curious",
    "Feedback",
    "Mixture",
    "ReplayBuffer",
    "Rule",
    "SavedBuffer",
    "Schedule",
    "Spaces",
    "Switch",
    "TemporalDifference",
    "Uniform",
    "UsageError",
    "evaluate",
    "fork",
    "load_agent",
    "load_run",
    "make",
    "make_vector",
    "preset",
    "register_agent",
    "register_env",
    "register_experiment",
    "register_rule",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from curious_replay.extras import explained  # noqa: PLC0415

    with explained(f"curious_replay.{name}"):
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
