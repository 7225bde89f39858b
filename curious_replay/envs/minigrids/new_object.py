"""Four rooms without any task, in which an object appears at T0: will anybody push it?

The assay of `two_rooms` among MiniGrid's walls, which have to be looked behind.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from minigrid.core.constants import OBJECT_TO_IDX
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Ball

from curious_replay.envs.minigrids.changing import ChangingGame, ChangingGrid
from curious_replay.envs.schedule import ScheduleLike
from curious_replay.errors import UsageError

Array = np.ndarray
Cell = tuple[int, int]
ENDLESS = 2**31
_AROUND = ((1, 0), (0, 1), (-1, 0), (0, -1))


class NewObjectGame(ChangingGame):
    """Four rooms with a gap in each wall between two of them, and a ball in one of them."""

    phases = ("empty", "object")
    moves = 3  # left, right, forward
    ball: Cell | None = None

    def __init__(self, size: int, length: int) -> None:
        mission = MissionSpace(mission_func=lambda: "look around")
        super().__init__(mission_space=mission, grid_size=size, max_steps=length)

    def _gen_grid(self, width: int, height: int) -> None:
        """Build the rooms, which are always the same, and put the agent anywhere."""
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        middle = width // 2
        self.grid.vert_wall(middle, 0)
        self.grid.horz_wall(0, middle)
        for gap in (middle // 2, middle + middle // 2):
            self.grid.set(middle, gap, None)
            self.grid.set(gap, middle, None)
        self.place_agent()
        self.ball = None

    def become(self, phase: str) -> None:
        """Take the ball away, or put one where it is out of view and can be pushed any way."""
        super().become(phase)
        if self.ball is not None:
            self.grid.set(*self.ball, None)
            self.ball = None
        if phase == "object":
            inside = range(1, self.width - 1)
            places = [cell for cell in product(inside, inside) if self._roomy(*cell)]
            hidden = [cell for cell in places if not self.in_view(*cell)]
            choice = hidden or places
            self._put_ball(choice[self.np_random.integers(len(choice))])

    def push(self) -> bool:
        """Move the ball if it is right before the agent; whether it was, also if it is stuck."""
        if self.ball != tuple(self.front_pos):
            return False
        assert self.ball is not None
        x, y = self.ball + self.dir_vec
        if self.grid.get(x, y) is None:
            self.grid.set(*self.ball, None)
            self._put_ball((int(x), int(y)))
        return True

    def beside_ball(self) -> bool:
        """Return whether the ball is in a cell next to the agent's."""
        if self.ball is None:
            return False
        x, y = self.agent_pos
        return bool(abs(x - self.ball[0]) + abs(y - self.ball[1]) == 1)

    def _put_ball(self, cell: Cell) -> None:
        self.ball = cell
        self.put_obj(Ball("blue"), *cell)

    def _roomy(self, x: int, y: int) -> bool:
        """Return whether a cell inside the outer walls is free, and all four around it."""
        cells = [(x, y), *((x + i, y + j) for i, j in _AROUND)]
        return all(self.grid.get(*c) is None and c != tuple(self.agent_pos) for c in cells)


class NewObject(ChangingGrid):
    """Four rooms in a square of `size` cells; in phase "object" a blue ball lies in one of them.

    Walking into the ball pushes it one cell on, if that cell is free.

    - actions: left, right, forward; reward 0; it never ends unless `length` (steps) is given;
    - the agent begins anywhere, the ball appears where the agent does not look;
    - `log_contacts`, `log_interactions`, `log_object_position` and `log_object_pixels` are those of
      `toy/two-rooms`.
    """

    _game: NewObjectGame

    def __init__(
        self,
        *,
        schedule: ScheduleLike = ((0, "empty"), (100_000, "object")),
        size: int = 13,
        length: int | None = None,
        **grid: Any,
    ) -> None:
        if size < 9 or size % 4 != 1:
            raise UsageError(f"size must be 9, 13, 17 or so on (rooms of equal size), got {size}")
        if length is not None and length < 1:
            raise UsageError(f"length must be None (endless) or a number of steps, got {length}")
        game = NewObjectGame(size, ENDLESS if length is None else length)
        super().__init__(game, schedule=schedule, **grid)
        self._touched = self._first = self._in_contact = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Open the next episode; a seed begins a new history, at frame 0."""
        self._touched = self._first = self._in_contact = False
        return super().reset(seed=seed, options=options)

    def _play(self, action: int) -> tuple[Array, float, bool, bool]:
        self._touched = action == self._game.actions.forward and self._game.push()
        self._first = self._touched and not self._in_contact
        outcome = super()._play(action)
        near = self._in_contact and self._game.beside_ball()
        self._in_contact = self._touched or near
        return outcome

    def _extra_state(self) -> dict[str, Any]:
        ball = self._game.ball
        return {"ball": None if ball is None else [int(n) for n in ball], "near": self._in_contact}

    def _restore(self, state: Mapping[str, Any]) -> None:
        ball = state["ball"]
        self._game.ball = None if ball is None else (int(ball[0]), int(ball[1]))
        self._in_contact = state["near"]

    def _info(self, symbols: Array) -> dict[str, Any]:
        x, y = self._game.ball or (-1, -1)
        seen = (symbols[..., 0] == OBJECT_TO_IDX["ball"]).sum() * self._view.cell**2
        return {
            **super()._info(symbols),
            "log_object_position": np.array((y, x), np.int16),
            "log_contacts": np.int32(self._touched),
            "log_interactions": np.int32(self._first),
            "log_object_pixels": np.int32(seen),
        }
