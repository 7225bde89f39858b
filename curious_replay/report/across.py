"""Tables across environments and agents, and over the tasks of a suite."""

from collections.abc import Sequence

import numpy as np

from curious_replay.analysis import plots, returns, stats
from curious_replay.report import headline
from curious_replay.report import measures as m
from curious_replay.report.parts import POINTS, SEED, Figure, Section
from curious_replay.report.tables import Cell, Table

HIGHEST = 1000
"""The largest return of a control task."""


def across(parts: Sequence[Section], baseline: str) -> Section | None:
    """Return what several sections say together; None if there is only one."""
    told = [part for part in parts if part.measures]
    if len(told) < 2:
        return None
    made = Section("Across environments and agents", "across", tables=[_overview(told, baseline)])
    suites: dict[tuple[str, ...], list[Section]] = {}
    for part in told:
        suites.setdefault((part.key[0].partition("/")[0], *part.key[1:]), []).append(part)
    for key, members in suites.items():
        scores = {part.key[0]: _final_return(part) for part in members}
        tasks = {task: found.values for task, found in scores.items() if found is not None}
        if len(tasks) > 1:
            name = "-".join(["suite", *key]).replace("/", "-")
            made.tables.extend(_suite(", ".join(key), name, tasks, baseline))
            made.figures.append(_profile(", ".join(key), name, tasks))
    return made


def _overview(parts: Sequence[Section], baseline: str) -> Table:
    """Return a table of the first measure of each section, method by method.

    Agents are compared down the rows.
    """
    rows: list[list[Cell]] = []
    for part in sorted(parts, key=lambda part: part.key):
        measure = part.measures[0]
        tests = {test.first: test for test in headline.tests(measure, baseline)}
        for method, values in measure.values.items():
            whole = stats.summary(values)
            interval = stats.interval(np.array(values), seed=SEED)
            p = (
                tests[method].corrected
                if baseline in measure.values and method in tests
                else np.nan
            )
            rows.append([
                ", ".join(part.key), method, measure.name, whole.n, len(values), whole.mean,
                whole.sd, interval.value, interval.low, interval.high, p,
            ])  # fmt: skip
    caption = (
        "The first measure of each environment and agent. IQM: interquartile mean, with its 95 % "
        f"bootstrap interval. p: t-test against {baseline}, corrected within each row's section."
    )
    columns = (
        "environment, agent, scale", "method", "measure", "n", "runs", "mean", "s.d.", "IQM",
        "from", "to", "p",
    )  # fmt: skip
    return Table("overview", caption, columns, rows)


def _final_return(part: Section) -> m.Measured | None:
    return next((each for each in part.measures if each.name.startswith("return at")), None)


Tasks = dict[str, dict[str, list[float]]]
"""{task: {method: returns of its runs}}."""


def _suite(title: str, name: str, tasks: Tasks, baseline: str) -> list[Table]:
    """Return tables: returns by task (paper: Tables 3 and 11), and what they say together."""
    methods = list(dict.fromkeys(method for values in tasks.values() for method in values))
    columns = {each: [tasks[task].get(each, []) for task in tasks] for each in methods}
    rows: list[list[Cell]] = [
        [task, *(stats.summary(columns[each][i]).mean for each in methods)]
        for i, task in enumerate(tasks)
    ]
    both = {each: returns.mean_and_median(dict(zip(tasks, columns[each], strict=True)))
            for each in methods}  # fmt: skip
    rows.append(["mean", *(both[each][0] for each in methods)])
    rows.append(["median", *(both[each][1] for each in methods)])
    by_task = Table(
        name, f"{title}: return at the end of the shortest run, mean over runs; mean and median "
        "over tasks.", ("task", *methods), rows,
    )  # fmt: skip
    together: list[list[Cell]] = []
    for each in methods:
        iqm = stats.interval(columns[each], seed=SEED)
        better = (
            stats.probability_of_improvement(columns[each], columns[baseline], seed=SEED)
            if baseline in columns and each != baseline
            else stats.Interval(np.nan, np.nan, np.nan)
        )
        count = sum(len(stats.finite(values)) for values in columns[each])
        together.append([
            each, count, *both[each], iqm.value, iqm.low, iqm.high,
            better.value, better.low, better.high,
        ])  # fmt: skip
    summary = Table(
        f"{name}-summary",
        f"{title}, all tasks together: mean and median over tasks, interquartile mean and "
        f"P(better than {baseline}), each with its 95 % interval by stratified bootstrap.",
        ("method", "n", "mean", "median", "IQM", "from", "to", "P(better)", "P from", "P to"),
        together,
    )
    return [by_task, summary]


def _profile(title: str, name: str, tasks: Tasks) -> Figure:
    """Draw the share of runs above each return, over all tasks."""
    methods = list(dict.fromkeys(method for values in tasks.values() for method in values))
    pooled = np.concatenate([stats.finite(v) for values in tasks.values() for v in values.values()])
    levels = np.linspace(0, max(float(pooled.max(initial=0)), 1.0), POINTS)
    if pooled.max(initial=0) > HIGHEST / 4:
        levels = np.linspace(0, HIGHEST, POINTS)
    shares = {
        each: stats.performance_profile(
            [values.get(each, []) for values in tasks.values()], levels, seed=SEED
        )
        for each in methods
    }
    caption = f"{title}: share of runs, over all tasks, with a return above; 95 % intervals."
    return Figure(
        f"{name}-profile", plots.profiles(levels, shares, xlabel="return", caption=caption)
    )
