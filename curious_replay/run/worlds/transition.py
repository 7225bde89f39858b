"""What environments show at one moment, and sums over the episodes in progress."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from curious_replay.replay import ReplayBuffer

Array = np.ndarray

WHEN = ("log_frame", "log_phase")
"""Logs that say when a step was seen; their sums say nothing."""
WHEN_BYTES = 8 + 4


@dataclass
class Transition:
    """What N environments show, and what led there; arrays [N, ...]."""

    observation: dict[str, Array]
    reward: Array
    is_first: Array
    is_last: Array
    is_terminal: Array
    logs: dict[str, Array]
    phases: list[str]
    achievements: dict[str, Array]
    restarted: Array
    """Where a worker failed in this step: the observation is the one before once more."""
    frames: Array | None = None
    """Frame of the schedule that each environment has come to; None where they do not count."""


def collect(
    observation: dict[str, Array],
    rewards: Array,
    terminated: Array,
    truncated: Array,
    infos: dict[str, Any],
    logs: dict[str, Array],
) -> Transition:
    """Put together what a vector environment returned, all [num_envs, ...].

    `logs` has a value of everything that is to be stored: of that shape and dtype it will be.
    """
    count = len(rewards)
    return Transition(
        observation={name: np.asarray(value) for name, value in observation.items()},
        reward=rewards.astype(np.float32),
        is_first=infos["is_first"],
        is_last=terminated | truncated,
        is_terminal=terminated.copy(),
        logs={name: _log(infos, name, like, count) for name, like in logs.items()},
        phases=[str(phase) for phase in infos.get("phase", [""] * count)],
        achievements=_counts(infos.get("achievements")),
        restarted=infos["worker_restarted"],
        frames=np.asarray(infos["frame"], np.int64) if "frame" in infos else None,
    )


def stores_when(replay: ReplayBuffer) -> bool:
    """Return whether replay keeps frame and phase; that of runs from earlier versions does not."""
    fields = replay.storage.layout.fields if replay.storage is not None else ()
    return not fields or any(field.name == "log_frame" for field in fields)


class EpisodeStats:
    """Sums over the episodes in progress, one row for each environment."""

    def __init__(self, num_envs: int, logs: dict[str, Array]) -> None:
        counted = {n: v for n, v in logs.items() if v.ndim == 0 and n not in WHEN}
        self.scalars = sorted(counted)
        self.whole = [counted[name].dtype.kind in "biu" for name in self.scalars]
        self.returns = np.zeros(num_envs)
        self.lengths = np.zeros(num_envs, np.int64)
        self.sums = np.zeros((len(self.scalars), num_envs))
        self.interval = self._nothing()

    def add(self, transition: Transition) -> None:
        """Count a step."""
        self.returns += transition.reward
        self.lengths += ~transition.is_first
        self.interval["env/reward"] += float(transition.reward.sum())
        for row, name in enumerate(self.scalars):
            self.sums[row] += transition.logs[name]
            self.interval[_title(name)] += self._number(row, transition.logs[name].sum())

    def take_interval(self) -> dict[str, float]:
        """Return sums over all environments since the last time, and begin anew.

        They tell what happens where episodes never end.
        """
        taken, self.interval = self.interval, self._nothing()
        return taken

    def close(self, env: int, transition: Transition) -> dict[str, Any]:
        """Return what the episode of an environment came to, and begin the next one."""
        values: dict[str, Any] = {
            "env": env,
            "phase": transition.phases[env],
            "return": float(self.returns[env]),
            "length": int(self.lengths[env]),
        }
        for row, name in enumerate(self.scalars):
            values[_title(name)] = self._number(row, self.sums[row, env])
        for name, counts in transition.achievements.items():
            values[f"achievement/{name}"] = int(counts[env])
        if transition.restarted[env]:
            values["worker_restarted"] = 1
        self.returns[env] = self.lengths[env] = 0
        self.sums[:, env] = 0
        return values

    def get_state(self) -> dict[str, Any]:
        """Return all sums."""
        names = ("returns", "lengths", "sums", "interval")
        return {name: getattr(self, name) for name in names}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from `get_state()`."""
        for name, value in state.items():
            setattr(self, name, value)

    def _nothing(self) -> dict[str, float]:
        numbers = {_title(name): self._number(row, 0) for row, name in enumerate(self.scalars)}
        return {"env/reward": 0.0, **numbers}

    def _number(self, row: int, value: float) -> float:
        """Return a sum as the kind of number that the log holds: counts are whole."""
        return int(value) if self.whole[row] else float(value)


def _title(name: str) -> str:
    """Return the name under which the sum of a log is recorded: log_contacts is log/contacts."""
    return "log/" + name.removeprefix("log_")


def _log(infos: dict[str, Any], name: str, like: Array, num_envs: int) -> Array:
    """Return what all environments say under a log's name, [N, ...]; 0 where one says nothing."""
    found = infos.get(name)
    if found is None:
        return np.zeros((num_envs, *like.shape), like.dtype)
    values = np.asarray(found)
    # Nothing is cut: 0.7 where whole numbers are stored would be 0 ever after.
    numbers = values.dtype.kind in "biuf" and np.can_cast(values.dtype, like.dtype, "same_kind")
    if values.shape != (num_envs, *like.shape) or not numbers:
        raise ValueError(
            f"info[{name!r}] is {values.dtype} of shape {values.shape[1:]} in mid-run; "
            f"right would be {like.dtype} of shape {like.shape}, as at its start"
        )
    return values.astype(like.dtype, copy=False)


def _counts(found: Any) -> dict[str, Array]:
    """Return the numbers of a dictionary in the infos, {name: [N]}.

    Gymnasium adds masks named _x, which are left out.
    """
    if not isinstance(found, dict):
        return {}
    return {name: np.asarray(value) for name, value in found.items() if not name.startswith("_")}
