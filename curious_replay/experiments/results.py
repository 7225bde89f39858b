"""The results of an experiment: every run's numbers, beside the paper's, and a verdict.

`results.json` holds all of it, so that tables can be made again without the runs.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from curious_replay.analysis import stats
from curious_replay.experiments.ladder import RungResult
from curious_replay.experiments.verdict import Compared
from curious_replay.report.tables import Cell, Table
from curious_replay.untrusted import check

PAIRED = (
    "All comparisons, seed by seed. Better, ties: pairs in which the first did better, or neither. "
    "Effect: the typical ratio of times, first by second, or else difference, first minus second "
    "(Hodges and Lehmann), with its exact 95 % interval; a dash is beyond all numbers, as from one "
    "that never got there, or too few pairs. p: Wilcoxon's signed-rank test, exact (of similarity: "
    "two one-sided tests), and corrected for all rows (Benjamini and Hochberg). Claim: whether "
    "that speaks for it."
)
LADDER = (
    "What must hold before methods are compared: the agent learns its world, its model has settled "
    "before the change, and the measure tells who knows the world from chance. A dash: never."
)


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
class ClaimResult:
    """How one claim fared."""

    text: str
    measure: str
    word: str
    """"held", "held in part", "not shown", "contradicted" or "not tested"."""
    verdict: str
    compared: list[Compared] = field(default_factory=list)
    """Where runs are compared seed by seed."""


@dataclass(frozen=True)
class Results:
    """What came out of an experiment."""

    experiment: str
    where: str
    title: str
    scale: str
    word: str
    """That of the first claim."""
    verdict: str
    """That of the first claim."""
    measures: list[MeasureResult]
    claims: list[ClaimResult] = field(default_factory=list)
    made: list[Mapping[str, Any]] = field(default_factory=list)
    """How, for each sweep that runs come from: command, commits of the runs, hours they took."""
    ladder: list[RungResult] = field(default_factory=list)
    """What must hold before methods are compared."""

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Any, name: str = "results") -> "Results":
        """Read back what `to_json` gave; `name` says in errors where it is from."""
        values = _with_what_is_newer(values)
        check(values, _WANTED, name)
        measures = [
            MeasureResult(m["name"], m["lower_is_better"], [Row(**row) for row in m["rows"]])
            for m in values["measures"]
        ]
        claims = [
            ClaimResult(**{**claim, "compared": [Compared(**one) for one in claim["compared"]]})
            for claim in values["claims"]
        ]
        ladder = [RungResult(**rung) for rung in values["ladder"]]
        return cls(**{**values, "measures": measures, "claims": claims, "ladder": ladder})

    def tables(self) -> list[Table]:
        """Return the ladder, all comparisons of pairs, and each measure beside the paper's."""
        measured = (self._table(measure) for measure in self.measures)
        return [*self._rungs(), *self._comparisons(), *measured]

    def _rungs(self) -> list[Table]:
        rows: list[list[Cell]] = [
            [
                rung.name, rung.bound, len(rung.values), rung.median, "yes" if rung.held else "no",
            ]
            for rung in self.ladder
        ]  # fmt: skip
        columns = ("rung", "must be", "seeds", "median", "held")
        return [Table(f"{self.experiment}-ladder", LADDER, columns, rows)] if rows else []

    def _comparisons(self) -> list[Table]:
        rows: list[list[Cell]] = [
            [
                claim.measure, one.task, one.first, one.second, one.pairs, one.better, one.ties,
                one.effect, one.low, one.high, one.p, one.corrected, one.outcome,
            ]
            for claim in self.claims
            for one in claim.compared
        ]  # fmt: skip
        columns = (
            "measure", "task", "first", "against", "pairs", "better", "ties", "effect", "from",
            "to", "p", "corrected", "claim",
        )  # fmt: skip
        return [Table(f"{self.experiment}-pairs", PAIRED, columns, rows)] if rows else []

    def _table(self, measure: MeasureResult) -> Table:
        rows: list[list[Cell]] = []
        for row in measure.rows:
            whole = stats.summary(row.numbers)
            middle = stats.interval(np.array(row.numbers), seed=0)
            rows.append([
                row.task, row.method, len(row.seeds), whole.n, whole.mean, whole.sem,
                middle.value, middle.low, middle.high, row.paper or None,
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


def _with_what_is_newer(values: Any) -> Any:
    """Return the JSON value of results with what older files do not have."""
    if not isinstance(values, dict):
        return values
    values = {"claims": [], "ladder": [], **values}
    if isinstance(values["ladder"], list):
        rungs = values["ladder"]
        values["ladder"] = [{"seeds": [], **r} if isinstance(r, dict) else r for r in rungs]
    return values


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
    "claims": [
        {
            **{each.name: str for each in fields(ClaimResult)},
            "compared": [
                {
                    **{each.name: (float, None) for each in fields(Compared)},
                    **dict.fromkeys(("task", "first", "second", "outcome"), str),
                    **dict.fromkeys(("pairs", "better", "ties"), int),
                }
            ],
        }
    ],
    "made": [dict],
    "ladder": [
        {
            "name": str,
            "bound": str,
            "values": [(float, None)],
            "median": (float, None),
            "held": bool,
            "seeds": [int],
        }
    ],
}
