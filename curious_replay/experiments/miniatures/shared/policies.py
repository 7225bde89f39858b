"""Policies that learn nothing, for the ladder: chance, and drivers that know the world."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from curious_replay.run.settings.config import Config
from curious_replay.run.worlds.environments import make_env

Array = np.ndarray
Policy = Callable[[np.random.Generator, Mapping[str, Any]], Any]
"""From a generator and the environment's latest info, in which the environment itself is `world`
for who knows more than can be seen, to an action."""


def play(
    config: Config,
    policy: Policy,
    phase: str | None,
    steps: int,
    seed: int,
    before: tuple[str, int] | None = None,
) -> dict[str, Array]:
    """Let a policy act in the world of a run, held in one phase if it has any.

    Returns, for each step [steps, ...], its `reward`, whether it was the `last` of an episode, and
    each `log_*` entry of its info. `before` is a phase and the steps that it lasts first, which are
    not returned. Equal seeds play the same.
    """
    env: Any = make_env(config.choice.env, config.env)
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    first, warm = before or (phase, 0)
    try:
        if first is not None:
            env.unwrapped.set_phase(first)
        _, info = env.reset(seed=seed)
        for step in range(warm + steps):
            if step == warm and phase is not None:
                env.unwrapped.set_phase(phase)
            _, reward, terminated, truncated, info = env.step(policy(rng, {**info, "world": env}))
            last = bool(terminated or truncated)
            logged = {name: value for name, value in info.items() if name.startswith("log_")}
            rows.append({"reward": float(reward), "last": last, **logged})
            if last:
                _, info = env.reset()
    finally:
        env.close()
    return {name: np.array([row[name] for row in rows[warm:]]) for name in rows[0]}


def chooses(actions: int) -> Policy:
    """Return the policy that draws one of so many actions, evenly."""
    return lambda rng, info: int(rng.integers(actions))
