"""From runs to results: every run's numbers, those of several sweeps together, and the verdicts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from curious_replay.analysis.load import Run
from curious_replay.errors import UsageError
from curious_replay.experiments import ladder as ladders
from curious_replay.experiments.experiment import MEDIAN, OVERALL, Experiment, Key, Measure
from curious_replay.experiments.jobs import jobs
from curious_replay.experiments.judged import verdicts
from curious_replay.experiments.ladder import RungResult
from curious_replay.experiments.results import ClaimResult, MeasureResult, Results, Row

CellRuns = Mapping[Key, Sequence[Run]]
"""Complete runs by task and method."""
SEVERAL = 5
"""Tasks from which on their median says something."""


def results(
    experiment: Experiment,
    scale: str,
    found: CellRuns,
    made: Mapping[str, Any],
    ladder: Sequence[RungResult] = (),
) -> Results:
    """Measure all runs and judge the claim; `made` says how, for whoever reads it later."""
    measured = []
    for measure in experiment.measures:
        rows = []
        for (task, method), runs in found.items():
            values = measure.values(runs) if runs else []
            rows.append(_row(measure, task, method, [run.seed for run in runs], values))
        measured.append(rows)
    return _judged(experiment, scale, measured, [made], ladder)


def judged_anew(experiment: Experiment, old: Results) -> Results:
    """Return the same numbers, with the words and the paper's numbers of today's experiment."""
    measured = [_rows(experiment, old, measure) for measure in experiment.measures]
    return _judged(experiment, old.scale, measured, old.made, old.ladder)


def pooled(experiment: Experiment, old: Results, new: Results) -> Results:
    """Return both together: every seed of either, its numbers from `new` where both have it."""
    for one in (old, new):
        if (one.experiment, one.scale) != (experiment.name, new.scale):
            raise UsageError(
                f"only results of the same experiment and scale can be pooled, got "
                f"{one.experiment} at {one.scale} scale for {experiment.name} at {new.scale} scale"
            )
    order = [(task, method.name) for task, method in experiment.cells(new.scale)].index
    measured = []
    for measure in experiment.measures:
        cells: dict[Key, dict[int, float]] = {}
        for row in [*_rows(experiment, old, measure), *_rows(experiment, new, measure)]:
            if len(row.seeds) != len(row.values):
                raise UsageError(
                    f"{measure.name} is one number for all runs of {row.method} on {row.task}, and "
                    "cannot be pooled: measure the runs together, in one sweep"
                )
            cell = cells.setdefault((row.task, row.method), {})
            cell.update(zip(row.seeds, row.numbers, strict=True))
        measured.append([
            _row(measure, task, method, sorted(cell), [cell[seed] for seed in sorted(cell)])
            for (task, method), cell in sorted(cells.items(), key=lambda item: order(item[0]))
        ])  # fmt: skip
    made = [*old.made, *(each for each in new.made if each not in old.made)]
    rungs = ladders.pooled(experiment.ladder, old.ladder, new.ladder)
    return _judged(experiment, new.scale, measured, made, rungs)


def shared(experiment: Experiment, other: Experiment, result: Results) -> Results | None:
    """Return what `other` measured of runs that `experiment` has too.

    They are results of `experiment`; None if there is nothing.
    """
    names = {
        job.name: (job.task, job.method.name)
        for job in jobs(experiment, result.scale, 1, first_seed=0)
    }
    here = {
        (job.task, job.method.name): names[job.name]
        for job in jobs(other, result.scale, 1, first_seed=0)
        if job.name in names
    }
    measured = [
        [
            _row(measure, *here[row.task, row.method], row.seeds, row.numbers)
            for row in _rows(other, result, measure)
            if (row.task, row.method) in here
        ]
        for measure in experiment.measures
    ]
    return _judged(experiment, result.scale, measured, result.made) if any(measured) else None


def _rows(experiment: Experiment, result: Results, measure: Measure) -> list[Row]:
    """Return the rows of one measure that are of one task."""
    found = [row for each in result.measures if each.name == measure.name for row in each.rows]
    kept = [row for row in found if row.task in experiment.tasks]
    return [_row(measure, row.task, row.method, row.seeds, row.numbers) for row in kept]


def _judged(
    experiment: Experiment,
    scale: str,
    found: Sequence[list[Row]],
    made: list[Mapping[str, Any]],
    ladder: Sequence[RungResult] = (),
) -> Results:
    """Return results from the rows of each measure, without those over tasks."""
    measured = [
        MeasureResult(measure.name, measure.lower_is_better, [*rows, *_over_tasks(measure, rows)])
        for measure, rows in zip(experiment.measures, found, strict=True)
    ]
    rows = {measure.name: each for measure, each in zip(experiment.measures, found, strict=True)}
    claims = [
        ClaimResult(claim.text, experiment.measure_of(claim).name, each.word, each.sentence,
                    [*each.compared])
        for claim, each in zip(experiment.claims, verdicts(experiment, scale, rows), strict=True)
    ]  # fmt: skip
    return Results(
        experiment.name, experiment.where, experiment.title, scale, claims[0].word,
        claims[0].verdict, measured, claims, made, [*ladder],
    )  # fmt: skip


def _row(
    measure: Measure, task: str, method: str, seeds: Sequence[int], values: Sequence[float]
) -> Row:
    told = measure.paper.get((task, method))
    kept = [float(value) if np.isfinite(value) else None for value in values]
    return Row(task, method, [*seeds], kept, "" if told is None else str(told))


def _over_tasks(measure: Measure, rows: Sequence[Row]) -> list[Row]:
    """Return each seed's mean over the tasks and, of several tasks, median.

    There are some only where it has all of them.
    """
    tasks = {row.task for row in rows}
    kinds: dict[str, Callable[[Sequence[float]], Any]] = {}
    if len(tasks) > 1:
        kinds[OVERALL] = np.mean
    if len(tasks) >= SEVERAL:
        kinds[MEDIAN] = np.median
    made = []
    for kind, together in kinds.items():
        for method in dict.fromkeys(row.method for row in rows):
            own = [row for row in rows if row.method == method]
            if {row.task for row in own} != tasks or any(
                len(row.seeds) != len(row.values) for row in own
            ):
                continue
            by_seed = [dict(zip(row.seeds, row.numbers, strict=True)) for row in own]
            seeds = sorted(set.intersection(*map(set, by_seed)))
            values = [float(together([each[seed] for each in by_seed])) for seed in seeds]
            made.append(_row(measure, kind, method, seeds, values))
    return made
