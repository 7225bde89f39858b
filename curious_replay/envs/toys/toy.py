"""A world that counts: each observation says where it belongs, so tests have an oracle.

`CountingWorld` shows its own step number, its episode number and the last action as colours, and
its reward is the step number too. Whoever stores, cuts, samples or batches its steps can read from
any picture where it belongs (`read_count`), so a mistake by one place shows at once.
"""

from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_replay.envs.interface import LEAST_OF_CELLS, METADATA, check_step, image_space
from curious_replay.errors import UsageError

Array = np.ndarray


class CountingPicture(NamedTuple):
    """What a picture of the counting world says."""

    step: int
    episode: int
    action: int | None  # the action that led here; None at the start of an episode


def read_count(image: Array) -> CountingPicture:
    """Read a picture of the counting world (uint8 [height, width, 3])."""
    step, episode, action = (_number(image[row, 0]) for row in _band_rows(image.shape[0]))
    return CountingPicture(step, episode, None if action == 0 else action - 1)


class CountingWorld(gymnasium.Env[Any, np.int64]):
    """Counts its steps, whatever the agent does.

    - observation: `{"image": uint8 [image_size, image_size, 3]}`, three bands from top to bottom:
      step in the episode (0 at reset), episode (0 for the first), last action + 1 (0 at reset);
      a band has one colour, red + 256 green + 65536 blue;
    - reward: the step number arrived at; the episode ends after `length` steps, as a true end
      (`ending="terminated"`) or as a time limit (`"truncated"`).
    """

    metadata = METADATA

    def __init__(
        self,
        *,
        length: int = 100,
        ending: str = "terminated",
        actions: int = 3,
        image_size: int = 64,
        render_mode: str | None = None,
    ) -> None:
        if ending not in ("terminated", "truncated"):
            raise UsageError(f"ending must be 'terminated' or 'truncated', got {ending!r}")
        if length < 1:
            raise UsageError(f"length must be at least 1 step, got {length}")
        self.length, self.ending, self.image_size = length, ending, image_size
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(actions)
        self.observation_space = image_space(image_size, LEAST_OF_CELLS)
        self._rows = _band_rows(image_size)
        self._episode = -1
        self._step = 0
        self._action: int | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        """Begin the next episode; a seed begins again with episode 0."""
        super().reset(seed=seed)
        self._episode = 0 if seed is not None else self._episode + 1
        self._step, self._action = 0, None
        return {"image": self._picture()}, self._info()

    def step(
        self, action: np.int64 | int
    ) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        """Count one step."""
        check_step(self, action, started=self._episode >= 0)
        self._step += 1
        self._action = int(action)
        over = self._step >= self.length
        terminated = over and self.ending == "terminated"
        picture = {"image": self._picture()}
        return picture, float(self._step), terminated, over and not terminated, self._info()

    def render(self) -> Array | None:
        """Return the present picture."""
        return None if self.render_mode is None else self._picture()

    def get_state(self) -> dict[str, Any]:
        """Return the counters, and Gymnasium's generator."""
        return {
            "np_random": self.np_random.bit_generator.state,
            "episode": self._episode,
            "step": self._step,
            "action": self._action,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Count on from `get_state()`."""
        self.np_random.bit_generator.state = state["np_random"]
        self._episode, self._step = state["episode"], state["step"]
        self._action = state["action"]

    def _picture(self) -> Array:
        image = np.empty((self.image_size, self.image_size, 3), np.uint8)
        action = 0 if self._action is None else self._action + 1
        for row, number in zip(self._rows, (self._step, self._episode, action), strict=True):
            image[row:] = (number & 255, number >> 8 & 255, number >> 16 & 255)
        return image

    def _info(self) -> dict[str, Any]:
        return {
            "phase": "constant",
            "log_step": np.int32(self._step),
            "log_episode": np.int32(self._episode),
        }


def _band_rows(image_size: int) -> tuple[int, int, int]:
    """Return the first row of each of the three bands."""
    return (0, image_size // 3, 2 * image_size // 3)


def _number(pixel: Array) -> int:
    red, green, blue = (int(value) for value in pixel)
    return red + 256 * green + 65_536 * blue
