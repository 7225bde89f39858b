"""The environments by name: one table, from which all else follows.

Each entry has a short name for the command line and configurations, and a Gymnasium id
(`gymnasium_id`). Nothing is imported before it is made.
"""

import difflib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator

SCALES = ("paper", "mini")


@dataclass(frozen=True)
class Entry:
    """One environment: where its class is, with which arguments, and what it is in one line."""

    name: str
    entry_point: str
    description: str
    tags: tuple[str, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    mini: Mapping[str, Any] = field(default_factory=dict)
    """What `scale="mini"` changes; empty where there is nothing to make smaller."""
    nondeterministic: bool = False
    """Same seed and actions may give another course with the arguments of the table."""

    @property
    def gymnasium_id(self) -> str:
        """Name under which Gymnasium knows it (it allows one slash only)."""
        return f"CuriousReplay/{self.name.replace('/', '-')}-v0"

    @property
    def module(self) -> str:
        """Module that its class is in."""
        return self.entry_point.partition(":")[0]


def _object_interaction() -> list[Entry]:
    descriptions = {
        "changing": "a magenta ball appears at 500K frames",
        "unchanging": "the ball is there from the start",
        "removal": "the ball is there from 500K to 1.5M",
        "two-balls": "a yellow ball, a magenta one at 500K",
        "two-balls-reversed": "a magenta ball, a yellow one at 500K",
    }
    return [
        Entry(
            name="object-interaction" if variant == "changing" else f"object-interaction-{variant}",
            entry_point="curious_replay.envs.object_interaction:ObjectInteraction",
            description=description,
            tags=("mujoco", "assay", *(() if variant == "unchanging" else ("changes",))),
            kwargs={"variant": variant},
            mini={"scale": "mini"},
        )
        for variant, description in descriptions.items()
    ]


def _control_suite() -> list[Entry]:
    described = {
        "acrobot_swingup": "swing two links up from the elbow",
        "cartpole_balance": "keep the pole up",
        "cartpole_balance_sparse": "keep the pole up, sparse reward",
        "cartpole_swingup": "swing the pole up",
        "cartpole_swingup_sparse": "swing the pole up, sparse reward",
        "cheetah_run": "a planar cheetah runs",
        "cup_catch": "catch a ball on a string in a cup",
        "finger_spin": "spin a hinged body",
        "finger_turn_easy": "turn a hinged body to a large target",
        "finger_turn_hard": "turn a hinged body to a small target",
        "hopper_hop": "one leg hops forward",
        "hopper_stand": "one leg stands",
        "pendulum_swingup": "swing up with little torque",
        "quadruped_run": "four legs run",
        "quadruped_walk": "four legs walk",
        "reacher_easy": "reach a large target with two links",
        "reacher_hard": "reach a small target with two links",
        "walker_run": "two planar legs run",
        "walker_stand": "two planar legs stand",
        "walker_walk": "two planar legs walk",
    }
    return [
        Entry(
            name=f"control/{task}",
            entry_point="curious_replay.envs.control:ControlSuite",
            description=description,
            tags=("mujoco", "control"),
            kwargs={"task": task},
        )
        for task, description in described.items()
    ]


def _constrained() -> list[Entry]:
    described = {
        "cup_catch": "the ball hangs low",
        "cartpole_swingup_sparse": "the pole hangs down",
        "cheetah_run": "four stiff joints",
    }
    return [
        Entry(
            name=f"constrained/{task}",
            entry_point="curious_replay.envs.constrained:ConstrainedControl",
            description=f"{description} until 500K frames",
            tags=("mujoco", "constrained", "changes"),
            kwargs={"task": task},
            mini={"schedule": ((0, "constrained"), (20_000, "free"))},
        )
        for task, description in described.items()
    ]


def _backgrounds() -> list[Entry]:
    swapped = [
        Entry(
            name=f"background-swap/{task}",
            entry_point="curious_replay.envs.background:BackgroundSwap",
            description="another background from 1M to 2M",
            tags=("mujoco", "background", "changes"),
            kwargs={"task": task},
            mini={"schedule": ((0, "A"), (40_000, "B"), (80_000, "A"))},
        )
        for task in (
            "walker_walk",
            "cartpole_swingup_sparse",
            "cartpole_balance",
            "walker_run",
            "reacher_easy",
        )
    ]
    random = Entry(
        name="random-background/walker_walk",
        entry_point="curious_replay.envs.background:RandomBackground",
        description="another background at every frame",
        tags=("mujoco", "background"),
        kwargs={"task": "walker_walk"},
    )
    return [*swapped, random]


ENTRIES: tuple[Entry, ...] = (
    *_object_interaction(),
    *_constrained(),
    *_backgrounds(),
    *_control_suite(),
    Entry(
        "crafter",
        "curious_replay.envs.crafter:CrafterEnv",
        "survival game with 22 achievements",
        ("crafter",),
        nondeterministic=True,
    ),
    Entry(
        "crafter-noreward",
        "curious_replay.envs.crafter:CrafterEnv",
        "the same game without reward",
        ("crafter",),
        {"reward": False},
        nondeterministic=True,
    ),
    Entry(
        "toy/count",
        "curious_replay.envs.toy:CountingWorld",
        "shows its step number, for tests",
        ("toy",),
    ),
    Entry(
        "toy/two-rooms",
        "curious_replay.envs.two_rooms:TwoRooms",
        "a grid; an object appears at 5,000",
        ("toy", "changes"),
        mini={"schedule": ((0, "empty"), (1_000, "object"))},
    ),
    Entry(
        "toy/mirror",
        "curious_replay.envs.mirror:Mirror",
        "reach a goal; mirrored from 10,000",
        ("toy", "changes"),
        mini={"schedule": ((0, "straight"), (2_000, "mirrored"))},
    ),
)


def names() -> tuple[str, ...]:
    """All short names, in the order of the table."""
    return tuple(entry.name for entry in ENTRIES)


def find(name: str) -> Entry:
    """The entry of a short name; an unknown name is answered with the nearest ones."""
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    near = difflib.get_close_matches(name, names(), n=3, cutoff=0.4)
    # Part of a name is a good guess too: "walker" is not close to "control/walker_walk".
    near += [known for known in names() if name and name in known and known not in near]
    advice = f"did you mean {', '.join(near[:5])}?" if near else "`curious envs` lists all"
    raise ValueError(f"unknown environment {name!r}; {advice}")


def arguments(name: str) -> tuple[str, ...]:
    """Names of the arguments that the environment can be made with."""
    creator = load_env_creator(find(name).entry_point)
    return tuple(inspect.signature(creator).parameters)


def make(name: str, *, scale: str = "paper", **kwargs: Any) -> gymnasium.Env:
    """Make an environment by short name; `kwargs` go before the settings of the table.

    `scale="mini"` gives a smaller world with an earlier change, where there is one.
    """
    entry = find(name)
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}")
    known = arguments(name)
    for argument in kwargs:
        if argument not in known:
            raise TypeError(f"{name} has no argument {argument!r}; it has {', '.join(known)}")
    smaller = entry.mini if scale == "mini" else {}
    return gymnasium.make(entry.gymnasium_id, **{**smaller, **kwargs})


def register() -> None:
    """Tell Gymnasium about all environments."""
    for entry in ENTRIES:
        gymnasium.register(
            entry.gymnasium_id,
            entry_point=entry.entry_point,
            kwargs=dict(entry.kwargs),
            nondeterministic=entry.nondeterministic,
            # Wrappers would hold state of their own, which get_state and set_state do not see.
            order_enforce=False,
            disable_env_checker=True,
        )
