"""Draws whose windows share no step.

Where priorities lie on few steps, the windows of a batch overlap, and part of it is learned from
more than once. Here windows are drawn one after the other, each from the steps whose windows touch
none of those before. The leaves of all others are 0 meanwhile; in the end they get their values
back, and as sums are made anew from leaves, the trees are then what they were.
"""

from collections.abc import Sequence

import numpy as np

from curious_replay.replay.compiled import compiled
from curious_replay.replay.rule import Floats
from curious_replay.replay.sumtree import Ints, SumTree, draw_leaves, leaves_of, node_of, renew_sums
from curious_replay.replay.windows import FAR, Flags, Windows, episode_end, start_of

NOTHING: tuple[Ints, Ints] = (np.empty(0, np.int64), np.empty(0, np.int64))  # is taken


def draw_apart(
    trees: Sequence[SumTree],
    fraction: float,
    firsts: int,
    uniform: Floats,
    length: int,
    windows: Windows,
    taken: tuple[Ints, Ints],
) -> tuple[Ints, Floats]:
    """Draw slots [N], one for each number of `uniform` [N] in [0, 1), and their probabilities [N].

    Windows that are `taken` already, by environments [M] and first times [M], are not touched.

    The first `firsts` draws are the first tree's, the others the second's. A probability is that
    of one draw by both, the second with a weight of `fraction`, from what was left at that moment.
    If nothing is left, all is there again for the draws that are to come.
    """
    first = trees[0]
    tables = tuple(tree.table for tree in trees)
    return _draw_apart(
        tables, first.level, first.capacity, np.array([1 - fraction, fraction]), firsts, uniform,
        length, windows.clock, windows.ends, windows.shape, *taken,
    )  # fmt: skip


@compiled
def _draw_apart(
    tables: tuple[Floats, ...], level: Ints, capacity: int, shares: Floats, firsts: int,
    uniform: Floats, length: int, clock: Ints, ends: Flags, shape: Ints,
    taken_envs: Ints, taken_starts: Ints,
) -> tuple[Ints, Floats]:  # fmt: skip
    many, taken = len(uniform), len(taken_envs)
    stripe = shape[0]
    slots = np.empty(many, np.int64)
    chances = np.zeros(many)
    closed = np.empty(3 * length, np.int64)  # slots
    all_closed = np.empty(3 * length * (many + taken), np.int64)
    values = np.empty((len(tables), len(all_closed)))  # of those, before
    total = 0  # how many there are
    for i in range(taken):
        count = _overlapping(taken_envs[i], taken_starts[i], length, clock, ends, shape, closed)
        total = _close(tables, capacity, closed[:count], all_closed, values, total)
    for i in range(many):
        turn = 0 if i < firsts else 1
        drawn = draw_leaves(tables[turn], level, uniform[i : i + 1])
        if len(drawn) == 0:
            _open(tables, capacity, all_closed[:total], values)
            total = 0
            drawn = draw_leaves(tables[turn], level, uniform[i : i + 1])
        slot = drawn[0]
        slots[i] = slot
        for k in range(len(tables)):
            sums = tables[k][0].sum()
            if sums > 0:
                chances[i] += shares[k] * leaves_of(tables[k], capacity)[slot] / sums
        env, place = divmod(slot, stripe)
        own = _start(env, place, length, clock, ends, shape)
        count = _overlapping(env, own, length, clock, ends, shape, closed)
        total = _close(tables, capacity, closed[:count], all_closed, values, total)
    _open(tables, capacity, all_closed[:total], values)
    return slots, chances


@compiled
def _start(env: int, place: int, length: int, clock: Ints, ends: Flags, shape: Ints) -> int:
    """Return where the window of the drawn step at a place of an environment starts."""
    stripe, _, last, cross, _ = shape
    head, oldest = clock[0, env], clock[1, env]
    t = oldest + (place - oldest) % stripe
    end = FAR
    if not last and not cross:
        end = episode_end(t, min(head, t + length - 1), ends, env * stripe, stripe)
    return start_of(t, end, length, last)


@compiled
def _overlapping(
    env: int, own: int, length: int, clock: Ints, ends: Flags, shape: Ints, out: Ints
) -> int:
    """Put the slots of all steps whose windows touch the one that starts at `own` into `out`.

    Returns how many these are.
    """
    stripe, _, last, cross, _ = shape
    head, oldest = clock[0, env], clock[1, env]
    base = env * stripe
    tails = not last and not cross
    # Backwards, so that the end of the episode of each step is known when it is its turn.
    high = min(head - 1, own + 2 * length - 2)
    end = episode_end(high, min(head, high + length), ends, base, stripe) if tails else FAR
    count = 0
    for each in range(high, max(oldest, own - length + 1) - 1, -1):
        if tails and ends[base + each % stripe]:
            end = each
        if abs(start_of(each, end, length, last) - own) < length:
            out[count] = base + each % stripe
            count += 1
    return count


@compiled
def _close(
    tables: tuple[Floats, ...], capacity: int, closed: Ints, all_closed: Ints, values: Floats,
    total: int,
) -> int:  # fmt: skip
    """Let the leaves at `closed` [N] be 0 and note what they were, behind `total` others."""
    all_closed[total : total + len(closed)] = closed
    for k in range(len(tables)):
        leaves = leaves_of(tables[k], capacity)
        for j in range(len(closed)):
            values[k, total + j] = leaves[closed[j]]
            leaves[closed[j]] = 0.0
        _renew(tables[k], capacity, closed)
    return total + len(closed)


@compiled
def _open(tables: tuple[Floats, ...], capacity: int, closed: Ints, values: Floats) -> None:
    """Give the leaves at `closed` [N] their values [trees, N or more] back."""
    for k in range(len(tables)):
        leaves = leaves_of(tables[k], capacity)
        for j in range(len(closed) - 1, -1, -1):  # of a slot that was closed twice the first value
            leaves[closed[j]] = values[k, j]
        _renew(tables[k], capacity, closed)


@compiled
def _renew(table: Floats, capacity: int, changed: Ints) -> None:
    """Make the sums above leaves [N] anew."""
    nodes = np.empty(len(changed) + 1, np.int64)
    count, before = 0, -1
    for j in range(len(changed)):
        node = node_of(changed[j])
        nodes[count] = node
        count += node != before
        before = node
    renew_sums(table, capacity, nodes, count)
