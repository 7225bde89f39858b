"""All settings of a run as options: what `curious train` and `curious fork` share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from curious_replay.errors import UsageError
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.config import (
    SCALES,
    Choice,
    Config,
    EvalConfig,
    RecordConfig,
    TrainConfig,
)
from curious_replay.run.settings.config_io import RENAMED, knows, option
from curious_replay.run.settings.env_base import EnvConfig
from curious_replay.run.settings.replay_config import REPLAYS, ReplayConfig

Argument = tyro.conf.arg
SELECTORS = ("env", "agent", "replay", "scale")
GROUPS = ("env", "agent", "replay", "train", "eval", "record")


@dataclass(frozen=True, kw_only=True)
class SettingsCommand:
    """The options of a command that trains."""

    env_name: Annotated[
        str,
        Argument(
            name="env",
            help="Environment: a name of `curious envs`, a Gymnasium id, module:Class, or switch.",
        ),
    ]
    agent_name: Annotated[str, Argument(name="agent", help=f"Agent: {', '.join(AGENTS)}.")]
    replay_name: Annotated[str, Argument(name="replay", help=f"Replay: {', '.join(REPLAYS)}.")]
    scale: Annotated[
        str,
        Argument(
            help=f"{', '.join(SCALES)}: as published (needs a graphics card), two CPU cores for "
            "some minutes, or some seconds to see that it runs."
        ),
    ]
    seed: int = 0
    """Seed of everything that is random."""
    env: EnvConfig
    agent: Any
    replay: ReplayConfig
    train: TrainConfig
    eval: EvalConfig
    record: RecordConfig

    @property
    def config(self) -> Config:
        """The settings that were asked for."""
        choice = Choice(
            env=self.env_name, agent=self.agent_name, replay=self.replay_name, scale=self.scale
        )
        return Config(
            choice=choice, seed=self.seed, **{name: getattr(self, name) for name in GROUPS}
        )


def values_of(config: Config) -> dict[str, Any]:
    """Return the fields of a `SettingsCommand` for these settings."""
    choice = config.choice
    return {
        "env_name": choice.env,
        "agent_name": choice.agent,
        "replay_name": choice.replay,
        "scale": choice.scale,
        "seed": config.seed,
        **{name: getattr(config, name) for name in GROUPS},
    }


def refuse_old_names(arguments: Sequence[str], config: Config) -> None:
    """Refuse options that have another name now, unless these settings have one of that name."""
    asked = {text.partition("=")[0] for text in arguments}
    for old, new in RENAMED.items():
        group, _, path = old.partition(".")
        if option(old) in asked and not knows(type(getattr(config, group)), path):
            raise UsageError(f"{option(old)} is now {option(new)}, for all agents")


def given(arguments: Sequence[str], name: str) -> str | None:
    """Return the value of an option on the command line; the last one counts."""
    value = None
    for index, text in enumerate(arguments):
        if text == f"--{name}" and index + 1 < len(arguments):
            value = arguments[index + 1]
        elif text.startswith(f"--{name}="):
            value = text.partition("=")[2]
    return value
