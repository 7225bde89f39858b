"""Which steps may be drawn, and which window of steps comes with a drawn one.

Time t counts the steps of one environment from 0 and never starts again, so that

    id   = t · num_envs + environment      names a step for ever,
    slot = environment · stripe + t mod stripe    is its place in all per-step arrays.

An environment holds the steps oldest ≤ t < head, at most `stripe` of them. A window is `length`
successive steps of one environment that are all there and, unless `cross_episodes`, belong to one
episode. A step can be drawn while its window is whole:

    "last"    the drawn step closes the window;
    "first"   the drawn step is the second of its window; where the episode ends before the window
              is full, the episode's last window serves all the steps that are left in it.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from .compiled import compiled
from .sumtree import Ints

Window = Literal["last", "first"]
Flags = npt.NDArray[np.bool_]

STALE = -1  # the step was overwritten or cleared
UNKNOWN = -2  # the id was never given out


class Windows:
    """Write heads, episode ends and the bookkeeping of what can be drawn."""

    def __init__(
        self, stripe: int, length: int, num_envs: int, window: Window, cross_episodes: bool
    ) -> None:
        self.stripe = stripe
        self.length = length
        self.num_envs = num_envs
        self._last = window == "last"
        self._cross = cross_episodes
        self.head: Ints = np.zeros(num_envs, np.int64)
        self.oldest: Ints = np.zeros(num_envs, np.int64)
        self.episode: Ints = np.zeros(num_envs, np.int64)  # first step of the current episode
        self.ends: Flags = np.zeros(num_envs * stripe, np.bool_)  # [slots] episode ends here
        self.between: Flags = np.ones(num_envs, np.bool_)  # the next step begins an episode
        self._changed: Ints = np.empty(num_envs * 3 * (length + 1), np.int64)
        self._opened: Flags = np.empty(len(self._changed), np.bool_)

    def __len__(self) -> int:
        return int((self.head - self.oldest).sum())

    def advance(self, envs: Ints, is_first: Flags, is_last: Flags) -> tuple[Ints, Flags, Ints]:
        """Take one new step for each of `envs`.

        Returns its slots, and the slots that could be drawn and no longer can (False) or now can
        (True), in the order in which that happened.
        """
        slots, count = _advance(
            envs, is_first, is_last, self.head, self.oldest, self.episode, self.ends,
            self.stripe, self.length, self._last, self._cross, self._changed, self._opened,
        )  # fmt: skip
        self.between[envs] = is_last
        return self._changed[:count], self._opened[:count], slots

    def clear(self) -> Ints:
        """Forget all steps; returns their slots. Ids go on from where they are."""
        ids = self.ids_of_all()
        slots = self.find(ids)
        self.oldest[:] = self.head
        self.between[:] = True
        return slots

    def find(self, ids: Ints) -> Ints:
        """Return the slots of `ids` [N], STALE or UNKNOWN where there is none."""
        return _find(ids, self.head, self.oldest, self.num_envs, self.stripe)

    def around(self, slots: Ints) -> tuple[Ints, Ints]:
        """Return environments [B] and first times [B] of the windows of drawn `slots` [B]."""
        return _around(
            slots, self.oldest, self.ends, self.stripe, self.length, self._last, self._cross
        )

    def ids(self, envs: Ints, starts: Ints) -> Ints:
        """Return the ids [B, length] of windows."""
        times = starts[:, None] + np.arange(self.length)
        return times * self.num_envs + envs[:, None]

    def ids_of_all(self) -> Ints:
        """Return the ids [N] of all steps, environment by environment, oldest first."""
        return np.concatenate(
            [
                np.arange(oldest, head) * self.num_envs + env
                for env, (oldest, head) in enumerate(zip(self.oldest, self.head, strict=True))
            ]
        )


@compiled
def _advance(
    envs: Ints, is_first: Flags, is_last: Flags, head: Ints, oldest: Ints, episode: Ints,
    ends: Flags, stripe: int, length: int, last: bool, cross: bool, changed: Ints, opened: Flags,
) -> tuple[Ints, int]:  # fmt: skip
    slots = np.empty(len(envs), np.int64)
    count = 0
    for i in range(len(envs)):
        env = envs[i]
        t = head[env]
        base = env * stripe
        if t - oldest[env] == stripe:  # full: the oldest step goes, with the window it opens
            start = oldest[env]
            tail = not cross and ends[base + (start + length - 1) % stripe]
            count = _note(
                start, length, last, True, tail, base, stripe, False, changed, opened, count
            )
            oldest[env] = start + 1
        there = t > oldest[env]  # a previous step
        if there and is_first[i] and not ends[base + (t - 1) % stripe]:
            ends[base + (t - 1) % stripe] = True  # an episode that was broken off
            start = t - length
            if not last and not cross and start >= max(oldest[env], episode[env]):
                count = _note(
                    start, length, last, False, True, base, stripe, True, changed, opened, count
                )
        if not there or ends[base + (t - 1) % stripe]:
            episode[env] = t
        slots[i] = base + t % stripe
        ends[slots[i]] = is_last[i]
        head[env] = t + 1
        start = t - length + 1  # the window that this step completes
        if start >= oldest[env] and (cross or start >= episode[env]):
            tail = not cross and is_last[i]
            count = _note(
                start, length, last, True, tail, base, stripe, True, changed, opened, count
            )
    return slots, count


@compiled
def _note(
    start: int, length: int, last: bool, main: bool, tail: bool, base: int, stripe: int,
    now_open: bool, changed: Ints, opened: Flags, count: int,
) -> int:  # fmt: skip
    """Note the steps that are drawn with the window at `start`: its main one, those of its tail."""
    low = start + length - 1 if last else (start + 1 if main else start + 2)
    high = start + length - 1 if last or tail else start + 1
    for t in range(low, high + 1):
        changed[count] = base + t % stripe
        opened[count] = now_open
        count += 1
    return count


@compiled
def _find(ids: Ints, head: Ints, oldest: Ints, num_envs: int, stripe: int) -> Ints:
    slots = np.empty(len(ids), np.int64)
    for i in range(len(ids)):
        t, env = divmod(ids[i], num_envs)
        if t < 0 or t >= head[env]:
            slots[i] = UNKNOWN
        elif t < oldest[env]:
            slots[i] = STALE
        else:
            slots[i] = env * stripe + t % stripe
    return slots


@compiled
def _around(
    slots: Ints, oldest: Ints, ends: Flags, stripe: int, length: int, last: bool, cross: bool
) -> tuple[Ints, Ints]:
    envs = np.empty(len(slots), np.int64)
    starts = np.empty(len(slots), np.int64)
    for i in range(len(slots)):
        env, place = divmod(slots[i], stripe)
        t = oldest[env] + (place - oldest[env]) % stripe
        start = t - length + 1 if last else t - 1
        if not last and not cross:
            for later in range(t, start + length - 1):
                if ends[env * stripe + later % stripe]:
                    start = later - length + 1
                    break
        envs[i] = env
        starts[i] = start
    return envs, starts
