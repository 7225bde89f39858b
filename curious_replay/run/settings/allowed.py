"""Which settings may change on the way: when a run is resumed, and when it is forked."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from curious_replay.run.settings.config import Config, differences

CHANGEABLE = (
    "--train.steps", "--train.log-every", "--train.save-every", "--train.save-minutes",
    "--train.nonfinite", "--train.nonfinite-limit", "--train.device",
    "--train.precision", "--train.graphs", "--train.threads",
    "--env.processes", "--env.max-restarts", "--env.camera", "--replay.storage", "--eval.*",
    "--record.*",
)  # fmt: skip
"""When a run is resumed: how long it is, what is shown, where it runs."""
FORKABLE = (*CHANGEABLE, "--replay", "--replay.*", "--train.ratio", "--agent.*lr")
"""In a fork: also what is replayed, how often, and how fast is learned from it."""
STORED = ("--replay.capacity", "--replay.window", "--replay.cross-episodes")
"""Of replay, what decides which steps and windows there are: it changes in neither."""


def may_change(name: str, allowed: Iterable[str]) -> bool:
    """Return whether an option may change; `allowed` are patterns of options."""
    return name not in STORED and any(fnmatchcase(name, pattern) for pattern in allowed)


def not_allowed(old: Config, new: Config, allowed: Iterable[str]) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ and may not, by the name of their option: (old, new)."""
    return {
        name: values
        for name, values in differences(old, new).items()
        if not may_change(name, allowed)
    }
