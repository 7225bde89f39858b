"""The eight test scenes of the assay: drives towards the ball, in the arena of the run."""

from functools import partial

import numpy as np

from curious_replay.envs.arena import ArenaConfig
from curious_replay.envs.object_interaction import BALLS, SCENES, ObjectInteraction, ball_pixels
from curious_replay.run.loop.probe import Scenes
from curious_replay.run.settings.env_config import AssayConfig

Array = np.ndarray
SEEN, PREDICTED = 30, 45  # steps


def make(env: AssayConfig, camera: str) -> Scenes:
    """Make them as a run's world looks."""
    played = {number: _drive(number, env, camera) for number in SCENES}
    return Scenes.of(played, partial(ball_pixels, ball=BALLS["magenta"]), SEEN)


def _drive(number: int, settings: AssayConfig, camera: str) -> tuple[Array, Array]:
    """Return pictures uint8 [75, H, W, 3] and actions float32 [75, 2] of one scene."""
    env = ObjectInteraction(
        scene=number,
        phase="ball",
        scale=settings.scale,
        image_size=settings.image_size,
        camera=camera,
        action_repeat=settings.action_repeat,
    )
    rng = np.random.default_rng(number)
    steps = SEEN + PREDICTED
    # Ahead at changing speed, slower where the way is shorter, with a little steering.
    slower = env.arena.side / ArenaConfig().side
    roll, steer = rng.uniform(-1.0, -0.4, steps) * slower, rng.uniform(-0.15, 0.15, steps)
    actions = np.stack([roll, steer], 1).astype(np.float32)
    observation, _ = env.reset(seed=number)
    pictures = [observation["image"]]
    for action in actions[:-1]:
        observation, *_ = env.step(action)
        pictures.append(observation["image"])
    env.close()
    return np.stack(pictures), actions
