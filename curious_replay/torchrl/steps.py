"""Which steps of a storage can be drawn, by what priority, and what was told of them.

A storage has rows that are written round and round, and one or more environments side by side in
each row. What our own buffer does for the steps that it holds is done here for those of another.
Time t counts the rows that were written, so that a step is in row t mod rows, and its slot is

    slot = environment · rows + row
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from curious_replay.errors import UsageError
from curious_replay.replay.batch import Counts
from curious_replay.replay.mixture import Mixture
from curious_replay.replay.rule import Floats, Rule, Signals
from curious_replay.replay.sampler import Sampler
from curious_replay.replay.sumtree import Ints
from curious_replay.replay.windows import Flags, Window, Windows, count_copies

_ROOM = 2**20  # changes that one call may note: memory of some megabytes


class Shape(NamedTuple):
    """What decides which steps can be drawn.

    A storage of one dimension has rows of one step; `beside` are the other dimensions.
    """

    rows: int
    beside: tuple[int, ...]
    length: int
    window: Window
    cross_episodes: bool

    @property
    def envs(self) -> int:
        """How many environments are beside each other."""
        return math.prod(self.beside)


class DrawnSlices(NamedTuple):
    """Slices, one after the other: the index of their N steps in the storage, [N] a dimension.

    With the probabilities [B] of their draws.
    """

    places: tuple[Ints, ...]
    probabilities: Floats


class FollowedSteps:
    """The bookkeeping of all steps of one storage, of which row `first` was written first."""

    def __init__(self, rule: Rule | Mixture, shape: Shape, first: int = 0) -> None:
        self.shape = shape
        self.windows = Windows(*_order(shape))
        self.windows.restore(np.full((3, shape.envs), first), self.windows.ends)
        self.sampler = Sampler(rule, shape.rows * shape.envs)
        # Of the steps that are there now: feedback for others is of a step that is gone.
        self.drawn: Flags = np.zeros(shape.rows * shape.envs, np.bool_)
        self.counts = Counts()
        self.written = first  # time of the row that comes next

    @property
    def behind(self) -> int:
        """How many rows were written that are not yet taken account of."""
        return self.written - int(self.windows.head[0])

    @property
    def stored(self) -> int:
        """How many rows hold steps, as far as this was told."""
        return min(self.written - int(self.windows.oldest[0]), self.shape.rows)

    @property
    def ready(self) -> bool:
        """Whether there is a whole slice to draw, by each rule if there are two."""
        return all(part.tree.total > 0 for part in self.sampler.parts)

    def write(self, rows: Ints) -> bool:
        """Note that rows [N] were written; False if these are not the ones that come next."""
        if not np.array_equal(rows, (self.written + np.arange(len(rows))) % self.shape.rows):
            return False
        self.written += len(rows)
        self.drawn.reshape(self.shape.envs, -1)[:, rows] = False
        return True

    def next_written(self) -> tuple[Ints, Ints]:
        """Return rows [N] and environments [N] of steps to take account of, as many as fit."""
        step = 3 * self.shape.length * self.shape.envs
        for _ in range(min(self.behind, max(1, _ROOM // step))):
            self.windows.push(None)
        envs, times = self.windows.new_steps()
        return times % self.shape.rows, envs

    def advance(self, envs: Ints, is_first: Flags, is_last: Flags) -> None:
        """Take account of the steps that `next_written` returned, with their flags [N]."""
        change = self.windows.advance(envs, is_first, is_last)
        self.counts.added += len(change.slots)
        self.sampler.add(change)

    def draw(
        self, count: int, length: int, rng: np.random.Generator, *, repeats: bool
    ) -> DrawnSlices:
        """Draw `count` slices of `length` steps."""
        if repeats:
            slots, probabilities = self.sampler.draw(count, rng)
        else:
            slots, probabilities = self.sampler.draw_apart(count, length, self.windows, rng)
        envs, starts, _ = self.windows.around(slots, length)
        rows = (starts[:, None] + np.arange(length)) % self.shape.rows
        self.drawn[envs[:, None] * self.shape.rows + rows] = True
        self.counts.sampled += count
        self.counts.drawn += rows.size
        self.counts.copies += count_copies(envs, starts, length)
        beside = np.unravel_index(np.repeat(envs, length), self.shape.beside or 1)
        return DrawnSlices((rows.reshape(-1), *beside[: len(self.shape.beside)]), probabilities)

    def update(self, slots: Ints, signals: Signals) -> None:
        """Tell how the agent did on the steps in slots [N]: each that was drawn has one visit more.

        Steps that were not drawn since they were written are left as they are.
        """
        there = self.drawn[slots]
        self.counts.stale += len(slots) - int(np.count_nonzero(there))
        slots = slots[there]
        told = {name: signal[there] for name, signal in signals.items()}
        visits = self.sampler.history.visits[slots].astype(np.int64)
        judgement = self.sampler.judge(slots, visits, told)
        self.counts.refused += self.sampler.update(judgement, told)
        self.counts.updated += len(slots)

    def slots(self, index: Ints) -> Ints:
        """Return the slots [N] of steps by their index, [N, dimensions] or of that many numbers."""
        rows, *beside = index.reshape(-1, 1 + len(self.shape.beside)).T
        sides = (self.shape.rows, *self.shape.beside)
        for each, side in zip((rows, *beside), sides, strict=True):
            if np.any((each < 0) | (each >= side)):
                raise UsageError(f"an index of this storage is from 0 to {side - 1}, got {each}")
        envs = np.ravel_multi_index(beside, self.shape.beside) if beside else 0
        found: Ints = envs * self.shape.rows + rows
        return found

    def slots_of_all(self) -> Ints:
        """Return the slots [N] of all steps that were taken account of."""
        times, envs = np.divmod(self.windows.ids_of_all(), self.shape.envs)
        slots: Ints = envs * self.shape.rows + times % self.shape.rows
        return slots

    @property
    def drawable(self) -> npt.NDArray[np.bool_]:
        """Which slots can be drawn, [slots]."""
        return self.sampler.parts[0].tree.leaves > 0


def _order(shape: Shape) -> tuple[int, int, int, Window, bool]:
    """Return a shape as the arguments of `Windows`."""
    return shape.rows, shape.length, shape.envs, shape.window, shape.cross_episodes
