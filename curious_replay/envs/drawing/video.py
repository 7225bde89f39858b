"""Videos of a random policy: the quickest way to see what an environment is like."""

from dataclasses import dataclass
from pathlib import Path

import gymnasium
import numpy as np
from PIL import Image

from curious_replay.errors import UsageError

Array = np.ndarray


@dataclass(frozen=True)
class Video:
    """Pictures uint8 [time, height, width, 3], the frames they cover, and the phases they show."""

    pictures: Array
    frames: int
    phases: tuple[str, ...]


def record_random_policy(env: gymnasium.Env, frames: int, seed: int) -> Video:
    """Return one picture for each step until `frames` frames are simulated, resets included."""
    if frames < 1:
        raise UsageError(f"a video needs at least one frame, got {frames}")
    frames_per_step = getattr(env, "action_repeat", 1)
    env.action_space.seed(seed)
    observation, info = env.reset(seed=seed)
    pictures, phases, recorded = [observation["image"]], [info["phase"]], 0
    while recorded < frames:
        observation, _, terminated, truncated, info = env.step(env.action_space.sample())
        recorded += frames_per_step
        if terminated or truncated:
            observation, info = env.reset()
        pictures.append(observation["image"])
        phases.append(info["phase"])
    return Video(np.stack(pictures), recorded, tuple(dict.fromkeys(phases)))


def write_gif(pictures: Array, path: Path, *, zoom: int, pictures_per_second: float) -> None:
    """Write pictures uint8 [time, H, W, 3] as an endless GIF, each pixel `zoom` x `zoom` large."""
    if path.suffix.lower() != ".gif":
        raise UsageError(f"a video is written as .gif, got {path.name!r}")
    if zoom < 1:
        raise UsageError(f"zoom must be at least 1, got {zoom}")
    large = pictures.repeat(zoom, axis=1).repeat(zoom, axis=2)
    first, *others = (Image.fromarray(picture) for picture in large)
    path.parent.mkdir(parents=True, exist_ok=True)
    duration = round(1000 / pictures_per_second)
    first.save(path, save_all=True, append_images=others, duration=duration, loop=0)
