"""Settings of worlds of cells: the toys, and those of MiniGrid."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from curious_replay.bounds import Within
from curious_replay.errors import UsageError
from curious_replay.run.settings.config_io import Phases
from curious_replay.run.settings.env_base import GridConfig


@dataclass(frozen=True, kw_only=True)
class CountConfig(GridConfig):
    """The counting world."""

    length: Annotated[int, Within(1)] = 100
    """Steps of an episode."""
    ending: Literal["terminated", "truncated"] = "terminated"
    """Whether an episode ends truly or by a time limit."""


@dataclass(frozen=True, kw_only=True)
class TwoRoomsConfig(GridConfig):
    """The grid of two rooms."""

    room: Annotated[int, Within(3)] = 9
    """Cells of a room, per side."""
    rooms: Annotated[int, Within(2, 100)] = 2
    """Rooms in a row; the object appears in the last."""
    object_size: Annotated[int, Within(1)] = 1
    """Cells of the object, per side: an odd number."""
    television: Annotated[int, Within(0)] = 0
    """Cells, per side, of a part of the first room that shows noise at every step; 0: none."""
    view: Annotated[int | None, Within(3)] = 9
    """Cells in view, per side; None: the whole world."""
    length: Annotated[int | None, Within(1)] = None
    """Steps of an episode; None: it never ends."""
    schedule: Phases = None
    """Frames and the phases that begin there, as in: 0 empty 1000 object."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.view is not None and self.view % 2 == 0:
            raise UsageError(f"--env.view must be an odd number of cells or None, got {self.view}")

    def arguments(self) -> dict[str, Any]:
        """Return the environment's arguments; a view of None is a choice too."""
        return {**super().arguments(), "view": self.view}


@dataclass(frozen=True, kw_only=True)
class MirrorConfig(GridConfig):
    """The grid whose moves turn round."""

    room: Annotated[int, Within(2)] = 5
    """Cells of the grid, per side."""
    length: Annotated[int, Within(1)] = 30
    """Steps after which an episode without success is cut."""
    floor: Literal["plain", "random"] = "plain"
    """Colour of the floor: one for each phase, or another at every step."""
    schedule: Phases = None
    """Frames and the phases that begin there, as in: 0 straight 2000 mirrored."""


@dataclass(frozen=True, kw_only=True)
class MiniGridConfig(GridConfig):
    """Tasks of MiniGrid."""

    view: Annotated[int, Within(3)] = 7
    """Cells in view, per side."""
    observation: Literal["pixels", "symbols"] = "pixels"
    """What the agent sees: a picture, or the numbers that MiniGrid describes cells with."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.view % 2 == 0:
            raise UsageError(f"--env.view must be an odd number of cells, got {self.view}")


@dataclass(frozen=True, kw_only=True)
class KeySwapConfig(MiniGridConfig):
    """MiniGrid's door that another key opens later."""

    size: Annotated[int, Within(6, 64)] = 6
    """Cells of the world, per side, walls included."""
    length: Annotated[int | None, Within(1)] = None
    """Steps after which an episode without success is cut; None: as in MiniGrid."""
    schedule: Phases = None
    """Frames and the phases that begin there, as in: 0 matching 20000 swapped."""


@dataclass(frozen=True, kw_only=True)
class LavaConfig(MiniGridConfig):
    """MiniGrid's crossing whose walls become lava."""

    size: Annotated[int, Within(5, 63)] = 9
    """Cells of the world, per side, walls included: an odd number."""
    crossings: Annotated[int, Within(1)] = 1
    """Walls, or rivers of lava, across the world."""
    length: Annotated[int | None, Within(1)] = None
    """Steps after which an episode without success is cut; None: as in MiniGrid."""
    schedule: Phases = None
    """Frames and the phases that begin there, as in: 0 walls 20000 lava 40000 walls."""


@dataclass(frozen=True, kw_only=True)
class NewObjectConfig(MiniGridConfig):
    """MiniGrid's four rooms in which an object appears."""

    size: Annotated[int, Within(9, 61)] = 13
    """Cells of the world, per side, walls included: 9, 13, 17 and so on."""
    length: Annotated[int | None, Within(1)] = None
    """Steps of an episode; None: it never ends."""
    schedule: Phases = None
    """Frames and the phases that begin there, as in: 0 empty 20000 object."""
