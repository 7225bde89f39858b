"""From the run folders of an experiment to its page, its results.json and its figures."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from curious_replay.analysis import stats
from curious_replay.analysis.load import Run, Runs, load_runs
from curious_replay.experiments.experiment import Experiment, Job, Key
from curious_replay.experiments.results import Results, results
from curious_replay.report import headline, measures
from curious_replay.report.page import report
from curious_replay.report.parts import Figure, Section
from curious_replay.run.files import write_json


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
    there = [folder for folder in folders if (folder / "config.json").exists()]
    found = load_runs(there)
    complete = [run for run in found.runs if run.complete]
    cells: dict[Key, list[Run]] = {(job.task, job.method.name): [] for job in wanted}
    for run in complete:
        job = folders[run.folder]
        cells[job.task, job.method.name].append(run)
    made = {"command": command, **_origin(complete), "wanted": len(wanted), "runs": len(complete)}
    result = results(experiment, scale, cells, made)
    section = Section(
        f"{experiment.where}: {experiment.title}",
        "experiment",
        verdicts=[result.verdict, *_missing(len(wanted), len(complete)), *_differs(experiment)],
        tables=result.tables(),
        figures=bars(experiment, result),
    )
    page = report(
        Runs(complete, found.broken),
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
    """The first measure of an experiment on one task, as bars."""
    rows = result.measures[0].rows
    if len(experiment.tasks) > 1 or not any(len(stats.finite(row.numbers)) for row in rows):
        return []
    measure = measures.Measure(
        result.measures[0].name,
        {row.method: row.numbers for row in rows},
        result.measures[0].lower_is_better,
        never=experiment.measures[0].never,
    )
    # The comparisons of the verdict, with its p-values.
    pairs = [pair for pair in experiment.claim.pairs if {*pair} <= measure.values.keys()]
    tests = stats.compare(measure.values, pairs, measure.worst)
    return [headline.bars(f"{experiment.name}-bars", measure, tests)]


def _missing(wanted: int, complete: int) -> list[str]:
    if complete == wanted:
        return []
    return [f"{wanted - complete} of {wanted} runs are not complete and not counted here."]


def _differs(experiment: Experiment) -> list[str]:
    return [f"Not as in the paper: {experiment.differs}."] if experiment.differs else []


def _origin(runs: Iterable[Run]) -> dict[str, Any]:
    """Which code made the runs, from their start to their end, and how long they computed."""
    runs = list(runs)
    starts = [start for run in runs for start in run.starts]
    commits = {str(start["commit"])[:10] for start in starts if start.get("commit")}
    cores = {str(start["cpus"]) for start in starts if start.get("cpus")}
    return {
        "commits": sorted(commits),
        "hours": round(sum(run.hours for run in runs), 3),
        "cores": sorted(cores),
    }
