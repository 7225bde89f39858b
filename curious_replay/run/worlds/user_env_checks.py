"""Whether what a user's environment returns is what it declared, at each reset and step.

A world that is right at first may go wrong hours later. What would then be learned from is refused
here, in words that say what came and what was declared. Bounds are not checked: many environments
overstep theirs a little, and nothing depends on them.
"""

from typing import Any

import numpy as np
from gymnasium import spaces

from curious_replay.run.worlds.spaces import Space, UnfitEnvironmentError

OPENED = ("observation", "info")
OUTCOME = ("observation", "reward", "terminated", "truncated", "info")


def check_reset(outcome: Any, space: Space) -> None:
    """Refuse what `reset` must not return; `space` is that of the observations."""
    _check_parts("reset()", outcome, OPENED)
    check_observation("reset()", outcome[0], space)


def check_step(outcome: Any, space: Space) -> None:
    """Refuse what `step` must not return; `space` is that of the observations."""
    _check_parts("step()", outcome, OUTCOME)
    observation, reward = outcome[:2]
    number = np.asarray(reward)
    if number.size != 1 or number.dtype.kind not in "biuf" or not np.isfinite(number).all():
        raise UnfitEnvironmentError(
            f"step() returned the reward {reward!r}; right would be a finite number"
        )
    check_observation("step()", observation, space)


def check_observation(method: str, observation: Any, space: Space) -> None:
    """Refuse an observation of other parts, shapes or kinds of numbers than its space has."""
    if not isinstance(space, spaces.Dict):
        _check_part(f"{method} returned an observation", observation, space)
        return
    if not isinstance(observation, dict) or observation.keys() != space.spaces.keys():
        found = sorted(observation) if isinstance(observation, dict) else type(observation).__name__
        raise UnfitEnvironmentError(
            f"{method} returned an observation of {found}; right would be a dict of "
            f"{sorted(space.spaces)}, as in its observation_space"
        )
    for name, part in space.spaces.items():
        _check_part(f"{method} returned an observation {name!r}", observation[name], part)


def _check_parts(method: str, outcome: Any, right: tuple[str, ...]) -> None:
    """Refuse all but as many values as are right, of which the last is a dictionary."""
    if not isinstance(outcome, tuple) or len(outcome) != len(right):
        values = f"{len(outcome)} values" if isinstance(outcome, tuple) else None
        found = values or f"one value, of the type {type(outcome).__name__}"
        raise UnfitEnvironmentError(f"{method} returned {found}; right would be {', '.join(right)}")
    if not isinstance(outcome[-1], dict):
        raise UnfitEnvironmentError(
            f"{method} returned the info {outcome[-1]!r}; right would be a dictionary, as {{}}"
        )


def _check_part(what: str, value: Any, space: Space) -> None:
    array = np.asarray(value)
    if array.shape != space.shape:
        raise UnfitEnvironmentError(
            f"{what} of shape {array.shape}; right would be {space.shape}, as in its "
            "observation_space"
        )
    if space.dtype == np.uint8:
        fits, right = array.dtype == np.uint8, "uint8"
    else:  # numbers become float32 in any case
        fits, right = array.dtype.kind in "biuf", str(space.dtype)
    if not fits:
        raise UnfitEnvironmentError(
            f"{what} of dtype {array.dtype}; right would be {right}, as in its observation_space"
        )
    wrong = np.count_nonzero(~np.isfinite(array))
    if wrong:
        raise UnfitEnvironmentError(
            f"{what} in which {wrong} of {array.size} numbers are NaN or infinite; right would be "
            "finite ones"
        )
