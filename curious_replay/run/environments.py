"""Environments for a run: ours by name, the user's own by Gymnasium id or "module:Class".

A user's environment is adapted: its picture is resized to `--env.image-size`, its numbers are put
into one row, its actions are repeated. Everything is tried once before the run begins.
"""

import importlib
import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit
from PIL import Image

from curious_replay.agents.interface import Spaces
from curious_replay.envs import registry
from curious_replay.envs.vector import RestartingVectorEnv
from curious_replay.run.env_config import EnvConfig, is_own
from curious_replay.run.spaces import Actions, Space, UnfitEnvironmentError, parts_of, read_spaces

Array = np.ndarray


@dataclass(frozen=True)
class EnvFacts:
    """What one look at an environment tells."""

    spaces: Spaces
    actions: Actions
    logs: dict[str, Array]
    """A value of each `log_*` entry of its info: dtype and shape of what is stored."""
    can_save: bool
    """Whether it has get_state and set_state; without them a resumed run begins a new episode."""
    has_phases: bool
    fps: float
    """Steps a second in a film."""
    camera: str | None

    @property
    def step_bytes(self) -> int:
        """Bytes that one step takes in replay."""
        height, width = self.spaces.image or (0, 0)
        numbers = self.spaces.vector + self.spaces.actions + 1  # and the reward
        return height * width * 3 + 4 * numbers + 3 + sum(a.nbytes for a in self.logs.values())


def make_env(name: str, config: EnvConfig, parallel: int = 1) -> gymnasium.Env:
    """One environment as an agent sees it; `parallel` of them count frames together."""
    if is_own(name):
        return Adapted(_make_own(name, config), config.image_size, config.frames_per_step)
    arguments = config.arguments()
    if "parallel" in registry.arguments(name):
        arguments["parallel"] = parallel
    return registry.make(name, **arguments)


def make_envs(name: str, config: EnvConfig, num_envs: int) -> RestartingVectorEnv:
    """Environments side by side, each in a process if the settings say so."""
    make = partial(make_env, name, config, num_envs)
    return RestartingVectorEnv([make] * num_envs, processes=config.processes)


def look_at(name: str, config: EnvConfig) -> EnvFacts:
    """Make one, try it, and tell what it is; whatever is wrong is said with its name."""
    try:
        env = make_env(name, config)
    except UnfitEnvironmentError as error:
        raise UnfitEnvironmentError(f"{name} cannot be used: {error}") from None
    try:
        return _facts(name, env)
    finally:
        env.close()


def _facts(name: str, env: gymnasium.Env) -> EnvFacts:
    observation, info = env.reset(seed=0)
    logs = {key: np.asarray(value) for key, value in info.items() if key.startswith("log_")}
    for key, value in logs.items():
        if value.dtype.kind not in "biuf":
            raise UnfitEnvironmentError(
                f"{name} cannot be used: info[{key!r}] is {value!r}; what is stored with a step "
                "(log_*) must be numbers"
            )
    if not env.observation_space.contains(observation):
        raise UnfitEnvironmentError(
            f"{name} cannot be used: the observation that reset() returns is not in its "
            f"observation_space {env.observation_space}"
        )
    actions = Actions.of(env.action_space)
    action = actions.to_env(actions.random(np.random.default_rng(0), 1))[0]
    _, reward, *_ = env.step(action)
    if not isinstance(reward, int | float | np.number) or not np.isfinite(reward):
        raise UnfitEnvironmentError(
            f"{name} cannot be used: step() returned the reward {reward!r}, not a finite number"
        )
    return EnvFacts(
        spaces=read_spaces(env.observation_space, env.action_space),
        actions=actions,
        logs=logs,
        can_save=env.saveable if isinstance(env, Adapted) else env.has_wrapper_attr("get_state"),
        has_phases=env.has_wrapper_attr("set_phase"),
        fps=float(env.metadata.get("render_fps") or 10),
        camera=info.get("camera"),
    )


def _make_own(name: str, config: EnvConfig) -> gymnasium.Env:
    """An environment by Gymnasium id ("CartPole-v1", "module:Id-v0") or as "module:Class"."""
    here = str(Path.cwd())
    if here not in sys.path:  # as `python -m` does, so that a file at hand is found
        sys.path.insert(0, here)
    module, _, kind = name.rpartition(":")
    try:
        if not module or re.search(r"-v\d+$", kind):
            return gymnasium.make(name, **config.arguments())
        made = getattr(importlib.import_module(module), kind)(**config.arguments())
    except (ImportError, AttributeError, TypeError, gymnasium.error.Error) as error:
        raise UnfitEnvironmentError(f"{type(error).__name__}: {error}") from error
    if not isinstance(made, gymnasium.Env):
        raise UnfitEnvironmentError(
            f"{kind} makes a {type(made).__name__}; right would be a gymnasium.Env"
        )
    return made


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
            sizes = [int(np.prod(self._part(name).shape)) for name in self._vectors]  # type: ignore[arg-type]
            seen["vector"] = spaces.Box(-np.inf, np.inf, (sum(sizes),), np.float32)
        self.observation_space = spaces.Dict(seen)
        Actions.of(env.action_space)  # refuses what cannot be used
        self.saveable = env.has_wrapper_attr("get_state") and env.has_wrapper_attr("set_state")
        self._limits = [w for w in _wrappers(env) if isinstance(w, TimeLimit)]

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(**kwargs)
        return self._see(observation), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Hold the action for some frames; rewards add up."""
        total = 0.0
        for _ in range(self._repeat):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return self._see(observation), total, bool(terminated), bool(truncated), info

    def get_state(self) -> dict[str, Any]:
        """The environment's own state, and how far its time limits are."""
        elapsed = [limit._elapsed_steps for limit in self._limits]
        return {"env": self.env.get_wrapper_attr("get_state")(), "elapsed": elapsed}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from `get_state()`."""
        if self.env.spec is not None or self._limits:
            self.env.reset()  # Gymnasium's wrappers want to have seen one
        self.env.get_wrapper_attr("set_state")(state["env"])
        for limit, elapsed in zip(self._limits, state["elapsed"], strict=True):
            limit._elapsed_steps = elapsed

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


def _wrappers(env: gymnasium.Env) -> list[gymnasium.Env]:
    chain = [env]
    while isinstance(chain[-1], gymnasium.Wrapper):
        chain.append(chain[-1].env)
    return chain


def _resized(image: Array, size: int) -> Array:
    """uint8 [size, size, 3] of a picture of any size, with one colour or three."""
    image = image.reshape(*image.shape[:2], -1)
    if image.shape[2] == 1:
        image = image.repeat(3, axis=2)
    if image.shape[:2] != (size, size):
        image = np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.BOX))
    return np.ascontiguousarray(image)
