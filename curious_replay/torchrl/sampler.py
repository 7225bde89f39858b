"""CuriousSampler: TorchRL's `ReplayBuffer` draws slices by our rules and our sum tree."""

import math
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.context import get_spawning_popen
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torchrl.data.replay_buffers import PrioritizedSampler, Sampler

from curious_replay.errors import UsageError
from curious_replay.replay.mixture import Mixture
from curious_replay.replay.priority import Curious
from curious_replay.replay.rule import Rule
from curious_replay.replay.sumtree import Ints
from curious_replay.replay.windows import Window
from curious_replay.torchrl import state
from curious_replay.torchrl.marks import marks
from curious_replay.torchrl.steps import FollowedSteps, Shape
from curious_replay.torchrl.trajectories import Key, Trajectories

NOT_TOLD = -math.inf
"""What TorchRL passes on instead of losses that are not in the TensorDict."""


class CuriousSampler(Sampler):  # type: ignore[misc]  # TorchRL has no types
    """A sampler of slices by priority, for TorchRL's `ReplayBuffer` and `TensorDictReplayBuffer`.

    Steps are drawn by the priorities that a rule makes of their visits and of the losses that come
    back by `update_priority` or `update_tensordict_priority`. A step has the rule's `p_max` until
    it was drawn and told of, whatever priority came with its data. Feedback for a step that was
    overwritten since it was drawn is left out, and counted as stale.

    Args:
        rule: turns visits and losses into priorities; a `Rule` or a `Mixture` of two.
        slice_len: steps in a slice; or else
        num_slices: slices in a batch, so that they have batch_size / num_slices steps.
        traj_key: the field with the ids of trajectories.
        end_key: the field with the flag at their ends; or else
        end_keys: several such fields, of which those that are there count.
        truncated_key: where the ends of slices are marked, with "done" and "terminated" beside it;
            None: nowhere.
        init_key: where the first steps of slices are marked, if there is such a field; None:
            nowhere.
        window: "last": the drawn step closes its slice; "first": it is its second step.
        cross_episodes: whether a slice may reach over the end of a trajectory.
        repeats: whether slices of one batch may share steps.
        weight_exponent: of the importance weights in "priority_weight", 0: all of them are 1.

    Draws come from the buffer's generator, or without one from torch's.
    """

    reduction = "max"  # of losses with more than one number for a step

    def __init__(
        self,
        rule: Rule | Mixture | None = None,
        *,
        slice_len: int | None = None,
        num_slices: int | None = None,
        traj_key: Key | None = None,
        end_key: Key | None = None,
        end_keys: Sequence[Key] | None = None,
        truncated_key: Key | None = ("next", "truncated"),
        init_key: Key | None = "is_init",
        window: Window = "last",
        cross_episodes: bool = False,
        repeats: bool = True,
        weight_exponent: float = 0.0,
    ) -> None:
        self.rule = Curious() if rule is None else rule
        if not isinstance(self.rule, Rule | Mixture):
            raise UsageError(f"rule must be a Rule or a Mixture, for instance Curious(): {rule!r}")
        if (slice_len is None) == (num_slices is None):
            raise UsageError("give slice_len or num_slices, one of them")
        if window not in ("last", "first"):
            raise UsageError(f'window must be "last" or "first", got {window!r}')
        for name, number in (("slice_len", slice_len), ("num_slices", num_slices)):
            if number is not None and number < 1:
                raise UsageError(f"{name} must be at least 1, got {number}")
        self.slice_len, self.num_slices = slice_len, num_slices
        self.trajectories = Trajectories(traj_key, end_key, end_keys)
        self.truncated_key, self.init_key = truncated_key, init_key
        self.window, self.cross_episodes = window, bool(cross_episodes)
        self.repeats = bool(repeats)
        self.weight_exponent = weight_exponent
        self._steps: FollowedSteps | None = (
            None  # made at the first draw, when the storage is known
        )
        self._last: int | None = None  # the row that was written last
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        size = (
            f"num_slices={self.num_slices}"
            if self.slice_len is None
            else f"slice_len={self.slice_len}"
        )
        return f"{type(self).__name__}({self.rule!r}, {size}, window={self.window!r})"

    def __getstate__(self) -> dict[str, Any]:
        if get_spawning_popen() is not None:
            raise RuntimeError(
                "a CuriousSampler cannot be shared between processes: keep the buffer in the one "
                "that learns, and let collectors send what they collect"
            )
        values: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in values.items() if name != "_lock"}

    def __setstate__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)
        self._lock = threading.RLock()

    @property
    def default_priority(self) -> float:
        """What TorchRL takes where no loss is told, which is told apart from any loss here."""
        return NOT_TOLD

    def mark_update(self, index: Any, *, storage: Any = None) -> None:
        """Note that steps were written; TorchRL's writers call it."""
        with self._lock:
            written = torch.as_tensor(index).reshape(-1, storage.ndim)[:, 0].cpu().numpy()
            rows = written[:: math.prod(storage.shape[1:])]  # in each row all environments
            self._last = int(rows[-1])
            if self._steps is not None and not self._steps.write(rows):
                raise UsageError(
                    f"CuriousSampler needs a writer that goes round the storage, such as "
                    f"RoundRobinWriter: row {self._steps.written % self._steps.shape.rows} was "
                    f"next, rows {rows[:5].tolist()} ... were written"
                )

    def can_sample(self, storage: Any, batch_size: int) -> bool:
        """Return whether there is a whole slice to draw."""
        with self._lock:
            return len(storage) > 0 and self._follow(storage, self._split(batch_size)[1]).ready

    def sample(
        self, storage: Any, batch_size: int
    ) -> tuple[tuple[torch.Tensor, ...], dict[Key, Any]]:
        """Draw slices; returns the index of their steps, and what TorchRL puts beside the batch.

        The index is a tensor [batch_size] for each dimension of the storage, slice by slice.
        """
        count, length = self._split(batch_size)
        with self._lock:
            steps = self._follow(storage, length) if len(storage) else None
            if steps is None or not steps.ready:
                inside = "" if self.cross_episodes else " of one trajectory"
                raise UsageError(
                    f"nothing to sample yet: there are no {length} successive steps{inside}; "
                    f"{len(storage)} steps are stored in all. See ReplayBuffer.can_sample."
                )
            drawn = steps.draw(count, length, self._random(), repeats=self.repeats)
        index = tuple(torch.from_numpy(each) for each in drawn.places)
        info = marks(storage, index, length, self.truncated_key, self.init_key)
        weights = (drawn.probabilities / drawn.probabilities.min()) ** -self.weight_exponent
        info["priority_weight"] = torch.from_numpy(weights).float().repeat_interleave(length)
        return index, info

    def update_priority(self, index: Any, priority: Any, *, storage: Any = None) -> None:
        """Tell the losses of steps that were trained on: each counts as one visit.

        Args:
            index: of the steps, [N] or [N, dimensions of the storage].
            priority: their losses [N], the one signal that the rule reads.
            storage: is not needed.
        """
        names = self.rule.signals
        if len(names) > 1:
            raise UsageError(
                f"{self.rule} reads the signals {list(names)}: tell them all, by "
                "buffer.sampler.update(index, {name: values})"
            )
        values = _numbers(priority)
        if np.all(values == NOT_TOLD):
            self.update(index, {})
        else:
            self.update(index, {names[0] if names else "model": values})

    def update(self, index: Any, signals: Mapping[str, Any]) -> None:
        """Tell several signals {name: [N]} of steps that were trained on, as `update_priority`."""
        with self._lock:
            steps = self._steps
            if steps is None:
                return  # nothing was drawn yet
            slots = steps.slots(_index(index))
            told = {name: _as_many(_numbers(each), slots, name) for name, each in signals.items()}
            missing = [name for name in self.rule.signals if name not in told]
            if missing and steps.drawn[slots].any():
                raise UsageError(
                    f"{self.rule} reads the signal {missing[0]!r}, of which nothing was told: "
                    "TensorDictReplayBuffer(priority_key=...) names the field that has it"
                )
            if not missing:
                steps.update(slots, told)

    def visits(self, index: Any) -> Ints:
        """Return how often steps [N] were trained on, [N]."""
        with self._lock:
            steps = self._known()
            visits: Ints = steps.sampler.history.visits[steps.slots(_index(index))].astype(np.int64)
            return visits

    def priorities(self, index: Any, part: int = 0) -> npt.NDArray[np.float64]:
        """Return the priorities of steps [N], [N]: 0 of those that cannot be drawn.

        Under a `Mixture` these are the priorities of its first rule, or of its second (`part=1`).
        """
        with self._lock:
            steps = self._known()
            return steps.sampler.parts[part].tree.leaves[steps.slots(_index(index))]

    def stats(self) -> dict[str, float]:
        """Return numbers for a log, as `curious_replay.ReplayBuffer.stats` does."""
        with self._lock:
            steps = self._known()
            slots = steps.slots_of_all()
            counts = vars(steps.counts)
            distinct = 1 - steps.counts.copies / max(steps.counts.drawn, 1)
            return {
                "steps": len(slots), **counts, "distinct": distinct, **steps.sampler.stats(slots)
            }  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Return all that is known of the steps, as tensors and JSON values."""
        content, arrays = self._describe()
        return {"content": content, "arrays": {k: torch.from_numpy(v) for k, v in arrays.items()}}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned, of a sampler of the same slices.

        With another rule, steps have the priorities that it makes of their visits and losses.
        """
        arrays = {name: tensor.cpu().numpy() for name, tensor in state_dict["arrays"].items()}
        self._restore(state_dict["content"], arrays, "the state of the sampler")

    def dumps(self, path: str | Path) -> None:
        """Save to a folder."""
        state.write(Path(path), *self._describe())

    def loads(self, path: str | Path) -> None:
        """Go on from what `dumps` saved, as `load_state_dict` does."""
        self._restore(*state.read(Path(path)), str(path))

    def _empty(self) -> None:
        with self._lock:
            self._steps, self._last = None, None

    def _describe(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        with self._lock:
            content, arrays = (None, {}) if self._steps is None else state.describe(self._steps)
            return {"last": self._last, "steps": content}, arrays

    def _restore(self, content: Mapping[str, Any], arrays: state.Arrays, where: str) -> None:
        with self._lock:
            saved = content.get("steps")
            steps = None if saved is None else state.restore(self.rule, saved, arrays, where)
            if steps is not None:
                wanted = steps.shape._replace(
                    length=self.slice_len or steps.shape.length,
                    window=self.window,
                    cross_episodes=self.cross_episodes,
                )
                if steps.shape != wanted:
                    raise UsageError(f"{where} is of {steps.shape}, this sampler is of {wanted}")
            self._steps, self._last = steps, content.get("last")

    def _split(self, batch_size: int) -> tuple[int, int]:
        """Return how many slices of how many steps a batch has."""
        given = self.slice_len or self.num_slices or 1
        other, rest = divmod(batch_size, given)
        if rest or not other:
            name = "slice_len" if self.slice_len else "num_slices"
            raise UsageError(f"batch_size must be a multiple of {name}={given}, got {batch_size}")
        return (other, given) if self.slice_len else (given, other)

    def _follow(self, storage: Any, length: int) -> FollowedSteps:
        """Take account of all that was written to a storage that is not empty."""
        if self._steps is None:
            self._steps = self._begin(storage, length)
        steps = self._steps
        stored = len(storage) // steps.shape.envs
        if length > steps.shape.length or stored != steps.stored:
            raise UsageError(
                f"this sampler is of slices of at most {steps.shape.length} steps and of a storage "
                f"with {steps.stored} rows, got slices of {length} and {stored} rows: make one "
                "sampler for each buffer, and save and load buffers as a whole"
            )
        while steps.behind:
            rows, envs = steps.next_written()
            flags = self.trajectories.flags(storage, rows, envs, steps.shape.envs)
            steps.advance(envs, *flags)
        return steps

    def _begin(self, storage: Any, length: int) -> FollowedSteps:
        """Begin with the steps that are in a storage, in the order in which they were written."""
        beside = tuple(storage.shape[1:])
        envs = math.prod(beside)
        rows, stored = storage.max_size // envs, len(storage) // envs
        shortest = 2 if self.window == "first" else 1
        if not shortest <= length <= rows:
            raise UsageError(
                f"slices must have {shortest} to {rows} steps with this storage of {rows} rows and "
                f'window="{self.window}", got {length}'
            )
        last = self._last
        if last is None:  # written before this sampler was there
            last = getattr(storage, "_last_cursor_index", None)
        first = 0 if stored < rows or last is None else (last + 1) % rows
        shape = Shape(rows, beside, length, self.window, self.cross_episodes)
        steps = FollowedSteps(self.rule, shape, first)
        steps.written += stored
        return steps

    def _known(self) -> FollowedSteps:
        if self._steps is None:
            raise UsageError("nothing is known of any step yet: sample first")
        return self._steps

    def _random(self) -> np.random.Generator:
        """Return a generator for one batch, seeded by that of the buffer."""
        device = "cpu" if self._rng is None else self._rng.device
        seed = torch.randint(2**63 - 1, (), generator=self._rng, device=device)
        return np.random.default_rng(int(seed))


def _index(index: Any) -> Ints:
    """Return indices as an array, of a tensor or of what can become one."""
    return torch.as_tensor(index).detach().cpu().numpy().astype(np.int64, copy=False)


def _numbers(values: Any) -> npt.NDArray[np.float64]:
    """Return losses as an array, of a tensor on any device, of any kind of number."""
    return torch.as_tensor(values).detach().to("cpu", torch.float64).numpy()


def _as_many(values: npt.NDArray[np.float64], slots: Ints, name: str) -> npt.NDArray[np.float64]:
    """Return one value for each of the slots [N]; a single one is that of all."""
    if values.size not in (1, len(slots)):
        raise UsageError(
            f"signal {name!r}: expected one number for each of {len(slots)} steps, "
            f"got shape {list(values.shape)}"
        )
    return np.broadcast_to(values.reshape(-1), len(slots))


# TorchRL passes losses on to samplers of this kind only. Nothing else of it is of use here.
PrioritizedSampler.register(CuriousSampler)
