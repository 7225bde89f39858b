"""The comparison itself: a verdict in words, bars, a table of all measures, profiles."""

from collections.abc import Sequence

import numpy as np

from curious_replay.analysis import forks, plots, stats
from curious_replay.report import measures as m
from curious_replay.report.parts import POINTS, SEED, Figure
from curious_replay.report.tables import Table


def _pairs(measure: m.Measured, baseline: str) -> list[tuple[str, str]]:
    """Return the pairs of all methods with the baseline, or all pairs if there is none."""
    names = list(measure.values)
    if baseline in names:
        return [(each, baseline) for each in names if each != baseline]
    return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]


def tests(measure: m.Measured, baseline: str) -> list[stats.Comparison]:
    """Return tests of each method against the baseline, or of all pairs if there is none.

    They are corrected together.
    """
    return stats.compare(measure.values, _pairs(measure, baseline), measure.worst)


def verdict(measure: m.Measured, found: Sequence[stats.Comparison]) -> str:
    """Return the first measure in words, whoever wins."""
    said = []
    for test in found:
        better = (test.difference < 0) == measure.lower_is_better
        word = "better" if better else "worse"
        if not np.isfinite(test.corrected):
            said.append(
                f"{test.first} and {test.second}: no test: fewer than two runs, or no spread"
            )
        elif test.corrected < 0.05:
            said.append(f"{test.first} does {word} than {test.second} (p = {test.corrected:.2g})")
        else:
            said.append(
                f"{test.first} against {test.second}: no difference shown "
                f"(p = {test.corrected:.2g}; the mean is {word})"
            )
    for method, values in measure.values.items():
        missing = len(values) - len(stats.finite(values))
        if missing:
            said.append(f"{missing} of {len(values)} runs of {method} have no result")
    return f"{measure.name}: " + ("; ".join(said) if said else "one method, nothing to compare")


def bars(name: str, measure: m.Measured, found: Sequence[stats.Comparison]) -> Figure:
    """Draw one measure as bars, with p-values."""
    caption = f"{measure.name}: mean, standard error, and every run as a point."
    drawn = plots.bars(measure.values, ylabel=measure.name, comparisons=found, caption=caption)
    return Figure(name, drawn)


def table_of(name: str, found: Sequence[m.Measured], baseline: str) -> Table:
    """Return a table of all measures of all methods."""
    rows: list[list[str | int | float]] = []
    for measure in found:
        against = {test.first: test for test in tests(measure, baseline)}
        for method, values in measure.values.items():
            whole = stats.summary(values)
            interval = stats.interval(np.array(values), seed=SEED)
            pair = [measure.ranked(method)], [measure.ranked(baseline)]
            better = stats.probability_of_improvement(*pair, seed=SEED)
            is_other = method != baseline
            rows.append([
                f"{measure.name}: {method}", whole.n, len(values), whole.mean, whole.sd, whole.sem,
                interval.value, interval.low, interval.high,
                better.value if is_other else np.nan,
                against[method].corrected if baseline in measure.values and is_other else np.nan,
            ])  # fmt: skip
    notes = {measure.note for measure in found if measure.note}
    return Table(
        f"{name}-measures",
        "All measures. IQM: interquartile mean, with its 95 % bootstrap interval. P(better): how "
        f"likely a run beats one of {baseline}. p: t-test against {baseline}, or a test of ranks "
        "where a run never got there, corrected within each measure. "
        + " ".join(sorted(f"{note[0].upper()}{note[1:]}." for note in notes)),
        ("measure", "n", "runs", "mean", "s.d.", "s.e.m.", "IQM", "from", "to", "P(better)", "p"),
        rows,
    )


def missing_seeds(methods: m.Methods) -> list[str]:
    """Return which runs one would expect, since other methods have them, but are not there."""
    seeds = {method: {run.seed for run in runs} for method, runs in methods.items()}
    every = set().union(*seeds.values())
    return [
        f"{method}: no run with seed {', '.join(map(str, sorted(every - have)))}"
        for method, have in seeds.items()
        if every - have
    ]


def shared_trunks(methods: m.Methods) -> list[str]:
    """Return which runs of one method were the same run for a while, and are taken for several."""
    return [
        f"{method}: {', '.join(run.name for run in runs)} share a trunk: they are not independent, "
        "though means and tests take them to be"
        for method, of_method in methods.items()
        for runs in forks.not_independent(of_method)
    ]


def profile(name: str, measure: m.Measured) -> list[Figure]:
    """Draw all runs at once: which share of each method's does better than a value."""
    values = [stats.finite(measure.values[method]) for method in measure.values]
    known = np.concatenate(values) if values else np.zeros(0)
    if len(values) < 2 or len(known) < 4 or np.ptp(known) == 0:
        return []
    levels = np.linspace(known.min() - 0.02 * np.ptp(known), known.max(), POINTS)
    sign = -1 if measure.lower_is_better else 1
    shares = {
        method: stats.performance_profile([measure.ranked(method)], sign * levels, seed=SEED)
        for method in measure.values
    }
    side = "below" if measure.lower_is_better else "above"
    caption = f"Share of runs {side} each value of: {measure.name}. Bands are 95 % intervals."
    drawn = plots.profiles(
        levels, shares, xlabel=measure.name, ylabel=f"share of runs {side}", caption=caption
    )
    return [Figure(name, drawn)]
