"""A door that one of two keys opens, and from T0 on the other: nothing shows which it is.

In the spirit of NovGrid's changes of MiniGrid's DoorKey, where a door wants another key from an
episode on.
"""

from typing import Any

from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Door, Goal, Key

from curious_replay.envs.minigrids.changing import ChangingGame, ChangingGrid
from curious_replay.envs.schedule import ScheduleLike
from curious_replay.errors import UsageError

DOOR, OTHER = "yellow", "blue"


class KeySwapGame(ChangingGame):
    """Two rooms, a locked door between them, two keys in the first, the goal in the second."""

    phases = ("matching", "swapped")
    moves = 6  # all but "done"

    def __init__(self, size: int, length: int) -> None:
        mission = MissionSpace(mission_func=lambda: "open the door and get to the goal")
        super().__init__(mission_space=mission, grid_size=size, max_steps=length)

    def _gen_grid(self, width: int, height: int) -> None:
        """Draw the places of door, keys and agent; the second room is one cell wide."""
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        wall = width - 3
        self.grid.vert_wall(wall, 0)
        self.put_obj(Goal(), width - 2, height - 2)
        self.put_obj(Door(DOOR, is_locked=True), wall, self._rand_int(1, height - 1))
        for color in (DOOR, OTHER):
            self.place_obj(Key(color), top=(0, 0), size=(wall, height))
        self.place_agent(size=(wall, height))

    def step(self, action: int) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step; what unlocks the door is decided here and not by the door."""
        front = self.grid.get(*self.front_pos)
        if action == self.actions.toggle and isinstance(front, Door) and front.is_locked:
            fits = DOOR if self.phase == "matching" else OTHER
            if isinstance(self.carrying, Key) and self.carrying.color == fits:
                front.is_locked = False
            else:
                action = self.actions.done
        outcome: tuple[Any, Any, bool, bool, dict[str, Any]] = super().step(action)
        return outcome


class KeySwap(ChangingGrid):
    """A room with a yellow and a blue key, a locked yellow door, and a goal behind it.

    In phase "matching" the yellow key opens the door, in phase "swapped" the blue one.

    - actions: left, right, forward, pickup, drop, toggle; one key can be carried at a time;
    - reward: 1 - 0.9 steps / `length` for reaching the goal, which ends the episode; it is cut
      after `length` steps (None: 10 `size`^2);
    - `size` counts cells per side, walls included; keys, door and agent lie elsewhere in each
      episode.
    """

    def __init__(
        self,
        *,
        schedule: ScheduleLike = ((0, "matching"), (100_000, "swapped")),
        size: int = 6,
        length: int | None = None,
        **grid: Any,
    ) -> None:
        if size < 6:
            raise UsageError(f"size must be at least 6 cells, walls included, got {size}")
        if length is not None and length < 1:
            raise UsageError(f"length must be None or a number of steps, got {length}")
        game = KeySwapGame(size, 10 * size**2 if length is None else length)
        super().__init__(game, schedule=schedule, **grid)
