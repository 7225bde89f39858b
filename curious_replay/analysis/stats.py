"""Statistics of a few runs: what the paper reports, and intervals that admit how few they are.

Values that are not finite stand for runs without an answer (a run that ended before its fifth
interaction). They are left out, and `n` says how many are left. `scores` of several tasks are
[runs, tasks], or one array a task where their numbers of runs differ. Whatever is drawn at random
is drawn from `seed`.

Rliable (Agarwal et al. 2021, "Deep RL at the edge of the statistical precipice") defines the
interquartile mean, the probability of improvement and the performance profile used here.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[Any]
Tasks = Sequence[npt.ArrayLike] | Array
Statistic = Callable[[list[Array]], Array]
"""From samples [..., runs] of each task to one number [...]."""

SAMPLES = 2000
"""How often an interval resamples, as in rliable's examples."""


@dataclass(frozen=True)
class Summary:
    """Mean and spread of runs."""

    mean: float
    sd: float
    """Standard deviation of the sample (divided by n - 1); NaN for one run."""
    sem: float
    """Standard error of the mean: sd / sqrt(n)."""
    population_sd: float
    """Standard deviation divided by n, which Crafter's tables quote."""
    n: int


@dataclass(frozen=True)
class Interval:
    """An estimate and where it may lie."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """Two groups compared by a test."""

    first: str
    second: str
    difference: float
    """Mean of the first minus mean of the second."""
    t: float
    """Student's t; NaN where ranks were compared."""
    p: float
    corrected: float
    """p after Benjamini and Hochberg's correction for all comparisons made together."""


def finite(values: npt.ArrayLike) -> Array:
    """Return the values that are numbers, float64 [n]."""
    flat = np.asarray(values, np.float64).reshape(-1)
    return flat[np.isfinite(flat)]


def summary(values: npt.ArrayLike) -> Summary:
    """Return mean, standard deviation, standard error and number of runs."""
    kept = finite(values)
    n = len(kept)
    if not n:
        return Summary(math.nan, math.nan, math.nan, math.nan, 0)
    spread = 0.0 if _equal(kept) else float(kept.std())
    sd = spread * math.sqrt(n / (n - 1)) if n > 1 else math.nan
    return Summary(float(kept.mean()), sd, sd / math.sqrt(n), spread, n)


