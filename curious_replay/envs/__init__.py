"""Gymnasium environments, many of which change while the agent learns.

Importing this package registers all of them: `gymnasium.make("CuriousReplay/crafter-v0")`, or by
the short name `make("crafter")`. Simulators are imported only when one is made.
"""

from curious_replay.extras import explained

with explained("curious_replay.envs", "worlds"):
    from curious_replay.envs.registry import (
        RegisteredEnv,
        find,
        make,
        names,
        register,
        register_env,
    )
    from curious_replay.envs.schedule import Schedule
    from curious_replay.envs.switch import Switch
    from curious_replay.envs.vectors.vector import make_vector

__all__ = [
    "RegisteredEnv",
    "Schedule",
    "Switch",
    "find",
    "make",
    "make_vector",
    "names",
    "register_env",
]

register()
