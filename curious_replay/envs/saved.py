"""The state of an environment by whomever, together with what Gymnasium's wrappers count."""

from typing import Any

import gymnasium
from gymnasium.wrappers import TimeLimit


def can_save(env: gymnasium.Env) -> bool:
    """Return whether it has get_state and set_state; one that depends on others says `saveable`."""
    if env.has_wrapper_attr("saveable") and not env.get_wrapper_attr("saveable"):
        return False
    return env.has_wrapper_attr("get_state") and env.has_wrapper_attr("set_state")


def state_of(env: gymnasium.Env) -> dict[str, Any]:
    """Return the environment's own state, and how far its time limits are."""
    elapsed = [limit._elapsed_steps for limit in _limits(env)]
    return {"env": env.get_wrapper_attr("get_state")(), "elapsed": elapsed}


def restore(env: gymnasium.Env, state: dict[str, Any]) -> None:
    """Go on from `state_of` an environment that was made in the same way."""
    if isinstance(env, gymnasium.Wrapper):
        env.reset()  # Gymnasium's wrappers want to have seen one
    env.get_wrapper_attr("set_state")(state["env"])
    for limit, elapsed in zip(_limits(env), state["elapsed"], strict=True):
        limit._elapsed_steps = elapsed


def _limits(env: gymnasium.Env) -> list[TimeLimit]:
    found = []
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            found.append(env)
        env = env.env
    return found