def t_test(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[float, float]:
    """Return Student's t and two-sided p of independent groups of equal variance, as in the paper.

    NaN if a group has fewer than two runs, or neither has any spread beyond rounding.
    """
    a, b = finite(a), finite(b)
    if min(len(a), len(b)) < 2 or (_equal(a) and _equal(b)):
        return math.nan, math.nan
    with warnings.catch_warnings():  # one group without spread is no reason to warn
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        found = stats.ttest_ind(a, b)
    return float(found.statistic), float(found.pvalue)


def group_test(
    a: npt.ArrayLike, b: npt.ArrayLike, never: float | None = None
) -> tuple[float, float]:
    """Return Student's t and p, or NaN and p of a test of ranks if a run got nowhere.

    That test is Mann and Whitney's. `never` is what such a run, whose value is not finite, stands
    for among the others: inf, later than all, or -inf, less than all; None: it is left out.
    """
    ranks = [np.asarray(each, np.float64).reshape(-1) for each in (a, b)]
    if never is None or all(np.isfinite(each).all() for each in ranks):
        return t_test(a, b)
    a, b = (np.where(np.isfinite(each), each, never) for each in ranks)
    if min(len(a), len(b)) < 2 or len({*a, *b}) == 1:
        return math.nan, math.nan
    return math.nan, float(stats.mannwhitneyu(a, b).pvalue)


def benjamini_hochberg(p: npt.ArrayLike) -> Array:
    """Return p-values [N] adjusted to control the false discovery rate.

    NaN stays NaN and is no test.
    """
    given = np.asarray(p, np.float64)
    adjusted = np.full(given.shape, np.nan)
    known = np.isfinite(given)
    if known.any():
        adjusted[known] = stats.false_discovery_control(given[known], method="bh")
    return adjusted


def compare(
    groups: Mapping[str, npt.ArrayLike],
    pairs: Sequence[tuple[str, str]] | None = None,
    never: float | None = None,
) -> list[Comparison]:
    """Return a `group_test` of all pairs of groups (or those given), corrected together."""
    pairs = list(combinations(groups, 2)) if pairs is None else pairs
    found = [group_test(groups[a], groups[b], never) for a, b in pairs]
    corrected = benjamini_hochberg([p for _, p in found])
    return [
        Comparison(a, b, summary(groups[a]).mean - summary(groups[b]).mean, t, p, float(q))
        for (a, b), (t, p), q in zip(pairs, found, corrected, strict=True)
    ]


def iqm(values: npt.ArrayLike) -> float:
    """Return the interquartile mean: the mean of the middle half, the outer quarters left out."""
    kept = finite(values)
    return float(stats.trim_mean(kept, 0.25)) if len(kept) else math.nan


def iqm_of_tasks(samples: list[Array]) -> Array:
    """Return the interquartile mean of the runs of all tasks together; a `Statistic`."""
    pooled = np.concatenate(samples, axis=-1)
    return np.asarray(stats.trim_mean(pooled, 0.25, axis=-1))


def mean_of_tasks(samples: list[Array]) -> Array:
    """Return the mean over tasks of the mean of each; a `Statistic`."""
    return np.asarray(np.mean([sample.mean(-1) for sample in samples], axis=0))


def median_of_tasks(samples: list[Array]) -> Array:
    """Return the median over tasks of the mean of each; a `Statistic`."""
    return np.asarray(np.median([sample.mean(-1) for sample in samples], axis=0))


def by_task(scores: Tasks) -> list[Array]:
    """Return scores as one array a task: columns of [runs, tasks], or the arrays given.

    A flat list of runs is one task. Runs without a score and tasks without a run are left out.
    """
    return [task for task in _columns(scores) if len(task)]


def interval(
    scores: Tasks,
    statistic: Statistic = iqm_of_tasks,
    *,
    seed: int,
    level: float = 0.95,
    samples: int = SAMPLES,
) -> Interval:
    """Return a statistic with its stratified bootstrap interval.

    Stratified: the runs of each task are drawn anew, with replacement, from that task's runs. The
    interval reaches from the (1 - level) / 2 to the (1 + level) / 2 quantile of what comes out.
    """
    tasks = by_task(scores)
    if not tasks:
        return Interval(math.nan, math.nan, math.nan)
    drawn = statistic(_resample(tasks, seed, samples))
    return _interval(float(statistic(tasks)), drawn, level)


def probability_of_improvement(
    first: Tasks, second: Tasks, *, seed: int, level: float = 0.95, samples: int = SAMPLES
) -> Interval:
    """Return how likely a run of `first` scores higher than a run of `second`.

    Both are on a task drawn at random. For each task the share of pairs (one run of each) in which
    the first is higher, ties half (Mann and Whitney's U / nm); then the mean over tasks. The tasks
    of both are the same, in order; those without a run on either side are left out.
    """
    sides = _columns(first), _columns(second)
    if len(sides[0]) != len(sides[1]):
        raise ValueError(f"the same tasks are needed on both sides, got {[*map(len, sides)]}")
    pairs = [(x, y) for x, y in zip(*sides, strict=True) if len(x) and len(y)]
    if not pairs:
        return Interval(math.nan, math.nan, math.nan)
    generators = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    shares, drawn = [], []
    for pair in pairs:
        # A resample changes how often each run counts, not who beats whom: hundreds of runs on
        # each side need no more than their weights.
        wins = _wins(*pair)
        ours, theirs = (
            _weights(len(side), samples, rng) for side, rng in zip(pair, generators, strict=True)
        )
        shares.append(wins.mean())
        drawn.append(((ours @ wins) * theirs).sum(-1))
    return _interval(float(np.mean(shares)), np.mean(drawn, axis=0), level)


def performance_profile(
    scores: Tasks,
    thresholds: npt.ArrayLike,
    *,
    seed: int,
    level: float = 0.95,
    samples: int = SAMPLES,
) -> tuple[Array, Array, Array]:
    """Return the share of runs, over all tasks, that score above each threshold; and its interval.

    They are values, lower and upper ends, each [thresholds].
    """
    tasks, levels = by_task(scores), np.asarray(thresholds, np.float64).reshape(-1)
    if not tasks:
        nothing = np.full(len(levels), np.nan)
        return nothing, nothing, nothing
    pooled = np.concatenate(tasks)
    drawn = np.concatenate(_resample(tasks, seed, samples), axis=-1)
    values = np.array([(pooled > level).mean() for level in levels])
    shares = np.stack([(drawn > level).mean(-1) for level in levels], axis=-1)
    low, high = np.quantile(shares, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return values, low, high


def _columns(scores: Tasks) -> list[Array]:
    if all(np.ndim(each) == 0 for each in scores):
        return [finite(np.array(scores, np.float64))] if len(scores) else []
    columns = scores.T if isinstance(scores, np.ndarray) else scores
    return [finite(column) for column in columns]


def _equal(values: Array) -> bool:
    """Return whether values are the same but for rounding."""
    return bool(np.ptp(values) <= 1e-12 * np.abs(values).max())


def _resample(tasks: list[Array], seed: int, samples: int) -> list[Array]:
    """Return each task's runs drawn anew, [samples, runs]."""
    rng = np.random.default_rng(seed)
    return [task[rng.integers(len(task), size=(samples, len(task)))] for task in tasks]


def _weights(runs: int, samples: int, rng: np.random.Generator) -> Array:
    """Return which part each run has in resamples with replacement, [samples, runs]."""
    drawn = rng.integers(runs, size=(samples, runs)) + runs * np.arange(samples)[:, None]
    return np.bincount(drawn.reshape(-1), minlength=samples * runs).reshape(samples, runs) / runs


def _wins(x: Array, y: Array) -> Array:
    """Return whether each run of x is above each of y, ties half, [x, y]."""
    difference = x[:, None] - y[None, :]
    return np.asarray((difference > 0) + 0.5 * (difference == 0))


def _interval(value: float, drawn: Array, level: float) -> Interval:
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))
