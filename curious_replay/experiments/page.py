"""From the run folders of an experiment to its page, its results.json and its figures."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from curious_replay.analysis import chart, forks, stats
from curious_replay.analysis.load import Run, Runs, load_runs
from curious_replay.experiments import design
from curious_replay.experiments.experiment import Experiment, Key
from curious_replay.experiments.jobs import Job
from curious_replay.experiments.ladder import Footing, climb
from curious_replay.experiments.measured import results
from curious_replay.experiments.results import Results
from curious_replay.report import headline, measures
from curious_replay.report.page import report
from curious_replay.report.parts import Figure, Section
from curious_replay.run.record.files import write_json
from curious_replay.run_folder import CONFIG

GROUPED = "Tests further down on this page take the runs for groups, and say less than pairs do."


def write(
    experiment: Experiment,
    scale: str,
    wanted: Sequence[Job],
    runs: Path,
    out: Path,
    command: str,
) -> Results:
    """Measure the complete runs among those wanted; write report.html, results.json, figures."""
    folders = {job.folder(runs): job for job in wanted}
    there = [folder for folder in folders if (folder / CONFIG).exists()]
    found = load_runs(there)
    complete = [run for run in found.runs if run.complete]
    cells: dict[Key, list[Run]] = {(job.task, job.method.name): [] for job in wanted}
    for run in complete:
        job = folders[run.folder]
        cells[job.task, job.method.name].append(run)
    trunks = _trunks([folders[run.folder] for run in complete], complete, runs)
    origin = _origin([*complete, *trunks])
    made = {"command": command, **origin, "wanted": len(wanted), "runs": len(complete)}
    footing = Footing(wanted[0].config, trunks or _baseline(experiment, cells))
    result = results(experiment, scale, cells, made, climb(experiment.ladder, footing))
    with chart.colors_of({job.method.name: job.method.replay for job in wanted}):
        section = Section(
            f"{experiment.where}: {experiment.title}",
            "experiment",
            verdicts=[
                *(claim.verdict for claim in result.claims),
                *_missing(len(wanted), len(complete)),
                *design.how(experiment),
                *([GROUPED] if experiment.paired else []),
                *_differs(experiment),
            ],
            tables=result.tables(),
            figures=bars(experiment, result),
        )
        page = report(
            Runs([*complete, *trunks], found.broken),
            baseline=experiment.claim.pairs[0][1],
            named={folder: job.method.name for folder, job in folders.items()},
            first=[section],
            title=f"{experiment.title} ({scale} scale)",
        )
    out.mkdir(parents=True, exist_ok=True)
    page.save(out / "report.html", out / "figures")
    write_json(out / "results.json", result.to_json())
    return result


def bars(experiment: Experiment, result: Results) -> list[Figure]:
    """Draw the first measure of an experiment on one task, as bars."""
    rows = result.measures[0].rows
    if len(experiment.tasks) > 1 or not any(len(stats.finite(row.numbers)) for row in rows):
        return []
    measure = measures.Measured(
        result.measures[0].name,
        {row.method: row.numbers for row in rows},
        result.measures[0].lower_is_better,
        never=experiment.measures[0].never,
    )
    tests = _tests(experiment, result, measure)
    return [headline.bars(f"{experiment.name}-bars", measure, tests)]


def _tests(
    experiment: Experiment, result: Results, measure: measures.Measured
) -> list[stats.Comparison]:
    """Return the comparisons behind the verdicts on the first measure, with their p-values."""
    if experiment.paired:
        return [
            stats.Comparison(one.first, one.second, math.nan, math.nan, _known(one.p),
                             _known(one.corrected))
            for claim, found in zip(experiment.claims, result.claims, strict=True)
            if claim.kind == "better" and found.measure == measure.name
            for one in found.compared
        ]  # fmt: skip
    claim = experiment.claim
    if experiment.registered_at(result.scale) or experiment.measure_of(claim).name != measure.name:
        return []  # the verdict is of some of these runs only, or of other numbers
    pairs = [pair for pair in claim.pairs if {*pair} <= measure.values.keys()]
    return stats.compare(measure.values, pairs, measure.worst)


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _trunks(jobs: Sequence[Job], branches: Sequence[Run], runs: Path) -> list[Run]:
    """Return the trunks that these runs began as, where they have not been deleted."""
    places = {job.trunk.folder(runs) for job in jobs if job.trunk is not None}
    found = load_runs(sorted(place for place in places if place.exists())).runs
    return [run for run in forks.only_trunks([*branches, *found]) if run in found]


def _baseline(experiment: Experiment, cells: Mapping[Key, Sequence[Run]]) -> list[Run]:
    """Return the runs of what the claim compares with."""
    name = experiment.claim.pairs[0][1]
    return [run for (_, method), runs in cells.items() if method == name for run in runs]


def _missing(wanted: int, complete: int) -> list[str]:
    if complete == wanted:
        return []
    return [f"{wanted - complete} of {wanted} runs are not complete and not counted here."]


def _differs(experiment: Experiment) -> list[str]:
    return [f"Not as in the paper: {experiment.differs}."] if experiment.differs else []


def _origin(runs: Iterable[Run]) -> dict[str, Any]:
    """Return which code made the runs, from start to end, and how long they computed."""
    runs = list(runs)
    starts = [start for run in runs for start in run.starts]
    commits = {str(start["commit"])[:10] for start in starts if start.get("commit")}
    cores = {str(start["cpus"]) for start in starts if start.get("cpus")}
    return {
        "commits": sorted(commits),
        "hours": round(sum(run.hours for run in runs), 3),
        "cores": sorted(cores),
    }
