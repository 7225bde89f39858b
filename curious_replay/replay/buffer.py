"""ReplayBuffer: add steps, sample windows of them, tell how the model did on each."""

import operator
import threading
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from curious_replay.replay.access.online import OnlineQueue
from curious_replay.replay.access.prefetch import Prefetch
from curious_replay.replay.access.steps import StoredSteps
from curious_replay.replay.access.tensors import pinned_empty
from curious_replay.replay.batch import Batch, Counts
from curious_replay.replay.fields import Layout, as_array, flatten, nest
from curious_replay.replay.mixture import Mixture
from curious_replay.replay.priority import Curious
from curious_replay.replay.rule import Floats, Rule
from curious_replay.replay.sampler import Sampler
from curious_replay.replay.saves import saving
from curious_replay.replay.scratch import Scratch
from curious_replay.replay.sumtree import Ints
from curious_replay.replay.windows import STALE, Window, Windows, count_copies
from curious_replay.replay.without_repeats import NOTHING


class ReplayBuffer(StoredSteps):
    """Replay of windows of steps, by priority.

    Args:
        capacity: steps, all environments together; each environment has an equal part.
        length: steps in a sampled window.
        num_envs: environments that add steps.
        rule: turns visits and signals into priorities; a `Rule` or a `Mixture` of two.
        window: "last": the drawn step closes its window (DreamerV3); "first": it is the second
            step of its window, which extends forward (DreamerV2).
        cross_episodes: whether a window may reach over the end of an episode.
        seed: of the draws.
        directory: None: steps are kept in memory. A folder: they are kept in memory-mapped files
            below it, and may be larger than memory.
        repeats: whether windows of one batch may share steps. If not, each is drawn from the steps
            whose windows touch none of those before it, for as long as there are any.
        online: whether each new step is first replayed once, soon after it came: batches then begin
            with windows of new steps, one after the other, and the rest of them is drawn.

    All methods may be called from several threads.
    """

    def __init__(
        self,
        capacity: int,
        length: int,
        num_envs: int = 1,
        rule: Rule | Mixture | None = None,
        window: Window = "last",
        cross_episodes: bool = True,
        seed: int = 0,
        directory: str | Path | None = None,
        repeats: bool = True,
        online: bool = False,
    ) -> None:
        capacity, length, num_envs = map(operator.index, (capacity, length, num_envs))
        shortest = 2 if window == "first" else 1
        if window not in ("last", "first"):
            raise ValueError(f'window must be "last" or "first", got {window!r}')
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        if length < shortest:
            raise ValueError(f'length must be at least {shortest} with window="{window}"')
        if capacity // num_envs < length:
            raise ValueError(
                f"capacity {capacity} leaves {capacity // num_envs} steps for each of {num_envs} "
                f"environments; a window of {length} steps needs capacity {length * num_envs}"
            )
        self.capacity = capacity
        self.length = length
        self.num_envs = num_envs
        self.window = window
        self.cross_episodes = bool(cross_episodes)
        self.repeats = bool(repeats)
        self.directory = None if directory is None else Path(directory).absolute()
        slots = capacity // num_envs * num_envs
        self.windows = Windows(capacity // num_envs, length, num_envs, window, cross_episodes)
        self.sampler = Sampler(Curious() if rule is None else rule, slots)
        self.rng = np.random.default_rng(seed)
        self.queue = OnlineQueue(num_envs) if online else None
        self.counts = Counts()
        self.storage = None
        self.lock = threading.RLock()
        self._scratch = None if self.directory is None else Scratch(self.directory)
        self._leading = (num_envs,)
        self._torn = False

    @property
    def rule(self) -> Rule | Mixture:
        """The rule that makes the priorities.

        Another one may be put on at any time. Steps that were trained on then have the priorities
        that it makes of their visits and last signals, the others its `p_max`. A signal that it
        reads must have been told.
        """
        return self.sampler.rule

    @rule.setter
    def rule(self, rule: Rule | Mixture) -> None:
        if rule != self.rule:  # what it has judged itself is exact already
            self.put_on(rule)

    def put_on(self, rule: Rule | Mixture, *, cold: bool = False) -> None:
        """Put a rule on as `buffer.rule = rule` does.

        With `cold` signals that it reads need not have been told: steps without them have `p_max`.
        """
        with self.lock:
            slots, _, _ = self._find(self.windows.ids_of_all())
            self.sampler.put_on(rule, slots, cold=cold)

    @property
    def ready(self) -> bool:
        """Whether there is a whole window to sample, by each rule if there are two."""
        with self.lock:
            self._settle()
            return all(part.tree.total > 0 for part in self.sampler.parts)

    def __len__(self) -> int:
        with self.lock:
            self._settle()
            return len(self.windows)

    def __repr__(self) -> str:
        windows, layout = self.windows, self.storage and self.storage.layout
        times = windows.next_ids // self.num_envs  # no lock: whatever goes on, it can be shown
        stored = int(np.minimum(times - windows.oldest, windows.stripe).sum())
        fields = [f"{f.name} {f.dtype} {list(f.shape)}" for f in layout.fields] if layout else ()
        return (
            f"ReplayBuffer({stored} of {self.capacity} steps from {self.num_envs} environments, "
            f"in windows of {self.length}, by {self.rule}: {', '.join(fields) or 'no fields yet'})"
        )

    def add(self, step: Mapping[str, Any], env: int | None = None) -> Ints:
        """Store one step of every environment, or of environment `env` alone.

        Args:
            step: fields, nested as you like, each [num_envs, ...], or [...] with `env`. Needed are
                `is_first`, `is_last` and `is_terminal`. Fields named `log_*` are stored and can be
                read, but are not part of a batch.
            env: the environment that made the step.

        Returns:
            the ids int64 [num_envs] of the new steps, or the one id [] with `env`.
        """
        with self.lock:
            if env is not None and not 0 <= env < self.num_envs:
                raise ValueError(f"env must be from 0 to {self.num_envs - 1}, got {env}")
            leading = self._leading if env is None else ()
            storage = self.storage
            layout = Layout.of(flatten(step), leading) if storage is None else storage.layout
            arrays = layout.take(step, leading)
            if any(arrays[layout.terminal].tobytes()):  # the fastest way to ask
                layout.check_ends(arrays)
            storage = storage or self.make_storage(layout)
            ids = self.windows.next_ids.tolist()
            if env is None:
                for each, step_id in enumerate(ids):
                    storage.write(each, step_id // self.num_envs, arrays, each)
            else:
                storage.write(env, ids[env] // self.num_envs, arrays, None)
            # Until here nothing counts: after an interruption the next step is written over it.
            new = self.windows.push(env)
            if self.windows.full:
                self._settle()
            return new

    def sample(self, batch_size: int, length: int | None = None, *, pin: bool = False) -> Batch:
        """Draw `batch_size` windows, independently and with replacement, or without `repeats`.

        Args:
            batch_size: windows.
            length: asks for shorter ones than those of the buffer, of 1 step or more; the drawn
                step is where it is in all windows: last, or second (first in a window of 1).
            pin: put the fields into page-locked memory, from which `batch.torch("cuda")` copies
                them in the background; needs torch and a graphics card.
        """
        length = self.length if length is None else length
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        if not 1 <= length <= self.length:
            raise ValueError(f"length must be from 1 to {self.length}, got {length}")
        with self.lock:
            if self.storage is None or not self.ready:
                inside = "" if self.cross_episodes else " inside one episode"
                raise ValueError(
                    f"nothing to sample yet: no environment has {self.length} successive "
                    f"steps{inside}, or all priorities are 0; {len(self)} steps are stored in "
                    "all. See `ready`."
                )
            envs, starts, ids, probabilities = self._choose(batch_size, length)
            names, positions = self.storage.layout.in_batches
            empty = pinned_empty if pin else np.empty
            arrays = self.storage.gather(positions, envs, starts, length, empty)
            fields = dict(zip(names, arrays, strict=True))
            fields["is_first"][:, 0] = True  # no state from before the window is known
            copies = count_copies(envs, starts, length)
            self.counts.sampled += batch_size
            self.counts.drawn += ids.size
            self.counts.copies += copies
            return Batch(nest(fields), ids, probabilities, (ids.size - copies) / ids.size)

    def _choose(self, count: int, length: int) -> tuple[Ints, Ints, Ints, Floats]:
        """Return environments [B], first times [B], ids [B, length], probabilities [B] of windows.

        First come those that wait in the online queue, if there is one; the others are drawn.
        """
        if self.queue is None:
            return self._draw(count, length)
        envs, starts = self.queue.take(count, length, self.windows)
        self.counts.online += len(envs)
        ids = (starts[:, None] + np.arange(length)) * self.num_envs + envs[:, None]
        new = envs, starts, ids, np.full(len(envs), np.nan)
        if len(envs) == count:
            return new
        drawn = self._draw(count - len(envs), length, (envs, starts))
        envs, starts, ids, chances = map(np.concatenate, zip(new, drawn, strict=True))
        return envs, starts, ids, chances

    def _draw(
        self, count: int, length: int, taken: tuple[Ints, Ints] = NOTHING
    ) -> tuple[Ints, Ints, Ints, Floats]:
        if self.repeats:
            slots, chances = self.sampler.draw(count, self.rng)
        else:
            slots, chances = self.sampler.draw_apart(count, length, self.windows, self.rng, taken)
        return *self.windows.around(slots, length), chances

    def prefetch(
        self, batch_size: int, length: int | None = None, *, pin: bool = False
    ) -> Prefetch[Batch]:
        """Return batches without end, as `sample` draws them, each drawn ahead in a thread.

        The next batch is drawn while you learn from the present one. Whatever you then do with the
        buffer waits until that draw is complete, so the same seed gives the same batches:

            for batch in buffer.prefetch(16):
                loss = train(batch)
                buffer.update(batch.ids, {"model": loss})  # of no influence on the very next batch
        """
        draw = partial(self.sample, batch_size, length, pin=pin)
        return Prefetch(draw, self.lock, finish=lambda batch: batch)

    def update(self, ids: npt.ArrayLike, signals: Mapping[str, npt.ArrayLike]) -> None:
        """Tell how the agent did on steps it was trained on: each counts as one visit.

        Args:
            ids: of the steps, in any shape; usually `batch.ids` [B, T]. A step that occurs more
                than once counts as one visit, and the last of its signals is taken.
            signals: per step numbers in the shape of `ids`, such as "model" (the world model's
                loss), "likelihood", "kl" or "td"; arrays, or tensors of any float dtype, on any
                device, with or without gradients. The last finite value of each is kept with the
                step, also of those that the rule does not read.
        """
        ids = as_array(ids)
        told = {}
        for name, values in signals.items():
            signal = np.asarray(as_array(values), np.float64)
            if signal.shape != ids.shape:
                raise ValueError(
                    f"signal {name!r}: expected the shape of the ids {list(ids.shape)}, "
                    f"got {list(signal.shape)}"
                )
            told[name] = signal.reshape(-1)
        with self.lock:
            for name in self.sampler.signals:
                if name not in told:
                    raise ValueError(
                        f"{self.rule} reads the signal {name!r}; the signals given are {list(told)}"
                    )
            slots, visits, stale = self._find(ids)
            if stale:
                there = slots != STALE
                slots, visits = slots[there], visits[there]
                told = {name: signal[there] for name, signal in told.items()}
            judgement = self.sampler.judge(slots, visits, told)
            self._torn = True
            self.counts.stale += stale
            self.counts.refused += self.sampler.update(judgement, told)
            self.counts.updated += len(slots)
            self._torn = False

    def clear(self) -> None:
        """Forget all steps. Ids are not used again; counts, random state and rule go on."""
        with self.lock:
            self._settle()
            self.sampler.add(self.windows.clear())
            if self.storage is not None:
                self.storage.clear()

    def stats(self) -> dict[str, float]:
        """Return numbers for a log: sizes, counts so far, spread of visits and priorities.

        `distinct` is the share of distinct steps in a batch, `novelty_share` the count term's share
        of what draws go by.

        Reads the bookkeeping of all steps, which takes some 60 ms for a million.
        """
        with self.lock:
            self._settle()
            slots, _, _ = self._find(self.windows.ids_of_all())
            return {
                "steps": len(slots),
                "capacity": self.capacity,
                "bytes": self.storage.nbytes if self.storage else 0,
                **asdict(self.counts),
                "distinct": 1 - self.counts.copies / max(self.counts.drawn, 1),
                **self.sampler.stats(slots),
            }

    def save(self, folder: str | Path) -> None:
        """Save everything; a kill at any moment leaves the previous save of `folder` loadable.

        Steps that an earlier save to the same folder holds are not written again, and those of a
        mapped buffer are linked, not copied.
        """
        with self.lock:
            self._settle()
            saving.save(self, Path(folder))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        directory: str | Path | Literal["as saved"] | None = "as saved",
        rule: Rule | Mixture | None = None,
    ) -> "ReplayBuffer":
        """Make the buffer that was saved to `folder`; it goes on as if nothing had happened.

        Args:
            folder: what `save` was given. A damaged or foreign folder is refused.
            directory: where the steps are to live from now on, as in `ReplayBuffer(directory=)`.
            rule: needed if the buffer was made with a rule of your own: the same one again.
        """
        return saving.load(cls, Path(folder), directory, rule)
