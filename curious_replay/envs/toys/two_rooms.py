"""The object interaction assay on a grid: no simulator, thousands of steps a second.

`TwoRooms` has an agent, two rooms joined by a door (or more in a row), and an object that appears
in the last room at T0. All of it is one array of cells, painted through a palette; the agent sees
the cells around it, so the object has to be found.
"""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_replay.envs.interface import (
    LEAST_OF_CELLS,
    METADATA,
    cells_of_pixels,
    check_step,
    image_space,
)
from curious_replay.envs.schedule import Clocked, PhaseClock, Schedule, ScheduleLike
from curious_replay.errors import UsageError

Array = np.ndarray

STAY, UP, DOWN, LEFT, RIGHT = range(5)
MOVES = {STAY: (0, 0), UP: (-1, 0), DOWN: (1, 0), LEFT: (0, -1), RIGHT: (0, 1)}
_WALL, _AGENT, _OBJECT, _TELEVISION = 0, 1, 2, 3
_FLOOR = 4  # then the floors of rooms, each a checkerboard
_PALETTE = np.array(
    [
        (0, 0, 0),
        (245, 245, 245),
        (255, 0, 255),
        (0, 0, 0),  # each of its pixels has a colour of its own
        (98, 104, 22),
        (84, 90, 16),
        (60, 88, 104),
        (50, 74, 90),
        (112, 66, 60),
        (96, 56, 50),
        (84, 70, 116),
        (72, 58, 100),
    ],
    np.uint8,
)
_FLOORS = (len(_PALETTE) - _FLOOR) // 2  # a fifth room looks like the first


