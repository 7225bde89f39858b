"""What the demo's models see: drives through the small arena of the assay, before and after a ball.

The policy is fixed: it knows neither the ball nor any model, so that all models get the same data.
"""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from curious_replay.envs.object_interaction import BALLS, ObjectInteraction, ball_pixels

Array = np.ndarray
Steps = dict[str, Array]
"""Fields of steps as agents and replay know them."""

PIXELS = 32
FRAMES_PER_STEP = 2
BALL = "magenta"
LOGGED = {
    name: name for name in ("log_agent_position", f"log_{BALL}_position", f"log_{BALL}_pixels")
} | {"log_frame": "frame"}
"""What is stored with each step, and its name in the info."""
FEWEST_PIXELS = 6
"""Of the ball in a picture that is a test: a speck of it says little."""
CLEAR_PIXELS = 60
"""Of a ball that is neither far away nor larger than the picture, nor leaves it."""


def explore(key: Sequence[int], arenas: int, before: int, after: int) -> Steps:
    """Drive through empty arenas for `before` steps each, then with balls for `after` more.

    Everything that happens follows from `key`. Fields are [before + after, arenas, ...].
    """
    seeds = np.random.SeedSequence(key).generate_state(arenas).tolist()
    drives = [_drive(seed, arenas, before, after) for seed in seeds]
    return {name: np.stack([drive[name] for drive in drives], 1) for name in drives[0]}


def _drive(seed: int, arenas: int, before: int, after: int) -> Steps:
    """Return the steps of one of several arenas, [before + after, ...]."""
    change = FRAMES_PER_STEP * arenas * before
    env = ObjectInteraction(
        scale="mini",
        schedule=((0, "empty"), (change, "ball")) if before else ((0, "ball"),),
        image_size=PIXELS,
        action_repeat=FRAMES_PER_STEP,
        camera="ray",  # the same pixels on every machine
        parallel=arenas,
    )
    actions = wander(np.random.default_rng(seed), before + after)
    observation, info = env.reset(seed=seed)
    images, logged = [], []
    for action in actions:
        images.append(observation["image"])
        logged.append([info[name] for name in LOGGED.values()])
        observation, _, _, _, info = env.step(action)
    env.close()
    count = len(actions)
    return {
        "image": np.stack(images),
        "action": actions,
        "reward": np.zeros(count, np.float32),
        "is_first": np.arange(count) == 0,
        "is_last": np.zeros(count, bool),
        "is_terminal": np.zeros(count, bool),
        **{name: np.stack([row[i] for row in logged]) for i, name in enumerate(LOGGED)},
    }


def wander(rng: np.random.Generator, steps: int) -> Array:
    """Draw actions float32 [steps, 2].

    They go ahead or back at some speed on some curve, each for half a second.
    """
    actions: list[Array] = []
    while len(actions) < steps:
        speed = rng.uniform(0.4, 1) * (-1 if rng.random() < 0.6 else 1)  # -1 is ahead
        action = np.array([speed, rng.uniform(-0.5, 0.5)], np.float32)
        actions += [action] * int(rng.integers(4, 16))
    return np.stack(actions[:steps])


def ball_windows(steps: Steps, seen: int, ahead: int, most: int) -> Steps:
    """Return windows [B, seen + ahead, ...] with the ball in the last picture seen and all after.

    `steps` are [N, arenas, ...]. At most `most` windows, spread evenly; first comes that with
    the clearest ball. Raises ValueError if there is none.
    """
    length = seen + ahead
    pixels = steps[f"log_{BALL}_pixels"]
    shows = sliding_window_view(pixels >= FEWEST_PIXELS, length, axis=0)[..., seen - 1 :].all(-1)
    arena, start = np.nonzero(shows.T)
    if not len(start):
        raise ValueError(f"the ball is nowhere to be seen for {ahead + 1} steps in a row")
    chosen = np.linspace(0, len(start) - 1, min(most, len(start))).astype(int)
    arena, start = arena[chosen], start[chosen]
    at = start[:, None] + np.arange(length)
    shown = pixels[at, arena[:, None]][:, seen:]
    clearest = int(np.abs(shown - CLEAR_PIXELS).max(1).argmin())
    arena, at = np.roll(arena, -clearest), np.roll(at, -clearest, axis=0)
    windows = {name: values[at, arena[:, None]] for name, values in steps.items()}
    windows["is_first"][:, 0] = True
    return windows


def is_ball(images: Array) -> Array:
    """Return where pictures, uint8 [..., H, W, 3], show the ball: bool [..., H, W]."""
    return ball_pixels(images, BALLS[BALL])
