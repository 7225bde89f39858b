"""A task that is solved in minutes, and then the world turns round.

`Mirror` is a small grid seen from above. Who reaches the goal has won. At T0 the floor changes
colour and every move goes the opposite way: what was learned about moving is wrong, and pictures
tell which of the two holds.
"""

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

UP, DOWN, LEFT, RIGHT = range(4)
_MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])
_FLOORS = {"straight": (40, 60, 110), "mirrored": (110, 70, 30)}
_AGENT, _GOAL = (245, 245, 245), (60, 220, 90)


class Mirror(Clocked, gymnasium.Env[Any, np.int64]):
    """A grid of `room` x `room` cells with a goal (green) in a corner.

    The agent (white) starts in a random other cell. In phase "mirrored" up is down and left is
    right, and the floor is brown instead of blue. With `floor="random"` the floor has another
    colour at every step: any in which blue is strongest, or, when mirrored, red.

    - observation: `{"image": uint8 [image_size, image_size, 3]}`, the whole grid;
      actions: up, down, left, right; one step is one frame;
    - reward: 1 for reaching the goal, which ends the episode; after `length` steps without it the
      episode is truncated.
    """

    metadata = METADATA

    def __init__(
        self,
        *,
        schedule: ScheduleLike = ((0, "straight"), (10_000, "mirrored")),
        parallel: int = 1,
        phase: str | None = None,
        room: int = 5,
        length: int = 30,
        floor: str = "plain",
        image_size: int = 64,
        render_mode: str | None = None,
    ) -> None:
        if room < 2:
            raise UsageError(f"room must be at least 2 cells wide, got {room}")
        if length < 1:
            raise UsageError(f"length must be at least 1 step, got {length}")
        if floor not in ("plain", "random"):
            raise UsageError(f"floor must be 'plain' or 'random', got {floor!r}")
        self.clock = PhaseClock(Schedule.of(schedule), tuple(_FLOORS), parallel, phase)
        self.room, self.length, self.image_size = room, length, image_size
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(len(_MOVES))
        self.observation_space = image_space(image_size, LEAST_OF_CELLS)
        self._goal = np.array((room - 1, room - 1))
        self._cell = cells_of_pixels(image_size, room)
        self._agent: Array | None = None
        self._steps = 0
        self._random_floor = floor == "random"
        self._shade = np.zeros(3, np.uint8)  # of a random floor, from its weakest to its strongest

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Put the agent into any cell but the goal's.

        A seed begins a new history, at frame 0; without one the frames count on.
        """
        super().reset(seed=seed)
        if seed is not None:
            self.clock.set_frame(0)
        place = int(self.np_random.integers(self.room**2 - 1))  # the goal is the last cell
        self._agent = np.array(divmod(place, self.room))
        self._steps = 0
        self._paint_floor()
        return self._observation(), self._info()

    def step(
        self, action: np.int64 | int
    ) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Move by one cell; walls stop."""
        check_step(self, action, started=self._agent is not None)
        move = _MOVES[int(action)] * (-1 if self.clock.phase == "mirrored" else 1)
        self._agent = np.clip(self._agent + move, 0, self.room - 1)
        self._steps += 1
        self.clock.advance()
        self._paint_floor()
        won = bool((self._agent == self._goal).all())
        late = not won and self._steps >= self.length
        return self._observation(), float(won), won, late, self._info()

    def render(self) -> Array | None:
        """Return the present picture."""
        return None if self.render_mode is None else self._observation()["image"]

    def get_state(self) -> dict[str, Any]:
        """Return position, counters, clock, the floor's colour and Gymnasium's generator."""
        return {
            "np_random": self.np_random.bit_generator.state,
            "clock": self.clock.get_state(),
            "agent": None if self._agent is None else self._agent.tolist(),
            "steps": self._steps,
            "shade": self._shade.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `get_state()`."""
        self.np_random.bit_generator.state = state["np_random"]
        self.clock.set_state(state["clock"])
        self._agent = None if state["agent"] is None else np.array(state["agent"])
        self._steps = state["steps"]
        if "shade" in state:  # which states of earlier versions do not have
            self._shade = state["shade"].copy()

    def _paint_floor(self) -> None:
        if self._random_floor:
            drawn = np.sort(self.np_random.integers(20, 170, 3, np.uint8))
            self._shade = drawn + np.array((0, 25, 50), np.uint8)  # never grey

    def _observation(self) -> dict[str, Array]:
        cells = np.empty((self.room, self.room, 3), np.uint8)
        mirrored = self.clock.phase == "mirrored"
        if self._random_floor:
            cells[:] = self._shade[::-1] if mirrored else self._shade
        else:
            cells[:] = _FLOORS[self.clock.phase]
        cells[tuple(self._goal)] = _GOAL
        assert self._agent is not None
        cells[tuple(self._agent)] = _AGENT
        return {"image": cells[self._cell][:, self._cell]}

    def _info(self) -> dict[str, Any]:
        return {
            "phase": self.clock.phase,
            "frame": self.clock.frame,
            "log_agent_position": np.array(self._agent, np.int16),
        }
