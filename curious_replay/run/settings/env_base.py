"""Settings that all environments, or many kinds of them, share."""

from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

from curious_replay.agents.spaces import IMAGE_SIZES
from curious_replay.bounds import Within
from curious_replay.envs import Schedule
from curious_replay.envs.interface import LEAST
from curious_replay.errors import UsageError
from curious_replay.run.settings.config_io import within


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """What all environments share."""

    num_envs: Annotated[int, Within(1, 4096)] = 1
    """Environments that run side by side."""
    processes: bool = True
    """Each in a process of its own: they step while the agent learns, and may crash."""
    image_size: int = 64
    """Pixels of a picture, per side: 32, 64 or 128, and 16 in grids and in worlds of your own."""

    max_restarts: Annotated[int | None, Within(0)] = None
    """Restarts of environments that failed, of all together, after which one more failure stops
    the run; None: only failures in a row do."""

    image_sizes: ClassVar[tuple[int, ...]] = tuple(s for s in IMAGE_SIZES if s >= LEAST)

    def __post_init__(self) -> None:
        within("env", self)
        if self.image_size not in self.image_sizes:
            sizes = ", ".join(map(str, self.image_sizes))
            raise UsageError(f"--env.image-size must be one of {sizes}, got {self.image_size}")
        schedule = getattr(self, "schedule", None)
        if schedule is not None:
            try:
                Schedule.of(schedule)
            except ValueError as error:
                raise UsageError(f"--env.schedule: {error}") from None

    @property
    def frames_per_step(self) -> int:
        """Frames that one action is held for."""
        return int(getattr(self, "action_repeat", 1))

    def arguments(self) -> dict[str, Any]:
        """Return the environment's own arguments; None leaves it its own choice."""
        shared = ("num_envs", "processes", "max_restarts")
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in shared}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ScaledConfig(EnvConfig):
    """A world that comes in two sizes."""

    scale: Literal["paper", "mini"] = "paper"
    """Size of the world and of its schedule."""


@dataclass(frozen=True, kw_only=True)
class GridConfig(ScaledConfig):
    """A world of cells, which few pixels can show."""

    image_sizes: ClassVar[tuple[int, ...]] = IMAGE_SIZES
