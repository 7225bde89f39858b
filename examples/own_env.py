"""An environment of your own: a walk along a line, until a wind rises.

Any Gymnasium environment can be trained on. What this one has beyond that is optional: a clock that
says when it changes, numbers to be stored with each step, and a state, so that runs resume exactly.

    cd examples
    curious train --env own_env:Windy --env.arguments-json '{"wind": 0.3}' --scale debug
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_replay.envs.schedule import Clocked, PhaseClock, Schedule

Seen = np.ndarray


class Windy(Clocked, gymnasium.Env[Seen, np.int64]):
    """Reach the last of `cells` cells, by steps to the left (0) and to the right (1).

    From frame `change` on each step is blown back by one cell with probability `wind`.

    - observation: float32 [2], the place from 0 to 1, and 1 where the wind blows, else 0;
    - reward: 1 at the goal, which ends the episode; it is cut after 30 steps.

    `Clocked` adds set_phase, which evaluation holds a phase with, and set_frame, by which an
    environment that is restarted after an error goes on where it was.
    """

    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(
        self, cells: int = 6, wind: float = 0.4, change: int = 1000, parallel: int = 1
    ) -> None:
        if cells < 2:
            raise ValueError(f"cells must be at least 2, got {cells}")
        self.cells, self.wind = cells, wind
        schedule = Schedule(((0, "calm"), (change, "windy")))
        # Frames are counted over all environments that run in parallel.
        self.clock = PhaseClock(schedule, schedule.phases, parallel)
        self._cell = self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        """Begin at the left end; a seed begins a new history, at frame 0."""
        super().reset(seed=seed)
        if seed is not None:
            self.clock.set_frame(0)
        self._cell = self._steps = 0
        return self._see(), self._info()

    def step(self, action: np.int64) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Take a step, and perhaps be blown back."""
        blown = self.clock.phase == "windy" and self.np_random.random() < self.wind
        move = (1 if action == 1 else -1) - int(blown)
        self._cell = int(np.clip(self._cell + move, 0, self.cells - 1))
        self._steps += 1
        self.clock.advance()
        won = self._cell == self.cells - 1
        return self._see(), float(won), won, self._steps >= 30 and not won, self._info()

    def get_state(self) -> dict[str, Any]:
        """Everything that decides what happens next, as plain values."""
        return {
            "random": self.np_random.bit_generator.state,
            "clock": self.clock.get_state(),
            "cell": self._cell,
            "steps": self._steps,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from `get_state()`."""
        self.np_random.bit_generator.state = state["random"]
        self.clock.set_state(state["clock"])
        self._cell, self._steps = state["cell"], state["steps"]

    def _see(self) -> Seen:
        return np.array([self._cell / (self.cells - 1), self.clock.phase == "windy"], np.float32)

    def _info(self) -> dict[str, Any]:
        """What analyses need: phase and frame, and numbers that are stored with the step."""
        return {
            "phase": self.clock.phase,
            "frame": self.clock.frame,
            "log_cell": np.int32(self._cell),
        }
