"""A way between walls to a goal: from T0 on the walls are lava, and from T1 on walls again.

In the spirit of NovGrid's changes of MiniGrid's crossings. Walls stop who walks into them, lava
ends the episode; walls hide what is behind them, lava does not.
"""

from typing import Any

from minigrid.core.world_object import Lava as LavaCell
from minigrid.core.world_object import Wall
from minigrid.envs.crossing import CrossingEnv

from curious_replay.envs.minigrids.changing import ChangingGame, ChangingGrid
from curious_replay.envs.schedule import ScheduleLike
from curious_replay.errors import UsageError


class LavaGame(CrossingEnv, ChangingGame):  # type: ignore[misc]  # not typed throughout
    """MiniGrid's crossing, whose inner walls can become lava and walls again."""

    phases = ("walls", "lava")
    moves = 3  # left, right, forward

    def become(self, phase: str) -> None:
        """Make all inner walls what the phase says."""
        super().become(phase)
        cell = Wall if phase == "walls" else LavaCell
        for x in range(1, self.width - 1):
            for y in range(1, self.height - 1):
                if isinstance(self.grid.get(x, y), Wall | LavaCell):
                    self.grid.set(x, y, cell())


class Lava(ChangingGrid):
    """A square with `crossings` walls across it, a gap in each, and the goal in the far corner.

    In phase "lava" the walls are lava: who walks into it has lost.

    - actions: left, right, forward;
    - reward: 1 - 0.9 steps / `length` for reaching the goal; goal and lava end the episode; it is
      cut after `length` steps (None: 4 `size`^2);
    - `size` counts cells per side, an odd number, walls included; the agent begins in a corner.
    """

    def __init__(
        self,
        *,
        schedule: ScheduleLike = ((0, "walls"), (100_000, "lava"), (200_000, "walls")),
        size: int = 9,
        crossings: int = 1,
        length: int | None = None,
        **grid: Any,
    ) -> None:
        if size < 5 or size % 2 == 0:
            raise UsageError(f"size must be an odd number of cells from 5 on, got {size}")
        most = 2 * len(range(2, size - 2, 2))
        if not 1 <= crossings <= most:
            raise UsageError(f"crossings must be from 1 to {most} at size {size}, got {crossings}")
        if length is not None and length < 1:
            raise UsageError(f"length must be None or a number of steps, got {length}")
        game = LavaGame(size, crossings, Wall, max_steps=length)
        super().__init__(game, schedule=schedule, **grid)
