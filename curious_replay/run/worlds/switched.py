"""The worlds that a switch is made of, from its settings."""

import json
from dataclasses import fields
from typing import Any

from curious_replay.errors import UsageError
from curious_replay.run.settings.config_io import from_json, to_json
from curious_replay.run.settings.env_base import EnvConfig
from curious_replay.run.settings.env_config import FAMILIES, SwitchConfig, UserEnvConfig, family_of

SHARED = ("image_size", "scale", "action_repeat")
"""Settings of the switch that its worlds take over, where they have them."""


def worlds_of(config: SwitchConfig) -> dict[str, tuple[str, EnvConfig]]:
    """Return name and settings of the world of each phase; what cannot be is refused."""
    if not config.phases or config.schedule is None:
        raise UsageError(
            "--env switch needs worlds and when they change: --env.phases, as in "
            "before=CartPole-v1 after=my_module:Heavy, and --env.schedule, as in 0 before 20000 "
            "after"
        )
    worlds, arguments = config.worlds(), config.arguments()
    for option, named in (
        ("--env.schedule", [phase for _, phase in config.schedule]),
        ("--env.arguments-json", arguments),
    ):
        for phase in named:
            if phase not in worlds:
                raise UsageError(
                    f"{option} names the phase {phase!r}, --env.phases has {', '.join(worlds)}"
                )
    return {
        phase: (world, _settings(phase, world, config, arguments.get(phase, {})))
        for phase, world in worlds.items()
    }


def _settings(phase: str, world: str, config: SwitchConfig, given: dict[str, Any]) -> EnvConfig:
    kind = FAMILIES[family_of(world)]
    if kind is SwitchConfig:
        raise UsageError(f"--env.phases: the world of {phase!r} cannot be a switch itself")
    names = [field.name for field in fields(kind)]
    if config.action_repeat != 1 and "action_repeat" not in names:
        raise UsageError(
            f"--env.action-repeat must be 1, got {config.action_repeat}: {world}, the world of "
            f"{phase!r}, takes one action a frame"
        )
    shared = {name: getattr(config, name) for name in SHARED if name in names}
    if kind is UserEnvConfig:
        return UserEnvConfig(**shared, arguments_json=json.dumps(given))
    try:
        settings: EnvConfig = from_json(kind, {**to_json(kind(**shared)), **given}, "env")
    except UsageError as error:
        raise UsageError(f"the world of {phase!r}, {world}: {error}") from error
    return settings
