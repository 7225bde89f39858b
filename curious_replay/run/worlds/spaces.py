"""What an environment shows and takes, in the words of an agent; said plainly where that fails.

An agent sees an image, numbers, or both, and acts with one of several actions or with numbers in
[-1, 1]. What Gymnasium's spaces offer beyond that is refused with what was found and what would
be right.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from curious_replay.agents.spaces import Spaces
from curious_replay.errors import UsageError

Array = np.ndarray
Space = spaces.Space[Any]


class UnfitEnvironmentError(UsageError):
    """No agent of ours can live in the environment."""


@dataclass(frozen=True)
class Actions:
    """Between the agent's actions, one-hot or in [-1, 1], and those of an environment."""

    count: int
    discrete: bool
    shape: tuple[int, ...] = ()
    dtype: Any = np.int64
    low: Any = 0
    """Least action: the first index, or an array [count]."""
    high: Any = 0

    @classmethod
    def of(cls, space: Space) -> "Actions":
        """Read an action space, or refuse it."""
        if isinstance(space, spaces.Discrete):
            return cls(int(space.n), True, (), np.int64, int(space.start))
        wanted = "an agent here needs Discrete actions or a bounded Box of numbers"
        if not isinstance(space, spaces.Box):
            raise UnfitEnvironmentError(f"its action space is {space}; {wanted}")
        if not np.issubdtype(space.dtype, np.floating):
            raise UnfitEnvironmentError(f"its actions are {space.dtype} numbers: {space}; {wanted}")
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise UnfitEnvironmentError(
                f"its actions have no bounds: {space}; {wanted}, so bound them, for instance with "
                "gymnasium.wrappers.RescaleAction"
            )
        low, high = space.low.reshape(-1), space.high.reshape(-1)
        if not low.size:
            raise UnfitEnvironmentError(f"its actions have no dimension: {space}; {wanted}")
        return cls(low.size, False, space.shape, space.dtype, low, high)

    def to_env(self, actions: Array) -> Array:
        """Convert float32 [N, A] of an agent to what the vector environment takes, [N, ...]."""
        if self.discrete:
            indices: Array = actions.argmax(-1).astype(self.dtype) + self.low
            return indices
        share = (np.clip(actions.astype(np.float64), -1, 1) + 1) / 2
        scaled = self.low + share * (self.high.astype(np.float64) - self.low)
        rows = scaled.reshape(len(actions), *self.shape).astype(self.dtype)
        bounded: Array = np.clip(rows, self.low.reshape(self.shape), self.high.reshape(self.shape))
        return bounded

    def random(self, rng: np.random.Generator, rows: int) -> Array:
        """Draw actions by chance, float32 [rows, A]."""
        if self.discrete:
            return np.eye(self.count, dtype=np.float32)[rng.integers(self.count, size=rows)]
        return rng.uniform(-1, 1, (rows, self.count)).astype(np.float32)


def read_spaces(observation: Space, action: Space) -> Spaces:
    """Return what agents are told of an environment.

    Its observation is {"image", "vector"} already.
    """
    assert isinstance(observation, spaces.Dict)
    image, vector = observation.spaces.get("image"), observation.spaces.get("vector")
    assert isinstance(image, spaces.Box | None) and isinstance(vector, spaces.Box | None)
    actions = Actions.of(action)
    return Spaces(
        actions=actions.count,
        discrete=actions.discrete,
        image=None if image is None else (image.shape[0], image.shape[1]),
        vector=0 if vector is None else vector.shape[0],
    )


def parts_of(space: Space) -> tuple[list[str], list[str]]:
    """Return the names of the images and of the vectors in an observation.

    The name is "" if the observation is one of them itself.
    """
    parts = dict(space.spaces) if isinstance(space, spaces.Dict) else {"": space}
    images = [name for name, part in parts.items() if _is_image(part)]
    vectors = [name for name, part in parts.items() if _is_vector(part)]
    for name, part in parts.items():
        if name not in images and name not in vectors:
            called = f"its observation {name!r}" if name else "its observation"
            raise UnfitEnvironmentError(f"{called} is {part}; {_advice(part)}")
    if len(images) > 1:
        raise UnfitEnvironmentError(
            f"it shows {len(images)} images ({', '.join(images)}); an agent here sees one: stack "
            "them into one picture, or leave the others out"
        )
    if not images and not vectors:
        raise UnfitEnvironmentError(f"its observation is empty: {space}")
    return images, sorted(vectors)


def _is_image(space: Space) -> bool:
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8:
        return False
    return len(space.shape) == 2 or (len(space.shape) == 3 and space.shape[-1] in (1, 3))


def _is_vector(space: Space) -> bool:
    if not isinstance(space, spaces.Box) or len(space.shape) > 1 or space.dtype == np.uint8:
        return False
    return bool(np.issubdtype(space.dtype, np.floating) or np.issubdtype(space.dtype, np.integer))


def _advice(space: Space) -> str:
    if isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3:
        if space.shape[0] in (1, 3):
            return "an image has its colours last: transpose it to [height, width, 3]"
        return "an image has 1 or 3 colours, last: [height, width, 3]"
    if isinstance(space, spaces.Box) and len(space.shape) > 1:
        return (
            "an image must be uint8 [height, width, 3] from 0 to 255, and anything else one row "
            "of numbers: gymnasium.wrappers.FlattenObservation makes one"
        )
    return (
        "right would be an image (Box, uint8 [height, width, 3]), numbers (Box, [n]), or a Dict of "
        "these: gymnasium.wrappers.FlattenObservation makes numbers of most spaces"
    )
