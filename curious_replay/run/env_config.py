"""Settings of environments: one class for each family, whose fields are what can be chosen."""

import json
from dataclasses import dataclass, fields
from typing import Any, Literal

from curious_replay.envs import Schedule, registry
from curious_replay.run.settings import Phases, option, within

IMAGE_SIZES = (32, 64, 128)
Camera = Literal["auto", "egl", "osmesa", "ray"]


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """What all environments share."""

    num_envs: int = 1
    """Environments that run side by side."""
    processes: bool = True
    """Each in a process of its own: they step while the agent learns, and may crash."""
    image_size: int = 64
    """Pixels of a picture, per side: 32, 64 or 128."""

    def __post_init__(self) -> None:
        within("env", self, {"num_envs": (1, 4096)})
        if self.image_size not in IMAGE_SIZES:
            sizes = ", ".join(map(str, IMAGE_SIZES))
            raise ValueError(f"--env.image-size must be one of {sizes}, got {self.image_size}")
        schedule = getattr(self, "schedule", None)
        if schedule is not None:
            try:
                Schedule.of(schedule)
            except ValueError as error:
                raise ValueError(f"--env.schedule: {error}") from None

    @property
    def frames_per_step(self) -> int:
        """Frames that one action is held for."""
        return int(getattr(self, "action_repeat", 1))

    def arguments(self) -> dict[str, Any]:
        """What the environment itself is made with; None leaves it its own choice."""
        shared = ("num_envs", "processes")
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in shared}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class CrafterConfig(EnvConfig):
    """Crafter, with and without reward."""

    length: int = 10_000
    """Steps after which an episode is cut; 0: never."""
    deterministic: bool = True
    """Look at creatures in order of age where the stock game has them in the order of their
    memory addresses: the same game, but a run can be repeated and resumed exactly."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("env", self, {"length": (0, None)})


@dataclass(frozen=True, kw_only=True)
class ScaledConfig(EnvConfig):
    """A world that comes in two sizes."""

    scale: Literal["paper", "mini"] = "paper"
    """Size of the world and of its schedule."""


@dataclass(frozen=True, kw_only=True)
class SimulatedConfig(ScaledConfig):
    """Simulated bodies."""

    action_repeat: int = 2
    """Frames that each action is held for."""
    camera: Camera = "auto"
    """What draws the pictures: OpenGL (egl, osmesa) or rays; auto is the first that works."""
    shadows: bool = False
    """Keep shadows, reflections and smooth edges (OpenGL only, slow)."""
    episode_frames: int | None = None
    """Frames after which an episode is cut; None: as published."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("env", self, {"action_repeat": (1, 100), "episode_frames": (1, None)})


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
    replay_episode_steps: int | None = None
    """Report the end of an episode after so many steps but go on, as released (250)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("env", self, {"replay_episode_steps": (1, None)})


@dataclass(frozen=True, kw_only=True)
class CountConfig(ScaledConfig):
    """The counting world."""

    length: int = 100
    """Steps of an episode."""
    ending: Literal["terminated", "truncated"] = "terminated"
    """Whether an episode ends truly or by a time limit."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("env", self, {"length": (1, None)})


@dataclass(frozen=True, kw_only=True)
class TwoRoomsConfig(ScaledConfig):
    """The grid of two rooms."""

    room: int = 9
    """Cells of a room, per side."""
    view: int | None = 9
    """Cells in view, per side; None: the whole world."""
    length: int | None = None
    """Steps of an episode; None: it never ends."""
    schedule: Phases = None
    """Frames and the phases that begin there, as in: 0 empty 1000 object."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("env", self, {"room": (3, None), "view": (3, None), "length": (1, None)})
        if self.view is not None and self.view % 2 == 0:
            raise ValueError(f"--env.view must be an odd number of cells or None, got {self.view}")


@dataclass(frozen=True, kw_only=True)
class MirrorConfig(ScaledConfig):
    """The grid whose moves turn round."""

    room: int = 5
    """Cells of the grid, per side."""
    length: int = 30
    """Steps after which an episode without success is cut."""
    schedule: Phases = None
    """Frames and the phases that begin there, as in: 0 straight 2000 mirrored."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("env", self, {"room": (2, None), "length": (1, None)})


@dataclass(frozen=True, kw_only=True)
class OwnConfig(EnvConfig):
    """An environment of the user's own."""

    action_repeat: int = 1
    """Frames that each action is held for."""
    arguments_json: str = "{}"
    """Arguments it is made with, as in: '{"size": 5}'."""

    def __post_init__(self) -> None:
        super().__post_init__()
        within("env", self, {"action_repeat": (1, 100)})
        self.arguments()

    def arguments(self) -> dict[str, Any]:
        """What the environment is made with."""
        try:
            values = json.loads(self.arguments_json)
        except json.JSONDecodeError as error:
            values = error
        if not isinstance(values, dict):
            raise ValueError(
                f"{option('env.arguments_json')} must be a JSON object such as "
                f"""'{{"size": 5}}', got {self.arguments_json!r}"""
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
    "own": OwnConfig,
}


def family(name: str) -> str:
    """Family of an environment by its name: one of the keys of `FAMILIES`."""
    if is_own(name):
        return "own"
    entry = registry.find(name)
    return next(key for key in FAMILIES if key == entry.name or key in entry.tags)


def is_own(name: str) -> bool:
    """Whether a name means an environment of the user's: "module:Class" or a Gymnasium id."""
    import gymnasium  # noqa: PLC0415  # the registry of ids, needed for names that are not ours

    return name not in registry.names() and (":" in name or name in gymnasium.registry)
