"""What the page shows of one environment and agent: a verdict, tables, charts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from curious_replay.analysis import (
    chart,
    crafter,
    interaction,
    model_error,
    plots,
    replay_probe,
    returns,
    stats,
    stored,
)
from curious_replay.analysis.load import Run
from curious_replay.report import measures as m
from curious_replay.report.tables import Table

SEED = 0
"""Of all resampling: the same runs give the same page."""
POINTS = 120
Rows = Callable[[Run], tuple[np.ndarray, np.ndarray]]
"""Frames and values of a run."""


@dataclass(frozen=True)
class Figure:
    """A chart and the name of its file."""

    name: str
    chart: chart.Chart


@dataclass(frozen=True)
class Section:
    """One environment and agent."""

    title: str
    name: str
    methods: m.Methods
    stored: dict[str, tuple[Run, stored.Stored]]
    """Of each method, the first run whose replay can be read, and what it holds."""
    verdicts: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


def section(title: str, name: str, methods: m.Methods, baseline: str = "uniform") -> Section:
    """Look at everything these runs have."""
    made = Section(title, name, methods, _first_stored(methods))
    found = m.measures(methods)
    for number, measure in enumerate(found):
        tests = _tests(measure, baseline)
        if number == 0:
            made.verdicts.append(_verdict(measure, tests))
            made.figures.append(_bars(name, measure, tests))
    if found:
        made.tables.append(_table(name, found, baseline))
    for make in (_curves, _interactions, _pixels, _errors, _spectrum, _share):
        made.figures.extend(make(name, methods))
    made.figures.extend([*_trajectories(name, made), *_replay(name, made)])
    return made


def _pairs(measure: m.Measure, baseline: str) -> list[tuple[str, str]]:
    """All methods against the baseline, or all pairs if there is none."""
    names = list(measure.values)
    if baseline in names:
        return [(each, baseline) for each in names if each != baseline]
    return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]


def _tests(measure: m.Measure, baseline: str) -> list[stats.Comparison]:
    return stats.compare(measure.values, _pairs(measure, baseline))


def _verdict(measure: m.Measure, tests: Sequence[stats.Comparison]) -> str:
    """The first measure in words, whoever wins."""
    said = []
    for test in tests:
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


def _bars(name: str, measure: m.Measure, tests: Sequence[stats.Comparison]) -> Figure:
    caption = f"{measure.name}: mean, standard error, and every run as a point."
    drawn = plots.bars(measure.values, ylabel=measure.name, comparisons=tests, caption=caption)
    return Figure(f"{name}-headline", drawn)


def _table(name: str, found: Sequence[m.Measure], baseline: str) -> Table:
    rows: list[list[str | int | float]] = []
    for measure in found:
        tests = {test.first: test for test in _tests(measure, baseline)}
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
                tests[method].corrected if baseline in measure.values and is_other else np.nan,
            ])  # fmt: skip
    notes = {measure.note for measure in found if measure.note}
    return Table(
        f"{name}-measures",
        "All measures. IQM: interquartile mean, with its 95 % bootstrap interval. P(better): how "
        f"likely a run beats one of {baseline}. p: t-test against {baseline}, corrected within "
        "each measure. " + " ".join(sorted(f"{note[0].upper()}{note[1:]}." for note in notes)),
        ("measure", "n", "runs", "mean", "s.d.", "s.e.m.", "IQM", "from", "to", "P(better)", "p"),
        rows,
    )


def _grid(methods: m.Methods) -> tuple[np.ndarray, int]:
    last = max((m.last_frame(run) for run in m.all_runs(methods)), default=0)
    return np.linspace(0, last, POINTS + 1)[1:].astype(np.int64), max(last // 25, 1)


def _changes(methods: m.Methods) -> chart.Changes:
    return next((run.changes for run in m.all_runs(methods) if len(run.changes) > 1), ())


def _curves(name: str, methods: m.Methods) -> list[Figure]:
    if not m.has_returns(methods):
        return []
    grid, window = _grid(methods)
    bands = {
        method: returns.band(
            grid, [returns.curve(*returns.returns_of(run), grid, window) for run in runs]
        )
        for method, runs in methods.items()
    }
    caption = (
        f"Return of training episodes, mean over {window:,} frames; bands are standard errors."
    )
    changes = _changes(methods)
    drawn = plots.curves(bands, ylabel="return", changes=changes, caption=caption)
    return [Figure(f"{name}-return", drawn)]


def _interactions(name: str, methods: m.Methods) -> list[Figure]:
    if not m.has_interactions(methods):
        return []
    start, (grid, _) = m.first_change(methods), _grid(methods)
    later = grid[grid > start] - start

    def total(run: Run) -> tuple[np.ndarray, np.ndarray]:
        return interaction.cumulative(*interaction.counts_of(run), start=start)

    bands = _bands(methods, later, total)
    caption = "Points of contact with the object so far; bands are standard errors."
    label = "frames since the object appeared" if start else "frames"
    drawn = plots.curves(bands, ylabel="contacts", xlabel=label, caption=caption)
    return [Figure(f"{name}-contacts", drawn)]


def _pixels(name: str, methods: m.Methods) -> list[Figure]:
    """From intervals of training: as long as nothing is dropped, what was added is stored."""
    names = [n for run in m.all_runs(methods) for n in run.metrics if n.endswith("_pixels")]
    if not names:
        return []
    bands = _bands(
        methods, _grid(methods)[0],
        lambda run: (run.metrics["frame"], np.cumsum(np.nan_to_num(run.metrics[names[0]]))),
    )  # fmt: skip
    caption = "Pixels of the object in all pictures that were stored so far."
    changes = _changes(methods)
    drawn = plots.curves(bands, ylabel="object pixels", changes=changes, caption=caption)
    return [Figure(f"{name}-pixels", drawn)]


def _share(name: str, methods: m.Methods) -> list[Figure]:
    what = "replay/share_after_change"
    if not any(what in run.metrics for run in m.all_runs(methods)):
        return []
    grid, _ = _grid(methods)
    bands = _bands(
        methods, grid, lambda run: (run.metrics["frame"], run.metrics[what]), before=np.nan
    )
    caption = "Share of what is replayed that was stored after the last change."
    changes = _changes(methods)
    drawn = plots.curves(bands, ylabel="share of batches", changes=changes, caption=caption)
    return [Figure(f"{name}-share", drawn)]


def _bands(
    methods: m.Methods, grid: np.ndarray, rows: Rows, before: float = 0.0
) -> dict[str, returns.Band]:
    """Bring rows of runs to a common grid: the last row up to each point, nothing after the end.

    `before` is the value ahead of the first row.
    """
    bands = {}
    for method, runs in methods.items():
        lines = []
        for frames, values in map(rows, runs):
            at = np.searchsorted(frames, grid, side="right")
            known = np.concatenate([[before], values])[at]
            over = grid > (frames[-1] if len(frames) else 0)
            lines.append(np.where(over, np.nan, known))
        bands[method] = returns.band(grid, lines)
    return bands


def _errors(name: str, methods: m.Methods) -> list[Figure]:
    if not m.has_probes(methods):
        return []
    bands = {}
    for method, runs in methods.items():
        found = [model_error.errors_of(run) for run in runs]
        grid = np.unique(np.concatenate([frames for frames, _ in found]))
        rows = np.full((len(found), len(grid)), np.nan)
        for row, (frames, errors) in zip(rows, found, strict=True):
            row[np.searchsorted(grid, frames)] = errors
        bands[method] = returns.band(grid, rows)
    caption = "Error of the world model on the object's pixels in test scenes."
    changes = _changes(methods)
    drawn = plots.curves(bands, ylabel="model error", changes=changes, caption=caption)
    return [Figure(f"{name}-model-error", drawn)]


def _spectrum(name: str, methods: m.Methods) -> list[Figure]:
    if not m.is_crafter(methods):
        return []
    budget = m.crafter_budget(methods)
    rates = {
        method: np.array([crafter.success_rates(*crafter.episodes_of(run), budget) for run in runs])
        for method, runs in methods.items()
    }
    return [Figure(f"{name}-spectrum", plots.spectrum(rates))]


def _first_stored(methods: m.Methods) -> dict[str, tuple[Run, stored.Stored]]:
    found: dict[str, tuple[Run, stored.Stored]] = {}
    for method, runs in methods.items():
        for run in runs:
            steps = stored.newest(run)
            if steps is not None and len(steps):
                found[method] = (run, steps)
                break
    return found


def _trajectories(name: str, part: Section) -> list[Figure]:
    start, panels = m.first_change(part.methods), {}
    for method, (_, steps) in part.stored.items():
        agent = interaction.position_of(steps, "agent")
        ball = interaction.object_name(steps)
        if agent is None or ball is None:
            continue
        places = interaction.position_of(steps, ball)
        last = int(steps.frame.max()) - start
        panels[method] = (
            interaction.trajectory(steps.frame, agent, start=start, length=last),
            None
            if places is None
            else interaction.trajectory(steps.frame, places, start=start, length=last),
        )
    caption = "Where the agent (grey) and the object (magenta) were since it appeared, first seed."
    return [
        Figure(f"{name}-places", plots.trajectories(panels, caption=caption))
    ] if panels else []  # fmt: skip


def _replay(name: str, part: Section) -> list[Figure]:
    profiles = {
        method: replay_probe.profile(steps.frame, steps.chance, steps.visits, POINTS)
        for method, (_, steps) in part.stored.items()
    }
    changes = _changes(part.methods)
    return [
        Figure(f"{name}-replay", plots.replay_view(profiles, changes=changes))
    ] if profiles else []  # fmt: skip
