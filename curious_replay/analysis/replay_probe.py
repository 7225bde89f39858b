"""What is in a replay buffer and what is replayed of it: priorities and visits, by age and phase.

The last checkpoint tells visits and priorities of every step at that moment (`stored.newest`),
snapshots those of earlier ones (`snapshots.snapshots`). Both have a `chance`: how likely a draw is
to fall on a step, relative to uniform replay.

What share of each batch was made after the last change is counted during training:
`replay/share_after_change` in metrics.jsonl, the share of the replayed steps (all positions of all
batches since the last line) that were stored since the phase last changed. Two snapshots tell the
same for the time between them (`share_of_visits`).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curious_replay.analysis.lines import Array
from curious_replay.analysis.snapshots import Snapshot


@dataclass(frozen=True)
class Profile:
    """Means over groups of steps: bins of the buffer, or phases."""

    position: Array
    """Middle of each bin, or number of each phase."""
    chance: Array
    """Mean chance to be drawn, relative to uniform (1: as often as under uniform replay)."""
    visits: Array
    """Mean visits."""
    count: Array
    """Steps in the group."""


def relative(priorities: npt.ArrayLike) -> Array:
    """Return the chance of each step to be drawn relative to uniform: p · N / Σp.

    It is 0 if a step cannot be drawn. From priorities [N] to as many numbers. N counts the steps
    that can be drawn, so that their mean is 1.
    """
    p = np.asarray(priorities, np.float64)
    total = p.sum()
    return p * np.count_nonzero(p) / total if total > 0 else np.zeros_like(p)


def profile(
    position: npt.ArrayLike, chance: npt.ArrayLike, visits: npt.ArrayLike, bins: int = 200
) -> Profile:
    """Return priorities and visits across the buffer (paper: Figure 16), in `bins` equal parts.

    `position` [N] is what the buffer is laid out along: the frame at which a step was seen, or its
    age; `chance` [N] is relative to uniform. Bins without a step are left out.
    """
    place = np.asarray(position, np.float64)
    if not len(place):
        return Profile(*(np.zeros(0) for _ in range(4)))
    edges = np.linspace(place.min(), np.nextafter(place.max(), np.inf), bins + 1)
    which = np.clip(np.searchsorted(edges, place, side="right") - 1, 0, bins - 1)
    return _means(which, (edges[:-1] + edges[1:]) / 2, chance, visits)


def by_phase(phase: npt.ArrayLike, chance: npt.ArrayLike, visits: npt.ArrayLike) -> Profile:
    """Return chances and visits of the steps of each phase; `phase` [N] are whole numbers."""
    names, which = np.unique(np.asarray(phase), return_inverse=True)
    return _means(which, names, chance, visits)


def segments(frames: npt.ArrayLike, changes: npt.ArrayLike) -> Array:
    """Return which part of the schedule each of `frames` belongs to, integers in their shape.

    It is 0 before the first change, then 1, 2, ... `changes` are the frames at which a new phase
    begins, without the beginning of the run.
    """
    return np.searchsorted(np.asarray(changes), np.asarray(frames), side="right")


def share_of_draws(priorities: npt.ArrayLike, chosen: npt.ArrayLike) -> float:
    """Return the chance that one draw falls on the chosen steps: Σp of these / Σp."""
    p = np.asarray(priorities, np.float64)
    return float(p[np.asarray(chosen, bool)].sum() / p.sum()) if p.sum() > 0 else float("nan")


def share_of_visits(earlier: Snapshot, later: Snapshot, first_id: int) -> float:
    """Return the share of what was replayed between two snapshots with an id from `first_id` on.

    Visits that were added in between; steps that were dropped in between are not counted. With the
    id of the first step after a change this is the share of each batch from after the change.
    """
    _, at, there = np.intersect1d(earlier.ids, later.ids, return_indices=True)
    added = later.visits.astype(np.int64)
    added[there] -= earlier.visits[at].astype(np.int64)
    total = added.sum()
    return float(added[later.ids >= first_id].sum() / total) if total else float("nan")


def uniform_visits(
    time: npt.ArrayLike, now: int, total: float, *, first: int = 1, capacity: int | None = None
) -> Array:
    """Return the visits that uniform replay would have given each step, [N], `total` in all.

    Steps are stored one by one, at times 0, 1, ... up to `now`. After each of them, from the
    `first` on, the same number of steps is replayed, all that are stored being alike: a step of
    time t gets a share 1 / min(s, capacity) from every s > t. So the oldest steps are visited
    most; this is what measured visits are to be compared with.
    """
    stored = np.arange(1, now + 1, dtype=np.float64)
    share = np.where(stored >= first, 1 / np.minimum(stored, capacity or np.inf), 0)
    so_far = np.concatenate([[0.0], np.cumsum(share)])
    expected = so_far[-1] - so_far[np.clip(np.asarray(time, np.int64), 0, now)]
    mass = expected.sum()
    return np.asarray(expected * (total / mass) if mass > 0 else expected)


def _means(which: Array, position: Array, chance: npt.ArrayLike, visits: npt.ArrayLike) -> Profile:
    count = np.bincount(which, minlength=len(position))
    full = count > 0

    def mean(values: Array) -> Array:
        return np.bincount(which, values, len(position))[full] / count[full]

    return Profile(
        np.asarray(position)[full],
        mean(np.asarray(chance, np.float64)),
        mean(np.asarray(visits, np.float64)),
        count[full],
    )
