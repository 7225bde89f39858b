"""Settings of environments: one class for each family, whose fields are what can be chosen.

Those of worlds of cells are in grid_config.py, what all share in env_base.py.
"""

import json
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from curious_replay.agents.spaces import IMAGE_SIZES
from curious_replay.bounds import Within
from curious_replay.envs import registry
from curious_replay.errors import UsageError
from curious_replay.run.settings.config_io import Phases
from curious_replay.run.settings.env_base import EnvConfig, ScaledConfig
from curious_replay.run.settings.grid_config import (
    CountConfig,
    KeySwapConfig,
    LavaConfig,
    MiniGridConfig,
    MirrorConfig,
    NewObjectConfig,
    TwoRoomsConfig,
)

Camera = Literal["auto", "egl", "osmesa", "ray"]


@dataclass(frozen=True, kw_only=True)
class CrafterConfig(EnvConfig):
    """Crafter, with and without reward."""

    length: Annotated[int, Within(0)] = 10_000
    """Steps after which an episode is cut; 0: never."""
    deterministic: bool = True
    """Look at creatures in order of age where the stock game has them in the order of their
    memory addresses: the same game, but a run can be repeated and resumed exactly."""


@dataclass(frozen=True, kw_only=True)
class SimulatedConfig(ScaledConfig):
    """Simulated bodies."""

    action_repeat: Annotated[int, Within(1, 100)] = 2
    """Frames that each action is held for."""
    camera: Camera = "auto"
    """What draws the pictures: OpenGL (egl, osmesa) or rays; auto is the first that works."""
    shadows: bool = False
    """Keep shadows, reflections and smooth edges (OpenGL only, slow)."""
    episode_frames: Annotated[int | None, Within(1)] = None
    """Frames after which an episode is cut; None: as published."""


@dataclass(frozen=True, kw_only=True)
class ChangingConfig(SimulatedConfig):
    """Control tasks that change."""

    schedule: Phases = None
    """Frames and the phases that begin there, as in: 0 constrained 20000 free."""


@dataclass(frozen=True, kw_only=True)
class BackgroundConfig(ChangingConfig):
    """Control tasks in front of pictures."""

    images: str | None = None
    """Folder of background pictures; None: painted landscapes."""
    clips: tuple[str, ...] | None = None
    """Which of its subfolders (or pictures), in this order; None: all, by name."""
    background_seed: int = 1
    """Which landscapes are painted."""


@dataclass(frozen=True, kw_only=True)
class AssayConfig(ChangingConfig):
    """The object-interaction assay."""

    reward: Literal["none", "released"] = "none"
    """None, as in the paper, or that of the released code."""
    appears: Literal["fixed", "away"] = "fixed"
    """Where a ball appears: in one place, as published, also if the agent is there, or in the one
    of four that is farthest from the agent."""
    replay_episode_steps: Annotated[int | None, Within(1)] = None
    """Report the end of an episode after so many steps but go on, as released (250)."""


@dataclass(frozen=True, kw_only=True)
class UserEnvConfig(EnvConfig):
    """An environment of the user's own."""

    image_sizes: ClassVar[tuple[int, ...]] = IMAGE_SIZES

    action_repeat: Annotated[int, Within(1, 100)] = 1
    """Frames that each action is held for."""
    arguments_json: str = "{}"
    """Arguments it is made with, as in: '{"size": 5}'."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.arguments()

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that the environment is made with."""
        return _object(self.arguments_json, """'{"size": 5}'""")


@dataclass(frozen=True, kw_only=True)
class SwitchConfig(ScaledConfig):
    """Any worlds, one for each phase."""

    image_sizes: ClassVar[tuple[int, ...]] = IMAGE_SIZES
    phases: tuple[str, ...] = ()
    """A world for each phase, by the names that --env takes, as in: before=CartPole-v1
    after=my_module:Heavy."""
    schedule: Phases = None
    """Frames and the phases that begin there, as in: 0 before 20000 after."""
    at: Literal["step", "episode"] = "step"
    """When the world changes: at the step that the schedule says, which ends the episode, or with
    the episode that is next."""
    action_repeat: Annotated[int, Within(1, 100)] = 1
    """Frames that each action is held for."""
    arguments_json: str = "{}"
    """Arguments of the worlds by phase, as in: '{"after": {"size": 5}}'; those of a world of
    `curious envs` are its settings."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for phase, given in self.arguments().items():
            if not isinstance(given, dict):
                raise UsageError(
                    f"--env.arguments-json must hold an object for each phase, got {given!r} for "
                    f"{phase!r}"
                )
        if len(self.worlds()) < len(self.phases):
            raise UsageError(f"--env.phases names a phase twice: {' '.join(self.phases)}")

    def worlds(self) -> dict[str, str]:
        """Return the name of each phase's world."""
        named = [each.partition("=") for each in self.phases]
        for (phase, _, world), each in zip(named, self.phases, strict=True):
            if not phase or not world:
                raise UsageError(f"--env.phases must be given as before=CartPole-v1, got {each!r}")
        return {phase: world for phase, _, world in named}

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that the worlds are made with, by phase."""
        return _object(self.arguments_json, """'{"after": {"size": 5}}'""")


def _object(text: str, example: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        values = error
    if not isinstance(values, dict):
        raise UsageError(
            f"--env.arguments-json must be a JSON object such as {example}, got {text!r}"
        )
    return values


FAMILIES: dict[str, type[EnvConfig]] = {
    "assay": AssayConfig,
    "background": BackgroundConfig,
    "constrained": ChangingConfig,
    "control": SimulatedConfig,
    "crafter": CrafterConfig,
    "toy/count": CountConfig,
    "toy/two-rooms": TwoRoomsConfig,
    "toy/mirror": MirrorConfig,
    "minigrid/key-swap": KeySwapConfig,
    "minigrid/lava": LavaConfig,
    "minigrid/new-object": NewObjectConfig,
    "minigrid": MiniGridConfig,
    "user": UserEnvConfig,
    "switch": SwitchConfig,
}


def family_of(name: str) -> str:
    """Return the family of an environment by its name: one of the keys of `FAMILIES`."""
    if name == "switch":
        return "switch"
    if is_user_env(name):
        return "user"
    entry = registry.find(name)
    return next(key for key in FAMILIES if key == entry.name or key in entry.tags)


def is_user_env(name: str) -> bool:
    """Return whether a name means an environment of the user's.

    That is "module:Class" or a Gymnasium id.
    """
    import gymnasium  # noqa: PLC0415  # the registry of ids, needed for names that are not ours

    if name in registry.ALIASES:
        return True
    return name not in registry.names() and (":" in name or name in gymnasium.registry)
