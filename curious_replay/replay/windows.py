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

from curious_replay.replay.compiled import compiled
from curious_replay.replay.sumtree import Ints

Window = Literal["last", "first"]
Flags = npt.NDArray[np.bool_]

WAITING = 128  # how many new steps may wait, all environments together
FAR = 2**62  # a time that never comes
STALE = -1  # the slot of a step that was overwritten or cleared


class DrawableChange:
    """What new steps changed.

    slots    [N]   of the new steps
    changed  [M]   slots that can no longer (drawable False) or can now (True) be drawn,
    drawable   [M]   in the order in which that happened
    unmarked [K]   ids of new steps that begin an episode although their flag does not say so
    """

    def __init__(self, slots: Ints, changed: Ints, drawable: Flags, unmarked: Ints) -> None:
        self.slots = slots
        self.changed = changed
        self.drawable = drawable
        self.unmarked = unmarked


class Windows:
    """Write heads, episode ends and the bookkeeping of what can be drawn.

    New steps wait and are looked at together when somebody asks: that is cheaper than one by one.
    """

    def __init__(
        self, stripe: int, length: int, num_envs: int, window: Window, cross_episodes: bool
    ) -> None:
        self.stripe = stripe
        self.length = length
        self.num_envs = num_envs
        # Numbers are handed to compiled code in few arrays: each argument of a call takes time.
        self.shape: Ints = np.array([stripe, length, window == "last", cross_episodes, num_envs])
        self.clock: Ints = np.zeros((3, num_envs), np.int64)
        self.head, self.oldest, self.episode = self.clock  # episode: where the current one began
        self.ends: Flags = np.zeros(num_envs * stripe, np.bool_)  # [slots] an episode ends here
        self.next_ids: Ints = np.arange(num_envs)  # [num_envs] of the steps that come next
        self._stride: Ints = np.full(num_envs, num_envs)
        self.waiting = 0  # calls of `push` since the last `advance`
        # What waits can be read until it is taken: it must not yet be overwritten.
        self._room = min(stripe, -(-WAITING // num_envs))

    def __len__(self) -> int:
        return int((self.head - self.oldest).sum())

    def push(self, env: int | None) -> Ints:
        """Enter a new step of every environment, or of `env`; returns ids [num_envs], or one []."""
        ids = self.next_ids
        self.waiting += 1
        if env is None:
            self.next_ids = ids + self._stride
            return ids
        after = ids.copy()
        after[env] += self.num_envs
        self.next_ids = after
        new: Ints = ids[env]
        return new

    @property
    def full(self) -> bool:
        """Whether the new steps must be taken before more are entered."""
        return self.waiting >= self._room

    def new_steps(self) -> tuple[Ints, Ints]:
        """Return environments [N] and times [N] of the steps entered since the last `advance`."""
        return _new_steps(self.next_ids, self.clock, self.shape)

    def advance(self, envs: Ints, is_first: Flags, is_last: Flags) -> DrawableChange:
        """Take the `new_steps`, with their flags [N]; returns what that changed."""
        self.waiting = 0
        count = len(envs) * 3 * self.length  # at most
        changed, drawable = np.empty(count, np.int64), np.empty(count, np.bool_)
        slots, unmarked, count = _advance(
            envs, is_first, is_last, self.clock, self.ends, self.shape, changed, drawable
        )
        return DrawableChange(slots, changed[:count], drawable[:count], unmarked)

    def restore(self, clock: Ints, ends: Flags) -> None:
        """Continue from saved state."""
        self.clock[:] = clock
        self.ends[:] = ends
        self.next_ids = self.head * self.num_envs + np.arange(self.num_envs)

    def clear(self) -> DrawableChange:
        """Forget all steps; returns what can no longer be drawn. Ids go on from where they are."""
        times, envs = np.divmod(self.ids_of_all(), self.num_envs)
        slots: Ints = envs * self.stripe + times % self.stripe
        self.oldest[:] = self.head
        return DrawableChange(slots[:0], slots, np.zeros(len(slots), np.bool_), slots[:0])

    def find(self, ids: Ints, visits: npt.NDArray[np.int32]) -> tuple[Ints, Ints, int, int]:
        """Return the slots of `ids` [N] and what `visits` [slots] says of them.

        Then how many are STALE, with 0 visits, and where one was never given out (-1: nowhere).
        """
        return _find(ids, self.clock, self.shape, visits)

    def around(self, slots: Ints, length: int) -> tuple[Ints, Ints, Ints]:
        """Return environments [B], first times [B] and ids [B, length] of the windows of `slots`.

        `slots` [B] are those of drawn steps. Windows may be shorter than those that decide what can
        be drawn.
        """
        shape = self.shape
        if length != self.length:
            shape = shape.copy()
            shape[1] = length
        return _around(slots, self.clock, self.ends, shape)

    def ids_of_all(self) -> Ints:
        """Return the ids [N] of all steps, environment by environment, oldest first."""
        return np.concatenate(
            [
                np.arange(oldest, head) * self.num_envs + env
                for env, (oldest, head) in enumerate(zip(self.oldest, self.head, strict=True))
            ]
        )


@compiled
def _new_steps(next_ids: Ints, clock: Ints, shape: Ints) -> tuple[Ints, Ints]:
    num_envs = shape[4]
    head = clock[0]
    count = 0
    for env in range(num_envs):
        count += next_ids[env] // num_envs - head[env]
    envs = np.empty(count, np.int64)
    times = np.empty(count, np.int64)
    i = 0
    for env in range(num_envs):
        for t in range(head[env], next_ids[env] // num_envs):
            envs[i] = env
            times[i] = t
            i += 1
    return envs, times


@compiled
def _advance(
    envs: Ints, is_first: Flags, is_last: Flags, clock: Ints, ends: Flags, shape: Ints,
    changed: Ints, drawable: Flags,
) -> tuple[Ints, Ints, int]:  # fmt: skip
    stripe, length, last, cross, num_envs = shape
    head, oldest, episode = clock
    slots = np.empty(len(envs), np.int64)
    unmarked = np.empty(len(envs), np.int64)
    odd = 0
    count = 0
    for i in range(len(envs)):
        env = envs[i]
        t = head[env]
        base = env * stripe
        if t - oldest[env] == stripe:  # full: the oldest step goes, with the window it opens
            start = oldest[env]
            tail = not cross and ends[base + (start + length - 1) % stripe]
            count = _note(start, True, tail, False, base, shape, changed, drawable, count)
            oldest[env] = start + 1
        before = base + (t - 1) % stripe
        follows = t > oldest[env]  # there is a step before this one
        if follows and is_first[i] and not ends[before]:
            ends[before] = True  # its episode was broken off
            start = t - length
            if not last and not cross and start >= max(oldest[env], episode[env]):
                count = _note(start, False, True, True, base, shape, changed, drawable, count)
        # What follows the end of an episode, or nothing at all, begins one, whatever its flag says.
        if not follows or ends[before]:
            episode[env] = t
            if not is_first[i]:
                unmarked[odd] = t * num_envs + env
                odd += 1
        slots[i] = base + t % stripe
        ends[slots[i]] = is_last[i]
        head[env] = t + 1
        start = t - length + 1  # the window that this step completes
        if start >= oldest[env] and (cross or start >= episode[env]):
            tail = not cross and is_last[i]
            count = _note(start, True, tail, True, base, shape, changed, drawable, count)
    return slots, unmarked[:odd], count


@compiled
def _note(
    start: int, main: bool, tail: bool, opens: bool, base: int, shape: Ints,
    changed: Ints, drawable: Flags, count: int,
) -> int:  # fmt: skip
    """Note the steps that are drawn with the window at `start`: its main one, those of its tail."""
    stripe, length, last, _, _ = shape
    low = start + length - 1 if last else (start + 1 if main else start + 2)
    high = start + length - 1 if last or tail else start + 1
    for t in range(low, high + 1):
        changed[count] = base + t % stripe
        drawable[count] = opens
        count += 1
    return count


@compiled
def _find(
    ids: Ints, clock: Ints, shape: Ints, visits: npt.NDArray[np.int32]
) -> tuple[Ints, Ints, int, int]:
    stripe, _, _, _, num_envs = shape
    head, oldest, _ = clock
    slots = np.empty(len(ids), np.int64)
    found = np.zeros(len(ids), np.int64)  # the kind of number that looks powers up fastest
    stale = 0
    wrong = -1
    i = 0
    while i < len(ids):
        step_id = ids[i]
        t, env = divmod(step_id, num_envs)
        if oldest[env] <= t < head[env]:
            slot = env * stripe + t % stripe
            # The steps that follow in a window follow in the slots too, up to the end of either.
            until = min(len(ids), i + min(head[env] - t, (env + 1) * stripe - slot))
            while i < until and ids[np.uintp(i)] == step_id:
                slots[np.uintp(i)] = slot
                found[np.uintp(i)] = visits[np.uintp(slot)]
                step_id += num_envs
                slot += 1
                i += 1
        else:
            slots[i] = STALE
            if 0 <= t < head[env]:
                stale += 1
            else:
                wrong = i
            i += 1
    return slots, found, stale, wrong


@compiled
def _around(slots: Ints, clock: Ints, ends: Flags, shape: Ints) -> tuple[Ints, Ints, Ints]:
    stripe, length, last, cross, num_envs = shape
    oldest = clock[1]
    envs = np.empty(len(slots), np.int64)
    starts = np.empty(len(slots), np.int64)
    ids = np.empty((len(slots), length), np.int64)
    for i in range(len(slots)):
        env, place = divmod(slots[i], stripe)
        t = oldest[env] + (place - oldest[env]) % stripe
        tails = not last and not cross
        end = episode_end(t, t + length - 1, ends, env * stripe, stripe) if tails else FAR
        start = start_of(t, end, length, last)
        envs[i] = env
        starts[i] = start
        for later in range(length):
            ids[i, later] = (start + later) * num_envs + env
    return envs, starts, ids


@compiled
def episode_end(t: int, until: int, ends: Flags, base: int, stripe: int) -> int:
    """Return the first time from `t` on, before `until`, at which an episode ends, or FAR."""
    for later in range(t, until):
        if ends[base + later % stripe]:
            return later
    return FAR


@compiled
def start_of(t: int, end: int, length: int, last: int) -> int:
    """Return where the window of the drawn step `t` starts; its episode ends at `end`, if known."""
    return t - length + 1 if last else min(t - min(1, length - 1), end - length + 1)


@compiled
def count_copies(envs: Ints, starts: Ints, length: int) -> int:
    """Return how many steps of windows are in one before, by environments [B] and starts [B]."""
    order = np.argsort(starts)
    copies = 0
    for i in range(len(order)):
        for j in range(i - 1, -1, -1):  # the last one of this environment that starts before it
            if envs[order[j]] == envs[order[i]]:
                copies += max(0, starts[order[j]] + length - starts[order[i]])
                break
    return copies
