"""The results of an experiment: every run's numbers, beside the paper's, and a verdict.

`results.json` holds all of it, so that tables can be made again without the runs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from curious_replay.analysis import stats
from curious_replay.analysis.load import Run
from curious_replay.experiments.experiment import (
    MEDIAN,
    OVERALL,
    Experiment,
    Key,
    Measure,
    jobs,
)
from curious_replay.experiments.verdict import judge
from curious_replay.report.tables import Cell, Table
from curious_replay.untrusted import check

CellRuns = Mapping[Key, Sequence[Run]]
"""Complete runs by task and method."""
SEVERAL = 5
"""Tasks from which on their median says something."""


@dataclass(frozen=True)
class Row:
    """One task and method: a number for each run, or one for all of them."""

    task: str
    method: str
    seeds: list[int]
    values: list[float | None]
    """None: no result."""
    paper: str = ""

    @property
    def numbers(self) -> list[float]:
        """The values, NaN where there is none."""
        return [np.nan if value is None else value for value in self.values]


@dataclass(frozen=True)
class MeasureResult:
    """All rows of one measure."""

    name: str
    lower_is_better: bool
    rows: list[Row]


@dataclass(frozen=True)
class Results:
    """What came out of an experiment."""

    experiment: str
    where: str
    title: str
    scale: str
    word: str
    """"held", "held in part", "not shown", "contradicted" or "not tested"."""
    verdict: str
    measures: list[MeasureResult]
    made: list[Mapping[str, Any]] = field(default_factory=list)
    """How, for each sweep that runs come from: command, commits of the runs, hours they took."""

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Any, name: str = "results") -> "Results":
        """Read back what `to_json` gave; `name` says in errors where it is from."""
        check(values, _WANTED, name)
        measures = [
            MeasureResult(m["name"], m["lower_is_better"], [Row(**row) for row in m["rows"]])
            for m in values["measures"]
        ]
        return cls(**{**values, "measures": measures})

    def tables(self) -> list[Table]:
        """A table for each measure, ours beside the paper's."""
        return [self._table(measure) for measure in self.measures]

    def _table(self, measure: MeasureResult) -> Table:
        rows: list[list[Cell]] = []
        for row in measure.rows:
            whole = stats.summary(row.numbers)
            middle = stats.interval(np.array(row.numbers), seed=0)
            rows.append([
                row.task, row.method, len(row.seeds), whole.n, whole.mean, whole.sem,
                middle.value, middle.low, middle.high, row.paper or "–",
            ])  # fmt: skip
        better = "less" if measure.lower_is_better else "more"
        caption = (
            f"{measure.name} ({better} is better). With result: runs that have one, of which the "
            "means are. s.e.m.: standard error. IQM: interquartile mean with its 95 % bootstrap "
            f"interval. The paper's numbers are those of its own scale; ours are at {self.scale} "
            "scale."
        )
        columns = (
            "task", "method", "runs", "with result", "mean", "s.e.m.", "IQM", "from", "to", "paper",
        )  # fmt: skip
        slug = "".join(c if c.isalnum() else "-" for c in f"{self.experiment}-{measure.name}")
        return Table(slug, caption, columns, rows)


_WANTED: dict[str, Any] = {
    **{each.name: str for each in fields(Results)},
    "measures": [
        {
            "name": str,
            "lower_is_better": bool,
            "rows": [
                {
                    "task": str,
                    "method": str,
                    "seeds": [int],
                    "values": [(float, None)],
                    "paper": str,
                }
            ],
        }
    ],
    "made": [dict],
}


def results(
    experiment: Experiment, scale: str, found: CellRuns, made: Mapping[str, Any]
) -> Results:
    """Measure all runs and judge the claim; `made` says how, for whoever reads it later."""
    measured = []
    for measure in experiment.measures:
        rows = []
        for (task, method), runs in found.items():
            values = measure.values(runs) if runs else []
            rows.append(_row(measure, task, method, [run.seed for run in runs], values))
        measured.append(rows)
    return _judged(experiment, scale, measured, [made])


def judged_anew(experiment: Experiment, old: Results) -> Results:
    """The same numbers, with the words and the paper's numbers of today's experiment."""
    measured = [_rows(experiment, old, measure) for measure in experiment.measures]
    return _judged(experiment, old.scale, measured, old.made)


def pooled(experiment: Experiment, old: Results, new: Results) -> Results:
    """Both together: every seed of either, its numbers from `new` where both have it."""
    for one in (old, new):
        if (one.experiment, one.scale) != (experiment.name, new.scale):
            raise ValueError(
                f"only results of the same experiment and scale can be pooled, got "
                f"{one.experiment} at {one.scale} scale for {experiment.name} at {new.scale} scale"
            )
    order = [(task, method.name) for task, method in experiment.cells(new.scale)].index
    measured = []
    for measure in experiment.measures:
        cells: dict[Key, dict[int, float]] = {}
        for row in [*_rows(experiment, old, measure), *_rows(experiment, new, measure)]:
            if len(row.seeds) != len(row.values):
                raise ValueError(
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
    return _judged(experiment, new.scale, measured, made)


def shared(experiment: Experiment, other: Experiment, result: Results) -> Results | None:
    """What `other` measured of runs that `experiment` has too, as results of `experiment`."""
    names = {job.name: (job.task, job.method.name) for job in jobs(experiment, result.scale, 1)}
    here = {
        (job.task, job.method.name): names[job.name]
        for job in jobs(other, result.scale, 1)
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
    """The rows of one measure that are of one task."""
    found = [row for each in result.measures if each.name == measure.name for row in each.rows]
    kept = [row for row in found if row.task in experiment.tasks]
    return [_row(measure, row.task, row.method, row.seeds, row.numbers) for row in kept]


def _judged(
    experiment: Experiment,
    scale: str,
    found: Sequence[list[Row]],
    made: list[Mapping[str, Any]],
) -> Results:
    """Results from the rows of each measure, without those over tasks."""
    measured = [
        MeasureResult(measure.name, measure.lower_is_better, [*rows, *_over_tasks(measure, rows)])
        for measure, rows in zip(experiment.measures, found, strict=True)
    ]
    first = {
        (row.task, row.method): row.numbers
        for row in measured[0].rows
        if row.task in experiment.tasks
    }
    verdict = judge(experiment.claim, experiment.measures[0], first, scale)
    return Results(
        experiment.name, experiment.where, experiment.title, scale, verdict.word, verdict.sentence,
        measured, made,
    )  # fmt: skip


def _row(
    measure: Measure, task: str, method: str, seeds: Sequence[int], values: Sequence[float]
) -> Row:
    told = measure.paper.get((task, method))
    kept = [float(value) if np.isfinite(value) else None for value in values]
    return Row(task, method, [*seeds], kept, "" if told is None else str(told))


def _over_tasks(measure: Measure, rows: Sequence[Row]) -> list[Row]:
    """Each seed's mean over the tasks and, of several tasks, median, where it has all of them."""
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
