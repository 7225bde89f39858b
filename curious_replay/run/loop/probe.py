"""What the world model knows of the ball: its error on the eight test scenes of the assay.

They are those of the arena that the agent lives in. Each is a drive towards the ball, with the same
pictures and actions every time. The model sees the first 30 steps, then predicts 45 from the
actions alone, with the most likely latents. A line is written for each scene and each step
predicted; `analysis/model_error.py` reads them.

The agent is only asked, never changed: a run with the probe is the run without it.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from curious_replay.agents.interface import Agent
from curious_replay.envs.arena import ArenaConfig
from curious_replay.envs.object_interaction import (
    BALLS,
    SCENES,
    ObjectInteraction,
    Scale,
    ball_pixels,
)

Array = np.ndarray

SEEN, PREDICTED = 30, 45  # steps
LOG_NORMAL = 0.5 * np.log(2 * np.pi)  # of a unit normal, per pixel and channel


class Probe:
    """The test scenes, and an agent's error on them."""

    def __init__(self, scale: Scale, image_size: int, camera: str, action_repeat: int) -> None:
        self.settings: dict[str, Any] = {
            "scale": scale,
            "image_size": image_size,
            "camera": camera,
            "action_repeat": action_repeat,
        }

    @cached_property
    def scenes(self) -> dict[str, Array]:
        """All scenes as a batch of steps, [8, 75, ...]; made when first needed."""
        drives = [self._drive(number) for number in SCENES]
        shape = (len(drives), SEEN + PREDICTED)
        is_first = np.zeros(shape, bool)
        is_first[:, 0] = True
        return {
            "image": np.stack([pictures for pictures, _ in drives]),
            "action": np.stack([actions for _, actions in drives]),
            "reward": np.zeros(shape, np.float32),
            "is_first": is_first,
            "is_terminal": np.zeros(shape, bool),
        }

    def lines(self, agent: Agent) -> Iterator[dict[str, Any]]:
        """Yield the errors of each scene and each step predicted.

        mse is the mean over pixels and channels of squared differences, pixels in [0, 1]; nll the
        negative log-likelihood in nats under normals of unit variance about the predicted picture,
        summed over them. The same follows for the pixels of the ball in the true picture, if any.
        """
        truth = self.scenes["image"][:, SEEN:]
        predicted = agent.open_loop(self.scenes, SEEN)[:, SEEN:]
        squares = ((predicted / 255 - truth / 255) ** 2).sum(-1)  # [8, 45, H, W]
        ball = ball_pixels(truth, BALLS["magenta"])
        for row, number in enumerate(SCENES):
            for step in range(PREDICTED):
                error, shown = squares[row, step], ball[row, step]
                line: dict[str, Any] = {
                    "scene": number,
                    "ahead": step + 1,
                    "object_pixels": int(shown.sum()),
                }
                line |= _errors(error.ravel(), "")
                if shown.any():
                    line |= _errors(error[shown], "_object")
                yield line

    def _drive(self, number: int) -> tuple[Array, Array]:
        """Return pictures uint8 [75, H, W, 3] and actions [75, 2] of one scene."""
        env = ObjectInteraction(scene=number, phase="ball", **self.settings)
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


def _errors(squares: Array, suffix: str) -> dict[str, float]:
    """Return errors from squares [P], summed over the three channels of P pixels."""
    total, numbers = float(squares.sum()), 3 * squares.size
    nll = 0.5 * total + numbers * LOG_NORMAL
    return {f"mse{suffix}": total / numbers, f"nll{suffix}": float(nll)}
