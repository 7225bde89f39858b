"""Online queue: each new step is replayed once, soon after it came, before anything is drawn.

Its windows follow one another without a gap in each environment, so the queue is no more than the
time up to which each was replayed. Where windows must stay in one episode, what is left of it at
its end comes with the steps before, a second time; an episode shorter than a window is left out.
"""

import numpy as np

from curious_replay.replay.compiled import compiled
from curious_replay.replay.sumtree import Ints
from curious_replay.replay.windows import FAR, Flags, Windows, episode_end


class OnlineQueue:
    """How far the steps of each environment were replayed: `next`, times [num_envs]."""

    def __init__(self, num_envs: int) -> None:
        self.next: Ints = np.zeros(num_envs, np.int64)

    def take(self, count: int, length: int, windows: Windows) -> tuple[Ints, Ints]:
        """Take the next windows, at most `count`: their environments [N] and first times [N].

        The environment with the most waiting steps comes first; steps that were overwritten are no
        longer waiting.
        """
        np.maximum(self.next, windows.oldest, out=self.next)
        return _take(self.next, count, length, windows.clock, windows.ends, windows.shape)


@compiled
def _take(
    waiting: Ints, count: int, length: int, clock: Ints, ends: Flags, shape: Ints
) -> tuple[Ints, Ints]:
    stripe, _, _, cross, num_envs = shape
    head, oldest, _ = clock
    envs, starts = np.empty(count, np.int64), np.empty(count, np.int64)
    taken = np.zeros(num_envs, np.bool_)  # from here comes a window of this batch
    waits = np.zeros(num_envs, np.bool_)  # until more steps come, or until the next batch
    many = 0
    while many < count:
        env, most = -1, 0
        for each in range(num_envs):
            if not waits[each] and head[each] - waiting[each] > most:
                env, most = each, head[each] - waiting[each]
        if env < 0:
            break
        start, base = waiting[env], env * stripe
        end = FAR
        if not cross:
            end = episode_end(start, min(head[env], start + length), ends, base, stripe)
        if end >= start + length - 1:
            if start + length > head[env]:
                waits[env] = True
                continue
            waiting[env] = start + length
        else:  # its episode ends before the window is full
            first = end - length + 1
            inside = first >= oldest[env]
            inside = inside and episode_end(first, start, ends, base, stripe) == FAR
            if inside and taken[env]:  # it would share steps with that window
                waits[env] = True
                continue
            waiting[env] = end + 1
            if not inside:
                continue
            start = first
        envs[many], starts[many] = env, start
        taken[env] = True
        many += 1
    return envs[:many], starts[:many]
