"""Any worlds, one after the other: each phase of a schedule has an environment of its own.

    Switch({"before": CartPoleEnv(), "after": heavy}, ((0, "before"), (20_000, "after")))

The worlds may be any Gymnasium environments whose spaces are equal. Which of them is shown changes
with an episode only, so no step leads from the one into the other: the step at which the phase
changes ends its episode as truncated, or (`at="episode"`) the change waits for the episode's end.
"""

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_replay.envs.saved import can_save, restore, state_of
from curious_replay.envs.schedule import Clocked, PhaseClock, Schedule, ScheduleLike
from curious_replay.errors import UsageError

World = gymnasium.Env[Any, Any] | Callable[[], gymnasium.Env[Any, Any]]
MOMENTS = ("step", "episode")


class Switch(Clocked, gymnasium.Env[Any, Any]):
    """An environment for each phase, given as it is or as a function that makes it.

    - observations, actions, rewards and ends are those of the world of the phase; `frame` (over
      all parallel environments), `phase` and its number `log_phase` are added to its info;
    - a step counts `frames_per_step` frames: for worlds that hold an action for several;
    - `reset(seed=s)` begins a new history, in which each world begins as it would alone with seed
      s; a world that comes back goes on where it was;
    - it can be saved if all its worlds can: `saveable`.
    """

    def __init__(
        self,
        worlds: Mapping[str, World],
        schedule: ScheduleLike,
        *,
        at: str = "step",
        frames_per_step: int = 1,
        parallel: int = 1,
        phase: str | None = None,
    ) -> None:
        if at not in MOMENTS:
            raise UsageError(f"at must be one of {', '.join(MOMENTS)}, got {at!r}")
        if frames_per_step < 1:
            raise UsageError(f"frames_per_step must be at least 1, got {frames_per_step}")
        self.clock = PhaseClock(Schedule.of(schedule), worlds, parallel, phase)
        self.at, self.frames_per_step = at, frames_per_step
        self.worlds: dict[str, gymnasium.Env[Any, Any]] = {
            name: world if isinstance(world, gymnasium.Env) else world()
            for name, world in worlds.items()
        }
        check_equal(self.worlds)
        first = next(iter(self.worlds.values()))
        self.observation_space, self.action_space = first.observation_space, first.action_space
        self.metadata, self.render_mode = first.metadata, first.render_mode
        self.saveable = all(map(can_save, self.worlds.values()))
        self._shown: str | None = None  # the phase whose world is in play
        self._begun: set[str] = set()  # phases whose world was reset in this history
        self._seed: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in the world of the present phase.

        A seed begins a new history, at frame 0; without one the frames count on.
        """
        super().reset(seed=seed)
        if seed is not None:
            self.clock.set_frame(0)
            self._seed, self._begun = seed, set()
        self._shown = self.clock.phase
        first = self._shown not in self._begun
        self._begun.add(self._shown)
        world = self.worlds[self._shown]
        observation, info = world.reset(seed=self._seed if first else None, options=options)
        return observation, self._told(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step in the world in play."""
        if self._shown is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        observation, reward, ended, cut, info = self.worlds[self._shown].step(action)
        self.clock.advance(self.frames_per_step)
        changes = self.at == "step" and self.clock.phase != self._shown
        return observation, reward, ended, cut or (changes and not ended), self._told(info)

    def render(self) -> Any:
        """Return whatever the world in play draws."""
        if self._shown is None:
            raise gymnasium.error.ResetNeeded("call reset() before render()")
        return self.worlds[self._shown].render()

    def close(self) -> None:
        """Close all worlds."""
        for world in self.worlds.values():
            world.close()

    def get_state(self) -> dict[str, Any]:
        """Return the clock, and the states of all worlds that were in play."""
        for phase, world in self.worlds.items():
            if not can_save(world):
                raise ValueError(
                    f"the world of phase {phase!r} has no get_state and set_state: {world}"
                )
        return {
            "clock": self.clock.get_state(),
            "phase": self._shown,
            "seed": self._seed,
            "worlds": {phase: state_of(self.worlds[phase]) for phase in sorted(self._begun)},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `get_state()` of a switch between the same worlds."""
        for phase in state["worlds"]:
            if phase not in self.worlds:
                raise ValueError(
                    f"this state has a world of phase {phase!r}, here are {list(self.worlds)}"
                )
        self.clock.set_state(state["clock"])
        for phase, saved in state["worlds"].items():
            restore(self.worlds[phase], saved)
        self._begun = set(state["worlds"])
        self._shown, self._seed = state["phase"], state["seed"]

    def _told(self, info: Mapping[str, Any]) -> dict[str, Any]:
        assert self._shown is not None
        return {
            **info,
            "phase": self._shown,
            "log_phase": self.clock.known.index(self._shown),
            "frame": self.clock.frame,
        }


def check_equal(worlds: Mapping[str, gymnasium.Env[Any, Any]]) -> None:
    """Refuse worlds whose spaces differ from those of the first, naming the difference."""
    (first, one), *others = worlds.items()
    for name, other in others:
        for kind in ("observation_space", "action_space"):
            mine, its = getattr(one, kind), getattr(other, kind)
            if mine != its:
                raise UsageError(
                    "the worlds of a switch must have equal spaces, but the "
                    f"{kind} of {first!r} and {name!r} differ: {_difference(mine, its)}"
                )


def _difference(one: spaces.Space[Any], other: spaces.Space[Any]) -> str:
    """Return what makes two spaces differ, in words.

    Of two dictionaries it is the first part that does.
    """
    if isinstance(one, spaces.Dict) and isinstance(other, spaces.Dict):
        if one.spaces.keys() != other.spaces.keys():
            return f"the parts {sorted(one.spaces)} and {sorted(other.spaces)}"
        part = next(name for name, space in one.spaces.items() if space != other.spaces[name])
        return f"in {part!r}, {_difference(one.spaces[part], other.spaces[part])}"
    if isinstance(one, spaces.Box) and isinstance(other, spaces.Box):
        for what in ("shape", "dtype"):
            if getattr(one, what) != getattr(other, what):
                return f"the {what} {getattr(one, what)} and {getattr(other, what)}"
        for what in ("low", "high"):
            mine, its = getattr(one, what).reshape(-1), getattr(other, what).reshape(-1)
            unlike = np.flatnonzero(~np.isclose(mine, its))
            if unlike.size:
                place = int(unlike[0])
                return f"number {place} has the bound ({what}) {mine[place]:g} and {its[place]:g}"
    return f"{one} and {other}"
