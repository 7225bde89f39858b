"""What the world model knows of the object: its error on test scenes, the same ones every time.

The model sees the first steps of a scene, then predicts the others from the actions alone, with the
most likely latents. A line is written for each scene and each step predicted;
`analysis/model_error.py` reads them.

The agent is only asked, never changed: a run with the probe is the run without it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from curious_replay.agents.interface import Agent
from curious_replay.run.settings.env_base import EnvConfig
from curious_replay.run.settings.env_config import AssayConfig
from curious_replay.run.settings.grid_config import TwoRoomsConfig

Array = np.ndarray
LOG_NORMAL = 0.5 * np.log(2 * np.pi)  # of a unit normal, per pixel and channel


class Scenes(NamedTuple):
    """Test scenes as a batch of steps, and where the object is in them."""

    names: Sequence[int]
    batch: dict[str, Array]
    """[scenes, steps, ...]."""
    shown: Array
    """Which pixels show the object, bool [scenes, steps, H, W]."""
    seen: int
    """Steps that the model sees; it predicts the others."""

    @classmethod
    def of(
        cls,
        played: Mapping[int, tuple[Array, Array]],
        shown: Callable[[Array], Array],
        seen: int,
    ) -> "Scenes":
        """Return scenes of the pictures uint8 [steps, H, W, 3] and actions [steps, ...] of each.

        `shown` tells which pixels of pictures [..., 3] show the object.
        """
        pictures = np.stack([image for image, _ in played.values()])
        shape = pictures.shape[:2]
        is_first = np.zeros(shape, bool)
        is_first[:, 0] = True
        batch = {
            "image": pictures,
            "action": np.stack([action for _, action in played.values()]),
            "reward": np.zeros(shape, np.float32),
            "is_first": is_first,
            "is_terminal": np.zeros(shape, bool),
        }
        return cls(tuple(played), batch, shown(pictures), seen)


def scenes_of(env: EnvConfig, camera: str | None) -> Scenes:
    """Make the scenes of a run's world, `camera` as it is there."""
    if isinstance(env, TwoRoomsConfig):
        from curious_replay.run.loop import walks  # noqa: PLC0415

        return walks.make(env)
    assert isinstance(env, AssayConfig)
    from curious_replay.run.loop import drives  # noqa: PLC0415  # needs the simulator

    return drives.make(env, camera or "auto")


class Probe:
    """An agent's error on test scenes."""

    def __init__(self, scenes: Scenes) -> None:
        self.scenes = scenes

    def lines(self, agent: Agent) -> Iterator[dict[str, Any]]:
        """Yield the errors of each scene and each step predicted.

        mse is the mean over pixels and channels of squared differences, pixels in [0, 1]; nll the
        negative log-likelihood in nats under normals of unit variance about the predicted picture,
        summed over them. The same follows for the pixels of the object in the true picture, if any.
        """
        names, batch, shown, seen = self.scenes
        truth = batch["image"][:, seen:]
        predicted = agent.open_loop(batch, seen)[:, seen:]
        squares = ((predicted / 255 - truth / 255) ** 2).sum(-1)  # [scenes, predicted, H, W]
        for row, name in enumerate(names):
            for step in range(truth.shape[1]):
                error, there = squares[row, step], shown[row, seen + step]
                line: dict[str, Any] = {
                    "scene": name,
                    "ahead": step + 1,
                    "object_pixels": int(there.sum()),
                }
                line |= _errors(error.ravel(), "")
                if there.any():
                    line |= _errors(error[there], "_object")
                yield line


def _errors(squares: Array, suffix: str) -> dict[str, float]:
    """Return errors from squares [P], summed over the three channels of P pixels."""
    total, numbers = float(squares.sum()), 3 * squares.size
    nll = 0.5 * total + numbers * LOG_NORMAL
    return {f"mse{suffix}": total / numbers, f"nll{suffix}": float(nll)}