class TwoRooms(Clocked, gymnasium.Env[Any, np.int64]):
    """Two rooms of `room` x `room` cells side by side, a door between them, an object at T0.

    The agent (white) starts in the middle of the left room. In phase "object" a magenta object
    lies in the right room; walking into it pushes it one cell on, if there is room for it. It is a
    square of `object_size` cells per side, an odd number. If the agent is in its place it appears
    one cell to the right, and if the agent is there too, as soon as it is not. With more `rooms`
    than two there is a row of them, with the object in the last: the more there are, the less
    likely it is met by chance. A `television` is a square of so many cells per side in the upper
    left corner of the first room: floor whose pixels have random colours at every step.

    - observation: `{"image": uint8 [image_size, image_size, 3]}`, the `view` x `view` cells around
      the agent (None: the whole world); actions: stay, up, down, left, right; reward 0;
    - one step is one frame; it never ends unless `length` (steps) is given, which truncates;
    - `log_contacts` is 1 when the agent walked into the object at this step, `log_interactions`
      1 only at the first such step after they were apart, `log_object_pixels` the number of
      magenta pixels in view; positions are (row, column), of the object that of its middle, and
      (-1, -1) while there is none.
    """

    metadata = METADATA

    def __init__(
        self,
        *,
        schedule: ScheduleLike = ((0, "empty"), (5_000, "object")),
        parallel: int = 1,
        phase: str | None = None,
        room: int = 9,
        rooms: int = 2,
        object_size: int = 1,
        television: int = 0,
        view: int | None = 9,
        length: int | None = None,
        image_size: int = 64,
        render_mode: str | None = None,
    ) -> None:
        if room < 3:
            raise UsageError(f"room must be at least 3 cells wide, got {room}")
        if rooms < 2:
            raise UsageError(f"there must be at least 2 rooms, got {rooms}")
        if object_size % 2 == 0 or not 1 <= object_size < room:
            raise UsageError(
                f"object_size must be an odd number of cells from 1 on, less than the {room} of a "
                f"room, got {object_size}"
            )
        if not 0 <= television <= room:
            raise UsageError(f"television must be from 0 to {room} cells wide, got {television}")
        if view is not None and (view < 3 or view % 2 == 0):
            raise UsageError(f"view must be None or an odd number of cells from 3 on, got {view}")
        if length is not None and length < 1:
            raise UsageError(f"length must be None (endless) or a number of steps, got {length}")
        self.clock = PhaseClock(Schedule.of(schedule), ("empty", "object"), parallel, phase)
        self.length, self.image_size = length, image_size
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(len(MOVES))
        self.observation_space = image_space(image_size, LEAST_OF_CELLS)
        self._plan = _floor_plan(room, rooms)
        self._plan[1 : 1 + television, 1 : 1 + television] = _TELEVISION
        self._noisy = television > 0
        self._noise: Array | None = None  # uint8, as large as a picture
        self._start = (1 + room // 2, 1 + room // 2)
        self._object_start = (1 + room // 2, self._plan.shape[1] - 2 - room // 2)
        # A margin of wall on all sides (0 is wall) lets the view leave the world.
        self._margin = 0 if view is None else view // 2
        self._background = np.pad(self._plan, self._margin)
        self._view = (view, view) if view is not None else self._plan.shape
        self._pixels = tuple(cells_of_pixels(image_size, cells) for cells in self._view)
        self._agent: tuple[int, int] | None = None
        self._object: tuple[int, int] | None = None
        self._half = object_size // 2
        self._in_contact = False
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Put the agent and the object, if there is one, in their places.

        A seed begins a new history, at frame 0; without one the frames count on.
        """
        super().reset(seed=seed)
        if seed is not None:
            self.clock.set_frame(0)
        self._agent, self._object = self._start, None
        self._in_contact, self._steps = False, 0
        self._follow_clock()
        self._make_noise()
        return self._outcome(touched=False, first=False)

    def step(
        self, action: np.int64 | int
    ) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Move the agent by one cell."""
        check_step(self, action, started=self._agent is not None)
        touched = self._move(MOVES[int(action)])
        first = touched and not self._in_contact
        self._in_contact = touched or (self._in_contact and self._adjacent())
        self._steps += 1
        self.clock.advance()
        self._follow_clock()
        self._make_noise()
        observation, info = self._outcome(touched, first)
        return observation, 0.0, False, self._steps == self.length, info

    def render(self) -> Array | None:
        """Return the present picture."""
        return None if self.render_mode is None else self._picture()

    def get_state(self) -> dict[str, Any]:
        """Return positions, counters, clock, what the television shows, Gymnasium's generator."""
        return {
            "np_random": self.np_random.bit_generator.state,
            "clock": self.clock.get_state(),
            "agent": None if self._agent is None else list(self._agent),
            "object": None if self._object is None else list(self._object),
            "in_contact": self._in_contact,
            "steps": self._steps,
            "noise": None if self._noise is None else self._noise.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `get_state()`."""
        self.np_random.bit_generator.state = state["np_random"]
        self.clock.set_state(state["clock"])
        self._agent, self._object = _cell(state["agent"]), _cell(state["object"])
        self._in_contact, self._steps = state["in_contact"], state["steps"]
        noise = state.get("noise")  # which states of earlier versions do not have
        self._noise = None if noise is None else noise.copy()

    def _make_noise(self) -> None:
        """Let the television show something else."""
        if self._noisy:
            shape = (self.image_size, self.image_size, 3)
            self._noise = self.np_random.integers(0, 256, shape, np.uint8)

    def _follow_clock(self) -> None:
        """Make the world what the phase says; the picture of frame T0 shows the change."""
        if self.clock.phase == "empty":
            self._object = None
        elif self._object is None:
            row, column = self._object_start
            for place in ((row, column), (row, column + 1)):
                if self._fits(place) and self._apart(place) > 0:
                    self._object = place
                    break

    def _square(self, place: tuple[int, int], margin: int = 0) -> tuple[slice, slice]:
        """Return the rows and columns of an object whose middle is there."""
        low, high = margin - self._half, margin + self._half + 1
        return slice(place[0] + low, place[0] + high), slice(place[1] + low, place[1] + high)

    def _fits(self, place: tuple[int, int]) -> bool:
        """Return whether all of an object is on floor if its middle is there."""
        return bool((self._plan[self._square(place)] != _WALL).all())

    def _apart(self, place: tuple[int, int], cell: tuple[int, int] | None = None) -> float:
        """Return the moves from a cell to an object whose middle is at a place; 0: it is in it.

        The cell is by default the agent's, which is nowhere before the first episode.
        """
        cell = cell or self._agent
        if cell is None:
            return math.inf
        return sum(max(abs(a - b) - self._half, 0) for a, b in zip(cell, place, strict=True))

    def _move(self, move: tuple[int, int]) -> bool:
        """Move the agent, and the object in front of it; whether it walked into the object."""
        assert self._agent is not None
        target = (self._agent[0] + move[0], self._agent[1] + move[1])
        touched = False
        if self._object is not None and self._apart(self._object, target) == 0:
            touched = True
            beyond = (self._object[0] + move[0], self._object[1] + move[1])
            if not self._fits(beyond):
                return True
            self._object = beyond
        if self._plan[target] != _WALL:
            self._agent = target
        return touched

    def _adjacent(self) -> bool:
        return self._object is not None and self._apart(self._object) == 1

    def _codes(self) -> Array:
        """Return what each pixel of the picture shows: uint8 [image_size, image_size]."""
        assert self._agent is not None
        cells = self._background.copy()
        if self._object is not None:
            cells[self._square(self._object, self._margin)] = _OBJECT
        cells[self._agent[0] + self._margin, self._agent[1] + self._margin] = _AGENT
        if self._margin:
            (row, column), (height, width) = self._agent, self._view
            cells = cells[row : row + height, column : column + width]
        rows, columns = self._pixels
        codes: Array = cells[rows][:, columns]
        return codes

    def _picture(self) -> Array:
        codes = self._codes()
        image: Array = _PALETTE[codes]
        if self._noise is not None:
            screen = codes == _TELEVISION
            image[screen] = self._noise[screen]
        return image

    def _outcome(self, touched: bool, first: bool) -> tuple[dict[str, Array], dict[str, Any]]:
        nowhere = (-1, -1)
        info = {
            "phase": self.clock.phase,
            "frame": self.clock.frame,
            "log_agent_position": np.array(self._agent, np.int16),
            "log_object_position": np.array(self._object or nowhere, np.int16),
            "log_contacts": np.int32(touched),
            "log_interactions": np.int32(first),
            "log_object_pixels": np.int32((self._codes() == _OBJECT).sum()),
        }
        return {"image": self._picture()}, info


def object_pixels(image: Array) -> Array:
    """Return which pixels of pictures uint8 [..., 3] show the object: bool."""
    shown: Array = (image == _PALETTE[_OBJECT]).all(-1)
    return shown


def _floor_plan(room: int, rooms: int) -> Array:
    """Return walls and floors uint8 [room + 2, rooms (room + 1) + 1]; doors are one cell high."""
    rows, columns = np.indices((room + 2, rooms * (room + 1) + 1))
    number = (columns - 1) // (room + 1)
    plan = _FLOOR + 2 * (number % _FLOORS) + (rows + columns) % 2
    plan[[0, -1]] = plan[:, :: room + 1] = _WALL
    plan[1 + room // 2, room + 1 : -1 : room + 1] = _FLOOR
    return plan.astype(np.uint8)


def _cell(saved: list[int] | None) -> tuple[int, int] | None:
    return None if saved is None else (int(saved[0]), int(saved[1]))
