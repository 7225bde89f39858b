"""The environments by name: one table, from which all else follows.

Each entry has a short name for the command line and configurations, and a Gymnasium id
(`gymnasium_id`). Nothing is imported before it is made. Beside those of the table there is
`minigrid/ID` for every task that MiniGrid registers.
"""

import difflib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from curious_replay.envs.tasks import BACKGROUND_SWAP, CONSTRAINED, CONTROL
from curious_replay.errors import UsageError
from curious_replay.extras import is_installed, require

SCALES = ("paper", "mini")
MINIGRID = "minigrid/"
DM_CONTROL = ("mujoco", "dm_control")


@dataclass(frozen=True)
class RegisteredEnv:
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
    needs: tuple[str, ...] = ()
    """Modules beyond Gymnasium that it needs; extras of ours bring them."""

    @property
    def gymnasium_id(self) -> str:
        """Name under which Gymnasium knows it (it allows one slash only)."""
        return f"CuriousReplay/{self.name.replace('/', '-')}-v0"

    @property
    def module(self) -> str:
        """Module that its class is in."""
        return self.entry_point.partition(":")[0]

    @property
    def spec(self) -> EnvSpec:
        """What Gymnasium makes it of."""
        return EnvSpec(
            self.gymnasium_id,
            entry_point=self.entry_point,
            kwargs=dict(self.kwargs),
            nondeterministic=self.nondeterministic,
            # Wrappers would hold state of their own, which get_state and set_state do not see.
            order_enforce=False,
            disable_env_checker=True,
        )


def _object_interaction() -> list[RegisteredEnv]:
    descriptions = {
        "changing": "a magenta ball appears at 500K frames",
        "unchanging": "the ball is there from the start",
        "removal": "the ball is there from 500K to 1.5M",
        "two-balls": "a yellow ball, a magenta one at 500K",
        "two-balls-reversed": "a magenta ball, a yellow one at 500K",
    }
    return [
        RegisteredEnv(
            name="object-interaction" if variant == "changing" else f"object-interaction-{variant}",
            entry_point="curious_replay.envs.object_interaction:ObjectInteraction",
            description=description,
            tags=("mujoco", "assay", *(() if variant == "unchanging" else ("changes",))),
            kwargs={"variant": variant},
            mini={"scale": "mini"},
            needs=("mujoco",),
        )
        for variant, description in descriptions.items()
    ]


def _control_suite() -> list[RegisteredEnv]:
    return [
        RegisteredEnv(
            name=f"control/{task}",
            entry_point="curious_replay.envs.control:ControlSuite",
            description=description,
            tags=("mujoco", "control"),
            kwargs={"task": task},
            needs=DM_CONTROL,
        )
        for task, description in CONTROL.items()
    ]


def _constrained() -> list[RegisteredEnv]:
    return [
        RegisteredEnv(
            name=f"constrained/{task}",
            entry_point="curious_replay.envs.constrained:ConstrainedControl",
            description=f"{description} until 500K frames",
            tags=("mujoco", "constrained", "changes"),
            kwargs={"task": task},
            mini={"schedule": ((0, "constrained"), (20_000, "free"))},
            needs=DM_CONTROL,
        )
        for task, description in CONSTRAINED.items()
    ]


def _backgrounds() -> list[RegisteredEnv]:
    swapped = [
        RegisteredEnv(
            name=f"background-swap/{task}",
            entry_point="curious_replay.envs.background:BackgroundSwap",
            description="another background from 1M to 2M",
            tags=("mujoco", "background", "changes"),
            kwargs={"task": task},
            mini={"schedule": ((0, "A"), (40_000, "B"), (80_000, "A"))},
            needs=DM_CONTROL,
        )
        for task in BACKGROUND_SWAP
    ]
    random = RegisteredEnv(
        name="random-background/walker_walk",
        entry_point="curious_replay.envs.background:RandomBackground",
        description="another background at every frame",
        tags=("mujoco", "background"),
        kwargs={"task": "walker_walk"},
        needs=DM_CONTROL,
    )
    return [*swapped, random]


def _task(name: str) -> RegisteredEnv:
    """Return a task that MiniGrid registers.

    Whether there is one of this name, only MiniGrid knows.
    """
    return RegisteredEnv(
        name=f"{MINIGRID}{name}",
        entry_point="curious_replay.envs.minigrids.world:MiniGridTask",
        description="a task of MiniGrid",
        tags=("minigrid",),
        kwargs={"task": name},
        needs=("minigrid",),
    )


def _minigrid() -> list[RegisteredEnv]:
    changing = [
        ("key-swap", "KeySwap", "another key opens from 100K", ("matching", "swapped")),
        ("lava", "Lava", "walls are lava from 100K to 200K", ("walls", "lava", "walls")),
        ("new-object", "NewObject", "a ball appears at 100K, no reward", ("empty", "object")),
    ]
    return [
        replace(_task("DoorKey-5x5"), description="a key, a door, a goal"),
        *(
            RegisteredEnv(
                name=f"{MINIGRID}{name}",
                entry_point=f"curious_replay.envs.minigrids.{name.replace('-', '_')}:{kind}",
                description=description,
                tags=("minigrid", "changes"),
                mini={"schedule": tuple((20_000 * i, p) for i, p in enumerate(phases))},
                needs=("minigrid",),
            )
            for name, kind, description, phases in changing
        ),
    ]


