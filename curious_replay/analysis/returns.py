"""Returns of episodes: learning curves, values at a time, tables over tasks, what a change costs.

`frames` [episodes] are those at which training episodes ended, in order, `returns` what they came
to. The paper plots the online return of training episodes, not of evaluation.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curious_replay.analysis.lines import Array
from curious_replay.analysis.load import Run

RECOVERED = 0.9
"""Which part of the return before a change counts as recovered from it."""


@dataclass(frozen=True)
class Band:
    """Mean of runs and its standard error at each point of a grid; `n` runs have a value there."""

    grid: Array
    mean: Array
    sem: Array
    n: Array


@dataclass(frozen=True)
class Adaptation:
    """What a change did to the return."""

    before: float
    """Mean return in the window before the change."""
    after: float
    """Mean return in the window after it: how well the old policy does in the new world."""
    average: float
    """Mean return from the change to the end: high if it adapts fast."""
    frames_to_recover: float
    """Frames from the change until the mean return of a window is back at a share of `before`."""


def curve(frames: npt.ArrayLike, returns: npt.ArrayLike, grid: npt.ArrayLike, window: int) -> Array:
    """Return the mean return up to each point of the grid.

    It is that of the episodes that ended in the `window` frames up to the point. From frames and
    returns [N] of episodes to means [len(grid)], NaN where no episode ended. A run that ended early
    has no values after its end: nothing is carried on.
    """
    frame, value = _clean(frames, returns)
    points = np.asarray(grid)
    total = np.concatenate([[0.0], np.cumsum(value)])
    low = np.searchsorted(frame, points - window, side="right")
    high = np.searchsorted(frame, points, side="right")
    count = high - low
    sums = total[high] - total[low]
    means: Array = np.full(len(points), np.nan)
    np.divide(sums, count, out=means, where=count > 0)
    return means


def band(grid: npt.ArrayLike, curves: npt.ArrayLike) -> Band:
    """Return the mean and standard error of curves [runs, grid] (paper: Figures 3, 5, 21 to 24)."""
    values = np.atleast_2d(np.asarray(curves, np.float64))
    known = np.isfinite(values)
    n = known.sum(0)
    mean = np.where(known, values, 0).sum(0) / np.maximum(n, 1)
    square = np.where(known, (values - mean) ** 2, 0).sum(0)
    sem = np.sqrt(square / np.maximum(n - 1, 1) / np.maximum(n, 1))
    nothing = np.where(n > 0, mean, np.nan)
    return Band(np.asarray(grid), nothing, np.where(n > 1, sem, np.nan), n)


def value_at(frames: npt.ArrayLike, returns: npt.ArrayLike, at: int, window: int = 10_000) -> float:
    """Return the mean return at a frame: of episodes that ended in the `window` frames up to it.

    Paper: 750 K frames (Constrained Control Suite), 50 K, 990 K and 2.05 M (background swap).
    """
    return float(curve(frames, returns, [at], window)[0])


def mean_and_median(by_task: Mapping[str, npt.ArrayLike]) -> tuple[float, float]:
    """Return the mean and median over tasks of the mean return of each task's runs.

    Paper: Tables 3 and 11. Tasks without a finite value are left out.
    """
    means = [np.nanmean(v) for v in map(np.asarray, by_task.values()) if np.isfinite(v).any()]
    return (float(np.mean(means)), float(np.median(means))) if means else (np.nan, np.nan)


def adaptation(
    frames: npt.ArrayLike,
    returns: npt.ArrayLike,
    change: int,
    window: int,
    *,
    stop: int | None = None,
) -> Adaptation:
    """Return how the return follows a change, up to the next at `stop` (paper: Figures 3 and 5).

    Recovered is the first episode end after the change at which the episodes of the last `window`
    frames, all from after the change, have a mean of at least RECOVERED times `before`; they must
    span the whole window. NaN if that does not happen.
    """
    frame, value = _clean(frames, returns)
    end = np.inf if stop is None else stop
    later = (frame > change) & (frame <= end)
    before = value_at(frame, value, change, window)
    ends = frame[later & (frame >= change + window)]
    means = curve(frame[later], value[later], ends, window)
    good = np.flatnonzero(means >= RECOVERED * before)
    return Adaptation(
        before=before,
        after=value_at(frame[later], value[later], change + window, window),
        average=float(value[later].mean()) if later.any() else np.nan,
        frames_to_recover=float(ends[good[0]] - change) if len(good) else np.nan,
    )


def retention(
    frames: npt.ArrayLike, returns: npt.ArrayLike, change: int, undone: int, window: int
) -> tuple[float, float]:
    """Return what is left of the first phase once the change is undone (paper: Table 10).

    That is the mean return in the window before the change, and in the window after it is undone.
    The paper compares 990 K with 2.05 M frames.
    """
    frame, value = _clean(frames, returns)
    later = frame > undone
    return (
        value_at(frame, value, change, window),
        value_at(frame[later], value[later], undone + window, window),
    )


def steps_to_solve(
    steps: npt.ArrayLike,
    lengths: npt.ArrayLike,
    returns: npt.ArrayLike,
    begin: int = 0,
    *,
    streak: int = 20,
    within: float = 8.0,
) -> float:
    """Return the steps from `begin` until a task with a goal is solved; NaN if it never is.

    Solved: `streak` episodes in a row, all begun at `begin` or later, end with reward, after
    `within` steps on average. `steps` [episodes] are those at which episodes ended.
    """
    recent: deque[float] = deque(maxlen=streak)
    for step, length, value in zip(
        np.asarray(steps), np.asarray(lengths), np.asarray(returns), strict=True
    ):
        if step - length < begin:
            continue
        recent.append(float(length) if value > 0 else np.inf)
        if len(recent) == streak and sum(recent) <= streak * within:
            return float(step - begin)
    return float("nan")


def just_before(steps: npt.ArrayLike, returns: npt.ArrayLike, end: int, count: int = 20) -> float:
    """Return the mean return of the last `count` episodes that ended up to step `end`, or NaN."""
    value = np.asarray(returns, np.float64)[np.asarray(steps) <= end][-count:]
    return float(value.mean()) if len(value) else float("nan")


def just_after(
    steps: npt.ArrayLike,
    lengths: npt.ArrayLike,
    returns: npt.ArrayLike,
    begin: int,
    count: int = 20,
) -> float:
    """Return the mean return of the first `count` episodes begun at step `begin` or later, or NaN.

    `steps` [episodes] are those at which episodes ended, `lengths` [episodes] their own steps.
    """
    begun = np.asarray(steps) - np.asarray(lengths)
    value = np.asarray(returns, np.float64)[begun >= begin][:count]
    return float(value.mean()) if len(value) else float("nan")


def returns_of(run: Run, mode: str = "train") -> tuple[Array, Array]:
    """Return the frames at the end of a run's episodes, and their returns, [N] each."""
    played = run.played(mode)
    return played["frame"], played["return"]


def _clean(frames: npt.ArrayLike, returns: npt.ArrayLike) -> tuple[Array, Array]:
    """Return frames and returns in order of frames, without what is not finite."""
    frame, value = np.asarray(frames), np.asarray(returns, np.float64)
    known = np.isfinite(value)
    order = np.argsort(frame[known], kind="stable")
    return frame[known][order], value[known][order]
