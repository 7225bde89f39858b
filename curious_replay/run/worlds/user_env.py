"""A user's own environment, by Gymnasium id or as "module:Class", made fit for agents.

Its picture is resized to `--env.image-size`, its numbers are put into one row in the order of their
names, its actions are repeated. What it returns is checked each time: what does not fit is an error
of its worker, so it is told, the episode ends, and nothing of it is ever learned from.
"""

import importlib
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from PIL import Image

from curious_replay.envs import registry
from curious_replay.envs.saved import can_save, restore, state_of
from curious_replay.run.worlds.spaces import Actions, Space, UnfitEnvironmentError, parts_of
from curious_replay.run.worlds.user_env_checks import check_reset, check_step
from curious_replay.run.worlds.user_env_errors import calling, described

Array = np.ndarray
DRAWN = "rgb_array"
"""Gymnasium's render_mode for pictures as arrays."""
USED = ("phase", "frame", "achievements")
"""Entries of an info that runs use, beside log_*."""


def make_user_env(name: str, arguments: dict[str, Any]) -> gymnasium.Env:
    """Make an environment by its id or class.

    `name` is a Gymnasium id ("CartPole-v1", "module:Id-v0") or "module:Class".
    """
    here = str(Path.cwd())
    if here not in sys.path:  # as `python -m` does, so that a file at hand is found
        sys.path.insert(0, here)
    module, _, kind = registry.ALIASES.get(name, name).rpartition(":")
    make: Callable[..., Any] = partial(gymnasium.make, name)
    try:
        if module and not re.search(r"-v\d+$", kind):
            make = getattr(importlib.import_module(module), kind)
    except Exception as error:  # a module may do anything when it is imported
        raise UnfitEnvironmentError(described(error)) from error
    with calling("its constructor"):
        try:
            made = make(**arguments)
        except (ImportError, gymnasium.error.Error) as error:  # what it needs is not there
            raise UnfitEnvironmentError(described(error)) from error
    if not isinstance(made, gymnasium.Env):
        raise UnfitEnvironmentError(
            f"{kind} makes a {type(made).__name__}; right would be a gymnasium.Env"
        )
    for space in ("observation_space", "action_space"):
        if not hasattr(made, space):
            raise UnfitEnvironmentError(f"it has no {space}; right would be to set it in __init__")
    return made


def make_rendering(name: str, arguments: dict[str, Any]) -> gymnasium.Env:
    """Make an environment that draws pictures; one that knows no render_mode may do so anyway."""
    try:
        return make_user_env(name, {**arguments, "render_mode": DRAWN})
    except UnfitEnvironmentError:
        return make_user_env(name, arguments)


class Adapted(gymnasium.Wrapper):
    """A user's environment as agents see it: {"image", "vector"}, actions repeated."""

    def __init__(self, env: gymnasium.Env, image_size: int, action_repeat: int) -> None:
        super().__init__(env)
        self._images, self._vectors = parts_of(env.observation_space)
        self._size, self._repeat = image_size, action_repeat
        self._single = not isinstance(env.observation_space, spaces.Dict)
        seen: dict[str, Space] = {}
        if self._images:
            seen["image"] = spaces.Box(0, 255, (image_size, image_size, 3), np.uint8)
        if self._vectors:
            sizes = [int(np.prod(self._part(name).shape or ())) for name in self._vectors]
            seen["vector"] = spaces.Box(-np.inf, np.inf, (sum(sizes),), np.float32)
        self.observation_space = spaces.Dict(seen)
        Actions.of(env.action_space)  # refuses what cannot be used
        self.saveable = can_save(env)

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        outcome = self.env.reset(**kwargs)
        check_reset(outcome, self.env.observation_space)
        observation, info = outcome
        return self._see(observation), merge_infos([info])

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Hold the action for some frames; rewards and logged counts add up."""
        total, infos = 0.0, []
        for _ in range(self._repeat):
            outcome = self.env.step(action)
            check_step(outcome, self.env.observation_space)
            observation, reward, terminated, truncated, info = outcome
            total += float(reward)
            infos.append(info)
            if terminated or truncated:
                break
        return self._see(observation), total, bool(terminated), bool(truncated), merge_infos(infos)

    def set_frame(self, frame: int) -> None:
        """Go to a frame of its schedule; nothing for one that cannot, which begins it anew."""
        if self.env.has_wrapper_attr("set_frame"):
            self.env.get_wrapper_attr("set_frame")(frame)

    def get_state(self) -> dict[str, Any]:
        """Return the environment's own state, and how far its time limits are."""
        return state_of(self.env)

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from `get_state()`."""
        restore(self.env, state)

    def _part(self, name: str) -> Space:
        space = self.env.observation_space
        return space.spaces[name] if isinstance(space, spaces.Dict) else space

    def _see(self, observation: Any) -> dict[str, Array]:
        parts = {"": observation} if self._single else observation
        seen = {}
        for name in self._images:
            seen["image"] = _resized(np.asarray(parts[name]), self._size)
        if self._vectors:
            rows = [np.asarray(parts[name], np.float32).reshape(-1) for name in self._vectors]
            seen["vector"] = np.concatenate(rows)
        return seen


def merge_infos(infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what runs use of the infos of a step's frames.

    They save it, and the rest may be anything. A log that is one number adds up over the frames, as
    rewards do. Of all else the last is told.
    """
    said = {name: infos[-1][name] for name in USED if name in infos[-1]}
    logs: dict[str, list[Array]] = {}
    for info in infos:
        for name, value in info.items():
            if name.startswith("log_"):
                logs.setdefault(name, []).append(np.asarray(value))
    return {**said, **{name: _over_frames(name, values) for name, values in logs.items()}}


def _over_frames(name: str, values: list[Array]) -> Any:
    counts = all(value.ndim == 0 and value.dtype.kind in "biuf" for value in values)
    if not counts or name == "log_phase":  # a phase has a number of its own: no sum says anything
        return values[-1]
    # NumPy counts booleans as 1 and gives small whole numbers room. So is a single frame treated:
    # the dtype must not depend on how many frames an episode's last step had.
    return np.sum(values)


def _resized(image: Array, size: int) -> Array:
    """Return uint8 [size, size, 3] of a picture of any size, with one colour or three."""
    image = image.reshape(*image.shape[:2], -1)
    if image.shape[2] == 1:
        image = image.repeat(3, axis=2)
    if image.shape[:2] != (size, size):
        image = np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.BOX))
    return np.ascontiguousarray(image)
