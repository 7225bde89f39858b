"""The steps that a run's last checkpoint holds: what environments logged, step by step.

Positions, contacts, inventories and the like are stored with each step under `log_*`. They are
read from the checkpoint without its pictures. Steps that the buffer has dropped are not there.
Checkpoints from before steps were stored with their frame can be read if a step is a frame; other
runs of that time are reported on by their intervals and snapshots.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from curious_replay.analysis.lines import Array
from curious_replay.analysis.load import MOST, Run
from curious_replay.analysis.replay_probe import relative
from curious_replay.replay import SavedBuffer
from curious_replay.run_folder import REPLAY, STATE
from curious_replay.untrusted import UnreadableError, check, folder_itself, read_object


@dataclass(frozen=True)
class Stored:
    """Stored steps, environment by environment, oldest first.

    frame    int64 [N]   frame of the schedule at which the step was seen, over all environments
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
        fraction = self.buffer.fraction
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
        """Return whether a field was stored."""
        return name in self.buffer.fields

    def field(self, name: str) -> Array:
        """Return one field of all steps, [N, ...]."""
        return self.buffer.field(name)


def newest(run: Run) -> Stored | None:
    """Return the newest checkpoint of a run whose replay can be read; None if there is none."""
    for path in run.checkpoints:
        try:
            return read(path, step_is_frame=int(run.setting("env.action_repeat") or 1) == 1)
        except UnreadableError:
            continue
    return None


def read(checkpoint: Path, *, step_is_frame: bool = False) -> Stored:
    """Read the bookkeeping of a checkpoint's replay.

    Where a step is a frame, frames that were not stored can be counted.
    """
    buffer = SavedBuffer(folder_itself(checkpoint / REPLAY))
    path = checkpoint / STATE
    counters: Any = read_object(path).get("counters")
    check(counters, dict, f"{path}, counters")
    check(counters.get("step"), int, f"{path}, counters, step")
    if not 0 <= counters["step"] < MOST:
        raise UnreadableError(f"{path}: step cannot be {counters['step']}")
    heads = np.zeros(int(buffer.settings["num_envs"]), np.int64)
    np.maximum.at(heads, buffer.env, buffer.time)
    age = heads[buffer.env] - buffer.time
    return Stored(
        checkpoint, buffer, _frames(buffer, checkpoint, step_is_frame), age, int(counters["step"])
    )


def _frames(buffer: SavedBuffer, checkpoint: Path, step_is_frame: bool) -> Array:
    """Return the frame that was stored with each step, int64 [N]."""
    if not len(buffer):
        return np.zeros(0, np.int64)
    if "log_frame" not in buffer.fields:
        num_envs, begun = int(buffer.settings["num_envs"]), np.flatnonzero(buffer.time == 0)
        if step_is_frame and len(begun) == num_envs:  # all steps are there
            moved = np.cumsum(~buffer.field("is_first").astype(bool))
            return np.asarray((moved - moved[begun][buffer.env]) * num_envs)
        raise UnreadableError(f"{checkpoint} is of an earlier version: its steps have no log_frame")
    frame = buffer.field("log_frame")
    if frame.dtype.kind not in "iu" or frame.ndim != 1 or frame.min() < 0 or frame.max() >= MOST:
        raise UnreadableError(f"{checkpoint}: log_frame must be a whole number of each step")
    return frame.astype(np.int64)
