"""What the MiniGrid games that change have in common: phases, a clock, and a state to save.

A `ChangingGame` can be put into a phase at any time, also in the middle of an episode; a
`ChangingGrid` plays one by a schedule. What decides what comes next is all in the grid, in what the
agent carries, and in what a world adds through `_extra_state`: nothing else may be kept by a game.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from minigrid.core.grid import Grid
from minigrid.core.world_object import WorldObj
from minigrid.minigrid_env import MiniGridEnv

from curious_replay.envs.minigrids.world import MiniGridWorld
from curious_replay.envs.schedule import Clocked, PhaseClock, Schedule, ScheduleLike

Array = np.ndarray


class ChangingGame(MiniGridEnv):  # type: ignore[misc]  # not typed throughout
    """A game in phases; the first `moves` actions of MiniGrid are of use in it."""

    phases: ClassVar[tuple[str, ...]]
    moves: ClassVar[int]
    phase: str

    def become(self, phase: str) -> None:
        """Put the world, as it is at this moment, into a phase."""
        self.phase = phase


class ChangingGrid(Clocked, MiniGridWorld):
    """A game that changes by a schedule; the picture of frame T0 shows the change.

    Further arguments, also of the games below, are those of `MiniGridWorld`.
    """

    _game: ChangingGame

    def __init__(
        self,
        game: ChangingGame,
        *,
        schedule: ScheduleLike,
        parallel: int = 1,
        phase: str | None = None,
        **world: Any,
    ) -> None:
        game.action_space = spaces.Discrete(game.moves)
        super().__init__(game, **world)
        self.clock = PhaseClock(Schedule.of(schedule), game.phases, parallel, phase)
        game.phase = self.clock.phase

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Open the next episode.

        A seed begins a new history, at frame 0; without one the frames count on.
        """
        super().reset(seed=seed)
        if seed is not None:
            self.clock.set_frame(0)
        self._game.reset(seed=seed)
        self._game.become(self.clock.phase)
        self._started = True
        symbols = self._symbols()
        return self._view.observe(symbols), self._info(symbols)

    def get_state(self) -> dict[str, Any]:
        """Return the grid, the agent, what it carries, clock and generator."""
        game = self._game
        agent = (*game.agent_pos, game.agent_dir, game.step_count) if self._started else ()
        return {
            "generator": game.np_random.bit_generator.state,
            "clock": self.clock.get_state(),
            "phase": game.phase,
            "agent": [int(number) for number in agent],
            "carrying": None if game.carrying is None else list(game.carrying.encode()),
            "grid": game.grid.encode(),
            **self._extra_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `get_state()` of a world made with the same arguments."""
        game = self._game
        if state["grid"].shape != (game.width, game.height, 3):
            raise ValueError(
                f"this state has {state['grid'].shape[:2]} cells, this world "
                f"{(game.width, game.height)}"
            )
        game.np_random.bit_generator.state = state["generator"]
        self.clock.set_state(state["clock"])
        game.phase = state["phase"]
        self._started = bool(state["agent"])
        if self._started:
            x, y, game.agent_dir, game.step_count = state["agent"]
            game.agent_pos = (x, y)
        carried = state["carrying"]
        game.carrying = None if carried is None else WorldObj.decode(*carried)
        game.grid, _ = Grid.decode(state["grid"])
        self._restore(state)

    def _play(self, action: int) -> tuple[Array, float, bool, bool]:
        symbols, reward, terminated, truncated = super()._play(action)
        self.clock.advance()
        if self._follow_clock():
            symbols = self._symbols()
        return symbols, reward, terminated, truncated

    def _follow_clock(self) -> bool:
        """Change the world if it is time to; whether that was so."""
        due = self._started and self.clock.phase != self._game.phase
        if due:
            self._game.become(self.clock.phase)
        return due

    def _symbols(self) -> Array:
        symbols: Array = self._game.gen_obs()["image"]
        return symbols

    def _extra_state(self) -> dict[str, Any]:
        return {}

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Take back `_extra_state()`; the grid is there already."""

    def _info(self, symbols: Array) -> dict[str, Any]:
        return {
            "phase": self._game.phase,
            "frame": self.clock.frame,
            **super()._info(symbols),
        }
