"""Eight test scenes of the grid of rooms: walks to the object, and around it, pushing it.

Half of the steps near it go towards it, the others anywhere.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from curious_replay.envs import registry
from curious_replay.envs.toys.two_rooms import DOWN, LEFT, MOVES, RIGHT, UP, object_pixels
from curious_replay.run.loop.probe import Scenes
from curious_replay.run.settings.grid_config import TwoRoomsConfig

Array = np.ndarray
SCENES = range(1, 9)
NEAR = 3  # moves from the agent into the object, at most, when the model has seen it
PREDICTED = 20  # steps


def make(env: TwoRoomsConfig) -> Scenes:
    """Make them as a run's world looks."""
    played = {number: _walk(number, env) for number in SCENES}
    steps = len(played[SCENES[0]][1])
    return Scenes.of(played, object_pixels, steps - PREDICTED)


def _walk(number: int, settings: TwoRoomsConfig) -> tuple[Array, Array]:
    """Return pictures uint8 [steps, H, W, 3] and one-hot actions [steps, 5] of one scene."""
    endless = {"schedule": ((0, "object"),), "length": None}
    env: Any = registry.make("toy/two-rooms", **settings.arguments() | endless)
    rng = np.random.default_rng(number)
    observation, info = env.reset(seed=number)
    pictures, actions = [observation["image"]], [_towards(info)]
    within = NEAR if settings.view is None else min(NEAR, settings.view // 2)
    left = 1 + PREDICTED  # the last step seen, and those after it
    while left:
        observation, *_, info = env.step(actions[-1])
        pictures.append(observation["image"])
        near = left <= PREDICTED or _moves_to_object(info, settings.object_size) <= within
        left -= near
        anywhere = near and rng.random() < 0.5
        actions.append(int(rng.integers(len(MOVES))) if anywhere else _towards(info))
    env.close()
    return np.stack(pictures), np.eye(len(MOVES), dtype=np.float32)[actions]


def _moves_to_object(info: Mapping[str, Any], size: int) -> int:
    away = np.abs(info["log_object_position"] - info["log_agent_position"])
    return int(np.maximum(away - size // 2, 0).sum())


def _towards(info: Mapping[str, Any]) -> int:
    """Return the action that shortens the longer side of the way to the object."""
    rows, columns = (info["log_object_position"] - info["log_agent_position"]).tolist()
    if abs(rows) > abs(columns):
        return DOWN if rows > 0 else UP
    return RIGHT if columns > 0 else LEFT
