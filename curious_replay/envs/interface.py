"""What the environments of this package share: their picture, and how they refuse misuse."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

# All can return their picture from render(); frames per second are those of a film of them.
METADATA: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}


def image_space(image_size: int) -> spaces.Dict:
    """Observation space `{"image": uint8 [image_size, image_size, 3]}`, 32 to 128 pixels."""
    if not 32 <= image_size <= 128:
        raise ValueError(f"image_size must be from 32 to 128 pixels, got {image_size}")
    return spaces.Dict({"image": spaces.Box(0, 255, (image_size, image_size, 3), np.uint8)})


def check_step(env: gymnasium.Env, action: Any, started: bool) -> None:
    """Refuse a step before the first reset, and an action that is none."""
    if not started:
        raise gymnasium.error.ResetNeeded("call reset() before step()")
    if not env.action_space.contains(action):
        raise ValueError(f"the action must be in {env.action_space}, got {action}")
