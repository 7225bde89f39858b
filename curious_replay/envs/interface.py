"""What the environments of this package share: their picture, and how they refuse misuse."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from curious_replay.errors import UsageError

# All can return their picture from render(); frames per second are those of a video of them.
METADATA: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}


LEAST, LEAST_OF_CELLS, MOST = 32, 16, 128
"""Pixels per side that a picture has at least, also where it shows cells, and at most."""


def check_image_size(image_size: int, least: int = LEAST) -> None:
    """Refuse pictures that are too small or too large."""
    if not least <= image_size <= MOST:
        raise UsageError(f"image_size must be from {least} to {MOST} pixels, got {image_size}")


def image_space(image_size: int, least: int = LEAST) -> spaces.Dict:
    """Return the observation space, `{"image": uint8 [image_size, image_size, 3]}`."""
    check_image_size(image_size, least)
    return spaces.Dict({"image": spaces.Box(0, 255, (image_size, image_size, 3), np.uint8)})


def cells_of_pixels(image_size: int, cells: int) -> np.ndarray:
    """Return which of `cells` cells each row (or column) of pixels shows: int [image_size].

    Cells differ in size by a pixel where the one number is no multiple of the other. Fewer pixels
    than cells, so that some could not be seen, are refused.
    """
    if cells > image_size:
        raise UsageError(
            f"image_size is {image_size} pixels and {cells} cells are in view, so some would not be"
            " seen: each needs a pixel, so show fewer cells or choose a larger image_size"
        )
    return np.arange(image_size) * cells // image_size


def check_step(env: gymnasium.Env, action: Any, started: bool) -> None:
    """Refuse a step before the first reset, and an action that is none."""
    if not started:
        raise gymnasium.error.ResetNeeded("call reset() before step()")
    if not env.action_space.contains(action):
        raise ValueError(f"the action must be in {env.action_space}, got {action}")