ENTRIES: tuple[RegisteredEnv, ...] = (
    *_object_interaction(),
    *_constrained(),
    *_backgrounds(),
    *_control_suite(),
    RegisteredEnv(
        "crafter",
        "curious_replay.envs.crafter:CrafterEnv",
        "survival game with 22 achievements",
        ("crafter",),
        nondeterministic=True,
        needs=("crafter",),
    ),
    RegisteredEnv(
        "crafter-noreward",
        "curious_replay.envs.crafter:CrafterEnv",
        "the same game without reward",
        ("crafter",),
        {"reward": False},
        nondeterministic=True,
        needs=("crafter",),
    ),
    RegisteredEnv(
        "toy/count",
        "curious_replay.envs.toys.toy:CountingWorld",
        "shows its step number, for tests",
        ("toy",),
    ),
    RegisteredEnv(
        "toy/two-rooms",
        "curious_replay.envs.toys.two_rooms:TwoRooms",
        "a grid; an object appears at 5,000",
        ("toy", "changes"),
        mini={"schedule": ((0, "empty"), (1_000, "object"))},
    ),
    RegisteredEnv(
        "toy/mirror",
        "curious_replay.envs.toys.mirror:Mirror",
        "reach a goal; mirrored from 10,000",
        ("toy", "changes"),
        mini={"schedule": ((0, "straight"), (2_000, "mirrored"))},
    ),
    *_minigrid(),
)


ALIASES: dict[str, str] = {}
"""Environments of others that have a name here: "module:Class" by name."""


def register_env(name: str, kind: str | type[gymnasium.Env]) -> None:
    """Make an environment known as `make(name)` and `--env name`.

    `kind` is its class, or "module:Class". Processes of environments import it by that, so it must
    not be defined in the program that is run itself.
    """
    where = kind if isinstance(kind, str) else f"{kind.__module__}:{kind.__qualname__}"
    if name in names() or ALIASES.get(name, where) != where:
        raise UsageError(f"there is an environment {name!r} already: choose another name")
    ALIASES[name] = where


def names() -> tuple[str, ...]:
    """Return all short names, in the order of the table."""
    return tuple(entry.name for entry in ENTRIES)


def minigrid_tasks() -> list[RegisteredEnv]:
    """Return all tasks of MiniGrid that are not in the table; none where it is not installed."""
    if not is_installed("minigrid"):
        return []
    from curious_replay.envs.minigrids.world import tasks  # noqa: PLC0415

    entries = [_task(name) for name in tasks()]
    return [entry for entry in entries if entry.name not in names()]


def find(name: str) -> RegisteredEnv:
    """Return the entry of a short name; an unknown name is answered with the nearest ones."""
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    if name.startswith(MINIGRID):
        return _task(name.removeprefix(MINIGRID))
    near = difflib.get_close_matches(name, names(), n=3, cutoff=0.4)
    # Part of a name is a good guess too: "walker" is not close to "control/walker_walk".
    near += [known for known in names() if name and name in known and known not in near]
    advice = f"did you mean {', '.join(near[:5])}?" if near else "`curious envs` lists all"
    raise UsageError(f"unknown environment {name!r}; {advice}")


def arguments(name: str) -> tuple[str, ...]:
    """Return the names of the arguments that the environment can be made with."""
    entry = find(name)
    require(name, *entry.needs)
    creator = load_env_creator(entry.entry_point)
    return tuple(dict.fromkeys(_keywords(creator)))


def _keywords(world: Any) -> Iterator[str]:
    """Yield the arguments of a class, and of those above that it passes further ones on to."""
    for kind in world.__mro__:
        if "__init__" in vars(kind):
            given = inspect.signature(kind.__init__).parameters.values()
            # What a class asks of those that derive from it, it does not ask of their users.
            asked = [p for p in given if kind is world or p.default is not p.empty]
            yield from (p.name for p in asked if p.kind is p.KEYWORD_ONLY)
            if not any(p.kind is p.VAR_KEYWORD for p in given):
                return


def make(name: str, *, scale: str = "paper", **kwargs: Any) -> gymnasium.Env:
    """Make an environment by short name; `kwargs` go before the settings of the table.

    `scale="mini"` gives a smaller world with an earlier change, where there is one. An environment
    of `register_env` is made as it is.
    """
    if name in ALIASES:
        made = load_env_creator(ALIASES[name])(**kwargs)
        assert isinstance(made, gymnasium.Env)
        return made
    entry = find(name)
    if scale not in SCALES:
        raise UsageError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}")
    known = arguments(name)
    for argument in kwargs:
        if argument not in known:
            raise TypeError(f"{name} has no argument {argument!r}; it has {', '.join(known)}")
    smaller = entry.mini if scale == "mini" else {}
    return gymnasium.make(entry.spec, **{**smaller, **kwargs})


def register() -> None:
    """Tell Gymnasium about all environments."""
    for entry in ENTRIES:
        gymnasium.registry[entry.gymnasium_id] = entry.spec
