"""Games of MiniGrid behind the interface of our worlds: any task that it registers.

The agent sees the cells before it, turns, walks, picks up, drops and opens. The game is the
`minigrid` package; what it looks like to the agent is drawn in `minigrid_view`.
"""

import difflib
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from minigrid.minigrid_env import MiniGridEnv

from curious_replay.envs.interface import METADATA, check_step
from curious_replay.envs.minigrids.view import View
from curious_replay.errors import UsageError

Array = np.ndarray
CHANGING = ("key-swap", "lava", "new-object")  # of ours, for who mistypes them
_TILE = 16  # pixels of a cell in render()


class MiniGridWorld(gymnasium.Env[Any, np.int64]):
    """What all MiniGrid games share: what is seen, and how a step is made of the game's.

    `view` x `view` cells are seen, with the agent in the middle of the last row; `observation` and
    `image_size` are those of `View`. One step is one frame.
    """

    metadata = METADATA

    def __init__(
        self,
        game: MiniGridEnv,
        *,
        view: int = 7,
        observation: str = "pixels",
        image_size: int = 64,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise UsageError(f"render_mode must be None or 'rgb_array', got {render_mode!r}")
        self._view = View(view, observation, image_size)
        game.agent_view_size = view
        self._game = game
        self.render_mode = render_mode
        self.observation_space = self._view.space
        self.action_space = spaces.Discrete(int(game.action_space.n))
        self._started = False

    @property
    def game(self) -> MiniGridEnv:
        """MiniGrid's own game: the whole grid, and where the agent is in it."""
        return self._game

    def step(
        self, action: np.int64 | int
    ) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Play one action of `minigrid.core.actions.Actions`."""
        check_step(self, action, self._started)
        symbols, reward, terminated, truncated = self._play(int(action))
        late = truncated and not terminated
        return self._view.observe(symbols), reward, terminated, late, self._info(symbols)

    def render(self) -> Array | None:
        """Return the whole world from above, with what is in view lighter."""
        if self.render_mode is None or not self._started:
            return None
        image: Array = self._game.get_frame(highlight=True, tile_size=_TILE)
        return image

    def _play(self, action: int) -> tuple[Array, float, bool, bool]:
        """Play one step of the game; return symbols in view, reward, terminated, truncated."""
        seen, reward, terminated, truncated, _ = self._game.step(action)
        return seen["image"], float(reward), bool(terminated), bool(truncated)

    def _info(self, symbols: Array) -> dict[str, Any]:
        x, y = self._game.agent_pos
        return {"log_agent_position": np.array((y, x), np.int16)}


class MiniGridTask(MiniGridWorld):
    """A task that MiniGrid registers, as it is: `task` is its id, of which "DoorKey-5x5" is enough.

    - actions: left, right, forward, pickup, drop, toggle, done; rewards and ends are the task's;
    - `info["mission"]` is what is to be done, in words. The agent does not read it, so a task whose
      mission differs from one episode to the next is one of guessing;
    - `reset(seed=s)` opens the same episode as `gymnasium.make(id).reset(seed=s)`, later resets the
      same following ones;
    - a saved state is how the episode began and what was done in it since: loading plays it again.
    """

    def __init__(self, *, task: str, **world: Any) -> None:
        self.task = full_id(task)
        game = gymnasium.make(self.task, disable_env_checker=True).unwrapped
        assert isinstance(game, MiniGridEnv)
        super().__init__(game, **world)
        self._opening: dict[str, Any] = {}  # the game's generator before the episode began
        self._actions: list[int] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Open the next episode; with a seed the first one of that seed."""
        super().reset(seed=seed)
        if seed is not None:
            gymnasium.Env.reset(self._game, seed=seed)
        symbols = self._open()
        return self._view.observe(symbols), self._info(symbols)

    def get_state(self) -> dict[str, Any]:
        """Return how the episode began, and the actions since: uint8 [steps]."""
        return {
            "task": self.task,
            "started": self._started,
            "opening": self._opening or self._game.np_random.bit_generator.state,
            "actions": np.array(self._actions, np.uint8),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `get_state()` of the same task."""
        if state["task"] != self.task:
            raise ValueError(f"this state is of {state['task']}, this world is {self.task}")
        actions = [int(action) for action in state["actions"]]
        if not all(map(self.action_space.contains, actions)):
            raise ValueError(f"this state has an action {max(actions)}, which {self.task} has not")
        self._game.np_random.bit_generator.state = state["opening"]
        self._started, self._opening, self._actions = False, {}, []
        if state["started"]:
            self._open()
            for action in actions:
                self._play(action)

    def _open(self) -> Array:
        """Begin an episode; returns the symbols in view."""
        self._opening, self._actions = self._game.np_random.bit_generator.state, []
        self._started = True
        seen, _ = self._game.reset()
        symbols: Array = seen["image"]
        return symbols

    def _play(self, action: int) -> tuple[Array, float, bool, bool]:
        self._actions.append(action)
        return super()._play(action)

    def _info(self, symbols: Array) -> dict[str, Any]:
        return {"phase": "constant", "mission": self._game.mission, **super()._info(symbols)}


def tasks() -> dict[str, str]:
    """Return all tasks that MiniGrid registers: their ids by the names that they have here.

    A name is the id without "MiniGrid-", and without the version if it is the newest. Those named
    WFC are left out: the package does not bring the patterns that they are made of.
    """
    found: dict[str, str] = {}
    for spec in sorted(
        gymnasium.registry.values(), key=lambda spec: (spec.name, spec.version or 0)
    ):
        if spec.id.startswith(("MiniGrid-", "BabyAI-")) and "-WFC-" not in spec.id:
            name = spec.name.removeprefix("MiniGrid-")
            if name in found:  # of an older version
                older = found[name].removeprefix("MiniGrid-")
                found[older] = found[name]
            found[name] = spec.id
    return found


def full_id(task: str) -> str:
    """Return the id of a task by its name here, or by its id itself: MiniGrid-DoorKey-5x5-v0."""
    known = tasks()
    for name in (task, f"MiniGrid-{task}"):
        if name in known.values():
            return name
    if task not in known:
        near = difflib.get_close_matches(task, (*known, *CHANGING), n=3, cutoff=0.5)
        listed = "`curious envs list --tag minigrid` has all"
        advice = f"did you mean {', '.join(near)}?" if near else listed
        raise UsageError(f"MiniGrid has no task {task!r}; {advice}")
    return known[task]
