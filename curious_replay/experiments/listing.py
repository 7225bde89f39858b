"""The catalogue as text: what experiments cost, what the paper claims, and its numbers.

python -m curious_replay.experiments.listing prints what stands in docs/experiments.md.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from curious_replay.experiments import design
from curious_replay.experiments.catalogue import experiments
from curious_replay.experiments.experiment import OVERALL, Experiment, Measure
from curious_replay.experiments.jobs import Job, jobs, with_trunks

WIDEST = 6
"""Columns of numbers in one table."""
UNITS = ((1_000_000, "M"), (1_000, "K"))


class Cost(NamedTuple):
    """Runs, and updates of all of them together."""

    runs: int
    updates: int
    hours: float = 0.0
    """Of one core or graphics card; 0: not measured."""

    @property
    def short_updates(self) -> str:
        """Updates in three digits: 189, 93.8K, 3.15M."""
        for unit, letter in UNITS:
            if self.updates >= unit:
                return f"{self.updates / unit:.3g}{letter}"
        return str(self.updates)

    def __str__(self) -> str:
        return f"{self.runs} runs, {self.short_updates} updates" if self.runs else "–"


def cost(
    wanted: Iterable[Experiment],
    scale: str,
    seeds: int | None = None,
    hours: Callable[[Iterable[Job]], float] | None = None,
) -> Cost:
    """Return what experiments cost together, those that there are at this scale.

    Trunks are runs too. A run that several of them share counts once. `hours` measures runs.
    """
    here = [experiment for experiment in wanted if scale in experiment.scales]
    found = with_trunks(job for experiment in here for job in jobs(experiment, scale, seeds))
    return Cost(
        len(found), sum(job.updates for job in found), 0.0 if hours is None else hours(found)
    )


def markdown() -> str:
    """Return all experiments: a table of costs, then each with its claim and numbers."""
    known = experiments()
    rows = [
        [f"[{name}](#{name})", each.where, str(cost([each], "paper")), str(cost([each], "mini"))]
        for name, each in known.items()
    ]
    everything = [str(cost(known.values(), scale)) for scale in ("paper", "mini")]
    rows.append(["all, shared runs once", "", *everything])
    costs = _table(("experiment", "in the paper", "paper scale", "mini scale"), rows)
    return "\n\n".join([costs, *map(_section, known.values())])


def _section(experiment: Experiment) -> str:
    tasks = ", ".join(f"`{task}`" for task in experiment.tasks)
    if len(experiment.tasks) > WIDEST:
        tasks = f"{len(experiment.tasks)} tasks"
    parts = [
        f"## {experiment.name}",
        f"{experiment.title} ({experiment.where}).",
        *(f"Claim: {claim}" for claim in design.claims(experiment)),
        *design.how(experiment),
        f"Measured: {'; '.join(measure.name for measure in experiment.measures)}.",
        f"{experiment.seeds} runs of each method on {tasks}.",
        *([f"Not as in the paper: {experiment.differs}."] if experiment.differs else []),
    ]
    return "\n\n".join([*parts, *_numbers(experiment)])


def _numbers(experiment: Experiment) -> list[str]:
    """Return the paper's numbers: methods down the rows, or tasks if there are many."""
    methods = [method.name for method in experiment.methods]
    tasks = [*experiment.tasks, OVERALL]
    columns = [
        (measure, task)
        for measure in experiment.measures
        for task in tasks
        if any(task == other for other, _ in measure.paper)
    ]
    if len(columns) <= WIDEST:
        if not columns:
            return ["The paper gives no numbers."]
        several = len({task for _, task in columns}) > 1 or columns[0][1] == OVERALL
        heads = [f"{m.name}, {task}" if several else m.name for m, task in columns]
        rows = [[name, *(_number(m, task, name) for m, task in columns)] for name in methods]
        return [_table((_head(columns[0][0]), *heads), [row for row in rows if any(row[1:])])]
    return [
        _table(
            (f"{measure.name}: {_head(measure)}", *methods),
            [
                [task, *(_number(measure, task, name) for name in methods)]
                for task in tasks
                if (measure, task) in columns
            ],
        )
        for measure in experiment.measures
        if measure.paper
    ]


def _head(measure: Measure) -> str:
    spreads = {each.kind for each in measure.paper.values() if each.spread is not None}
    return "the paper's numbers" + "".join(f", ± {kind}" for kind in sorted(spreads))


def _number(measure: Measure, task: str, method: str) -> str:
    found = measure.paper.get((task, method))
    return "" if found is None else str(found)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(markdown())
