"""What the demo's models see: drives through the small arena of the assay, before and after a ball.

The policy is fixed: it knows neither the ball nor any model, so that all models get the same data.
"""

import numpy as np

from curious_replay.envs.object_interaction import BALLS, ObjectInteraction, ball_pixels

Array = np.ndarray
Steps = dict[str, Array]
"""Fields of successive steps, [N, ...] each, as agents and replay know them."""

PIXELS = 32
FRAMES_PER_STEP = 2
BALL = "magenta"
LOGGED = ("log_agent_position", f"log_{BALL}_position", f"log_{BALL}_pixels")
FEWEST_PIXELS = 6
"""Of the ball in a picture that is a test: a speck of it says little."""


def explore(seed: int, before: int, after: int) -> Steps:
    """Drive through the empty arena for `before` steps, then with the ball for `after` more."""
    env = ObjectInteraction(
        scale="mini",
        schedule=((0, "empty"), (FRAMES_PER_STEP * before, "ball")) if before else ((0, "ball"),),
        image_size=PIXELS,
        action_repeat=FRAMES_PER_STEP,
        camera="ray",  # the same pixels on every machine
    )
    actions = wander(np.random.default_rng(seed), before + after)
    observation, info = env.reset(seed=seed)
    images, logged = [], []
    for action in actions:
        images.append(observation["image"])
        logged.append([info[name] for name in LOGGED])
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
        **{name: np.stack(column) for name, column in zip(LOGGED, zip(*logged, strict=True), strict=True)},
    }


def wander(rng: np.random.Generator, steps: int) -> Array:
    """Actions float32 [steps, 2]: ahead or back at some speed on some curve, for half a second."""
    actions: list[Array] = []
    while len(actions) < steps:
        speed = rng.uniform(0.4, 1) * (-1 if rng.random() < 0.6 else 1)  # -1 is ahead
        action = np.array([speed, rng.uniform(-1, 1)], np.float32)
        actions += [action] * int(rng.integers(4, 16))
    return np.stack(actions[:steps])


def ball_windows(steps: Steps, seen: int, ahead: int, most: int) -> Steps:
    """Windows [B, seen + ahead, ...] with the ball in the last picture seen and all that follow.

    At most `most` of them, spread evenly; that with the largest ball at its end comes first.
    Raises ValueError if there is none.
    """
    length = seen + ahead
    pixels = steps[f"log_{BALL}_pixels"]
    shows = pixels >= FEWEST_PIXELS
    starts = [
        start
        for start in range(len(shows) - length + 1)
        if shows[start + seen - 1 : start + length].all()
    ]
    if not starts:
        raise ValueError(f"the ball is nowhere to be seen for {ahead + 1} steps in a row")
    chosen = np.array(starts)[np.linspace(0, len(starts) - 1, min(most, len(starts))).astype(int)]
    chosen = np.roll(chosen, -int(pixels[chosen + length - 1].argmax()))
    at = chosen[:, None] + np.arange(length)
    windows = {name: values[at] for name, values in steps.items()}
    windows["is_first"][:, 0] = True
    return windows


def is_ball(images: Array) -> Array:
    """Where pictures, uint8 [..., H, W, 3], show the ball: bool [..., H, W]."""
    return ball_pixels(images, BALLS[BALL])
