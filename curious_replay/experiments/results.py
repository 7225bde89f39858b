"""The results of an experiment: every run's numbers, beside the paper's, and a verdict.

`results.json` holds all of it, so that tables can be made again without the runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from curious_replay.analysis import stats
from curious_replay.analysis.load import Run
from curious_replay.experiments.experiment import Experiment, Key
from curious_replay.experiments.verdict import judge
from curious_replay.report.tables import Cell, Table

CellRuns = Mapping[Key, Sequence[Run]]
"""Complete runs by task and method."""


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
    made: Mapping[str, Any] = field(default_factory=dict)
    """How: command, commits of the runs, hours they took."""

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Results":
        """Read back what `to_json` gave."""
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


def results(
    experiment: Experiment, scale: str, found: CellRuns, made: Mapping[str, Any]
) -> Results:
    """Measure all runs and judge the claim; `made` says how, for whoever reads it later."""
    measured = []
    for measure in experiment.measures:
        rows = []
        for (task, method), runs in found.items():
            values = measure.values(runs) if runs else []
            told = measure.paper.get((task, method))
            rows.append(
                Row(
                    task,
                    method,
                    [run.seed for run in runs],
                    [float(v) if np.isfinite(v) else None for v in values],
                    "" if told is None else str(told),
                )
            )
        measured.append(MeasureResult(measure.name, measure.lower_is_better, rows))
    first = {(row.task, row.method): row.numbers for row in measured[0].rows}
    verdict = judge(experiment.claim, experiment.measures[0], first, scale)
    return Results(
        experiment.name, experiment.where, experiment.title, scale, verdict.word, verdict.sentence,
        measured, made,
    )  # fmt: skip
