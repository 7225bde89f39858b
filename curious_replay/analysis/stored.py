"""The steps that a run's last checkpoint holds: what environments logged, step by step.

Positions, contacts, inventories and the like are stored with each step under `log_*`. They are
read from the checkpoint without its pictures. Steps that the buffer has dropped are not there.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from curious_replay.analysis.lines import Array
from curious_replay.analysis.load import MOST, Run
from curious_replay.analysis.replay_probe import relative
from curious_replay.replay import SavedBuffer
from curious_replay.untrusted import UnreadableError, check, folder_itself, read_object


@dataclass(frozen=True)
class Stored:
    """Stored steps, environment by environment, oldest first.

    frame    int64 [N]   total number of frames when the step was seen
    age      int64 [N]   steps of the same environment that were stored after it
    """

    path: Path
    buffer: SavedBuffer
    frame: Array
    age: Array
    step: int
    """Steps of the run at the checkpoint."""

    def __len__(self) -> int:
        return len(self.buffer)

    @property
    def priorities(self) -> Array:
        """What a draw goes by, float64 [N]: 0 for steps whose window is not whole."""
        return np.where(self.buffer.drawable, self.buffer.priorities, 0.0)

    @property
    def chance(self) -> Array:
        """How likely each step is drawn, relative to uniform, by all rules of a mixture, [N]."""
        fraction = float(self.buffer.rule.get("fraction", 0.0))
        first = (1 - fraction) * relative(self.priorities)
        if self.buffer.second_priorities is None:
            return first
        second = np.where(self.buffer.drawable, self.buffer.second_priorities, 0.0)
        return first + fraction * relative(second)

    @property
    def visits(self) -> Array:
        """How often each step was trained on, int64 [N]."""
        return self.buffer.visits

    def has(self, name: str) -> bool:
        """Whether a field was stored."""
        return name in self.buffer.fields

    def field(self, name: str) -> Array:
        """One field of all steps, [N, ...]."""
        return self.buffer.field(name)


def newest(run: Run) -> Stored | None:
    """The newest checkpoint of a run whose replay can be read; None if there is none."""
    for path in run.checkpoints:
        try:
            return read(path, int(run.setting("env.action_repeat") or 1))
        except UnreadableError:
            continue
    return None


def read(checkpoint: Path, frames_per_step: int = 1) -> Stored:
    """Read the bookkeeping of a checkpoint's replay."""
    buffer = SavedBuffer(folder_itself(checkpoint / "replay"))
    path = checkpoint / "state.json"
    counters: Any = read_object(path).get("counters")
    check(counters, dict, f"{path}, counters")
    for name in ("frame", "step"):
        check(counters.get(name), int, f"{path}, counters, {name}")
        if not 0 <= counters[name] < MOST:
            raise UnreadableError(f"{path}: {name} cannot be {counters[name]}")
    first = buffer.field("is_first") if len(buffer) else np.zeros(0, bool)
    frame = frames_of(buffer.env, buffer.time, first, frames_per_step, int(counters["frame"]))
    heads = np.zeros(int(buffer.settings["num_envs"]), np.int64)
    np.maximum.at(heads, buffer.env, buffer.time)
    return Stored(checkpoint, buffer, frame, heads[buffer.env] - buffer.time, int(counters["step"]))


def frames_of(env: Array, time: Array, is_first: Array, frames_per_step: int, now: int) -> Array:
    """The frame at which each stored step was seen, int64 [N].

    Every step but the first of an episode took `frames_per_step` frames, in all environments at
    once. Where an environment's steps are all there they are counted from 0; else backwards from
    `now`, the frame of the checkpoint, at which the step after the last stored one was seen.
    """
    envs = np.unique(env)
    per_step = frames_per_step * max(len(envs), 1)
    frame = np.zeros(len(env), np.int64)
    for each in envs:
        mine = env == each
        count = np.cumsum(~is_first[mine].astype(bool)) * per_step
        complete = time[mine][0] == 0
        frame[mine] = count if complete else count - count[-1] + now - per_step
    return frame
