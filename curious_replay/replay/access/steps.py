"""Single steps of a buffer, by their ids: what is known of each, and reading and writing it."""

import threading
from collections.abc import Mapping
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from curious_replay.replay.batch import Counts
from curious_replay.replay.fields import FLAGS, Array, Field, Layout, as_array, flatten
from curious_replay.replay.rule import Floats
from curious_replay.replay.sampler import Sampler
from curious_replay.replay.scratch import Scratch
from curious_replay.replay.storage import Storage
from curious_replay.replay.sumtree import Ints
from curious_replay.replay.windows import STALE, Windows

_INT64 = np.dtype(np.int64)


class StoredSteps:
    """What a buffer has, and how a step in it is found; `ReplayBuffer` draws from it."""

    num_envs: int
    windows: Windows
    sampler: Sampler
    storage: Storage | None  # made when the first step tells its layout
    counts: Counts
    lock: threading.RLock
    _scratch: Scratch | None
    _torn: bool  # in the middle of a change

    def priorities(self, ids: npt.ArrayLike, part: int = 0) -> Floats:
        """Return what the tree holds for `ids`, in their shape: 0 for steps that cannot be drawn.

        Under a `Mixture` these are the priorities of its first rule, or of its second (`part=1`).
        """
        with self.lock:
            slots, _, _ = self._find(ids)
            values = self.sampler.parts[part].tree.leaves[slots]
            return np.where(slots != STALE, values, 0.0).reshape(np.shape(ids))

    def visits(self, ids: npt.ArrayLike) -> Ints:
        """Return how often the steps `ids` were trained on, in their shape: 0 if they are gone."""
        with self.lock:
            _, visits, _ = self._find(ids)
            return visits.reshape(np.shape(ids))

    def signals(self, ids: npt.ArrayLike, name: str) -> npt.NDArray[np.float32]:
        """Return the last finite value that was told of a signal, in the shape of `ids`.

        NaN for steps that are gone, or of which it was never told.
        """
        with self.lock:
            slots, _, _ = self._find(ids)
            history = self.sampler.history
            if name not in history.names:
                raise KeyError(
                    f"no signal {name!r} was told to this buffer, only {sorted(history.names)}"
                )
            told = history.told[history.names.index(name), slots]
            return np.where(slots != STALE, told, np.float32(np.nan)).reshape(np.shape(ids))

    def terms(self, ids: npt.ArrayLike, part: int = 0) -> dict[str, Floats] | None:
        """Take the priorities of `ids` apart into what the rule names, such as count and surprise.

        Each in the shape of `ids`, and 0 for steps that are gone. All of a step that was never
        trained on is the first term, the count where there is one. None for a rule of your own
        that is no sum of terms. `part` is as in `priorities`.
        """
        with self.lock:
            slots, _, _ = self._find(ids)
            terms = self.sampler.parts[part].terms(slots, self.sampler.history)
            if terms is None:
                return None
            there = slots != STALE
            return {
                name: np.where(there, term, 0.0).reshape(np.shape(ids))
                for name, term in terms.items()
            }

    def stored(self, ids: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return whether the steps `ids` are still in the buffer, in their shape."""
        with self.lock:
            slots, _, _ = self._find(ids)
            return np.not_equal(slots, STALE).reshape(np.shape(ids))

    def ids(self) -> Ints:
        """Return the ids [N] of all stored steps, environment by environment, oldest first."""
        with self.lock:
            self._settle()
            return self.windows.ids_of_all()

    def read(self, ids: npt.ArrayLike, field: str) -> Array:
        """Return one field of stored steps, [*ids.shape, ...]; nested fields as "outer/inner"."""
        ids = as_array(ids)
        with self.lock:
            slots, _, stale = self._find(ids)
            if self.storage is None or stale:
                missing = ids.reshape(-1)[slots == STALE][:5].tolist()
                raise KeyError(f"steps that are no longer stored cannot be read: ids {missing} ...")
            position = self.storage.layout.find(field)
            times, envs = self._places(ids)
            (rows,) = self.storage.gather([position], envs, times, 1)
            return rows.reshape(*ids.shape, *rows.shape[2:])

    def write(self, ids: npt.ArrayLike, fields: Mapping[str, Any]) -> None:
        """Put values into fields of stored steps, such as the states of a model trained on them.

        Steps that are gone are left out and counted, `stats()["unwritten"]`. Batches from now on
        have the new values. A save writes all steps near those that changed since the last one.

        Args:
            ids: of the steps, in any shape. If a step occurs more than once, its last value stays.
            fields: arrays or tensors [*ids.shape, ...], nested as in a step, of fields that steps
                have; `is_first`, `is_last` and `is_terminal` stay what they are.
        """
        ids = as_array(ids)
        with self.lock:
            slots, _, stale = self._find(ids)
            if self.storage is None:
                raise ValueError("nothing can be written: no step was added yet")
            layout, there = self.storage.layout, slots != STALE
            values = {}
            for name, value in flatten(fields).items():
                position = layout.find(name)
                values[position] = _fitting(layout.fields[position], value, ids.shape)[there]
            times, envs = (part[there] for part in self._places(ids))
            self.storage.own(envs, times)
            self._torn = True
            for position, value in values.items():
                self.storage.rewrite(position, envs, times, value)
            self.counts.unwritten += stale
            self.counts.written += len(times)
            self._torn = False

    def _settle(self) -> None:
        """Take account of the steps added so far; done before anything is said about steps."""
        if self._torn:
            raise RuntimeError(
                "this buffer was interrupted (by a signal or an error) while it changed, and may "
                "be inconsistent: load the last save"
            )
        if not self.windows.waiting or self.storage is None:
            return
        self._torn = True
        storage = self.storage
        envs, times = self.windows.new_steps()
        change = self.windows.advance(envs, *storage.flags(envs, times))
        self.counts.added += len(change.slots)
        self.sampler.add(change)
        for time, env in map(divmod, change.unmarked.tolist(), repeat(self.num_envs)):
            if time >= self.windows.oldest[env]:
                storage.mark(storage.layout.flags[0], env, time)
        self._torn = False

    def _places(self, ids: Array) -> tuple[Ints, Ints]:
        """Return times [N] and environments [N] of ids of any shape."""
        times, envs = np.divmod(ids.astype(np.int64).reshape(-1), self.num_envs)
        return times, envs

    def make_storage(self, layout: Layout, rows: int | None = None) -> Storage:
        """Make room for steps of the given layout."""
        place = None if self._scratch is None else self._scratch.path
        self.storage = Storage(layout, self.num_envs, self.windows.stripe, place, rows)
        return self.storage

    def _find(self, ids: npt.ArrayLike) -> tuple[Ints, Ints, int]:
        """Return slots [N] and visits [N] of ids of any shape, and how many of them are stale."""
        self._settle()
        wanted = as_array(ids).reshape(-1)
        if wanted.dtype != _INT64:
            if wanted.size and wanted.dtype.kind not in "iu":
                raise TypeError(f"ids are integers, got {wanted.dtype}")
            wanted = wanted.astype(_INT64)
        slots, visits, stale, wrong = self.windows.find(wanted, self.sampler.history.visits)
        if wrong >= 0:
            raise ValueError(f"id {wanted[wrong]} was never given out by this buffer")
        return slots, visits, stale


def _fitting(field: Field, values: Array, shape: tuple[int, ...]) -> Array:
    """Return values for steps of a given shape as what a field holds, [N, ...]."""
    if field.name in FLAGS:
        raise ValueError(f"field {field.name!r} says what a window is and cannot be written")
    if values.shape != (*shape, *field.shape):
        raise ValueError(
            f"field {field.name!r}: expected the shape {[*shape, *field.shape]} "
            f"(that of the ids, then of the field), got {list(values.shape)}"
        )
    if not np.can_cast(values.dtype, field.dtype, "same_kind"):
        raise ValueError(f"field {field.name!r}: expected {field.dtype}, got {values.dtype}")
    return np.ascontiguousarray(values, field.dtype).reshape(-1, *field.shape)
