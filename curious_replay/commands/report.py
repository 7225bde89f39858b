"""`curious report RUNS...`: one page from run folders."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from curious_replay.analysis.load import Run, load_runs
from curious_replay.commands.outputs import check_file, check_folder
from curious_replay.errors import UsageError
from curious_replay.report.page import Report, compared, report

BASELINE = "uniform"
"""Compared with where nobody says otherwise and there is such a method."""


@dataclass(frozen=True)
class ReportCommand:
    """Compare runs on one page that can be read in any browser, without a network."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run folders, or folders that hold them."""
    out: Path = Path("report.html")
    """The page to write."""
    files: Path | None = None
    """Folder for figures (SVG, PDF) and tables (CSV, LaTeX); by default none are written."""
    by: tuple[str, ...] = ("replay",)
    """Settings in which the methods differ, as in: replay replay.alpha."""
    baseline: str | None = None
    """The method that the others are compared with; by default uniform, where there is one."""


def main(arguments: Sequence[str], console: Console) -> int:
    """Write the page; 1 if no run could be read."""
    command = tyro.cli(ReportCommand, args=list(arguments), prog="curious report")
    if not command.runs:
        raise UsageError("name run folders, or folders that hold them: curious report runs")
    check_file("--out", command.out)
    if command.files is not None:
        check_folder("--files", command.files)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        found = load_runs(command.runs)
        if found.runs:
            _check_settings(command.by, found.runs)
            _check_baseline(command.baseline, command.by, found.runs)
            baseline = command.baseline or BASELINE
            _save(report(found, by=command.by, baseline=baseline), command)
    for warning in caught:
        console.print(f"warning: {warning.message}", soft_wrap=True, highlight=False, markup=False)
    if not found.runs:
        console.print("no run could be read", highlight=False)
        return 1
    console.print(f"{len(found.runs)} runs: {command.out}", soft_wrap=True, highlight=False)
    return 0


def _check_settings(by: Sequence[str], runs: Sequence[Run]) -> None:
    """Refuse settings that no run has: all runs would be one method."""
    for path in by:
        # Nobody asked for the default, and old or foreign runs may be without it.
        if path not in ReportCommand.by and not any(run.has(path) for run in runs):
            raise UsageError(
                "--by must be settings as config.json has them, such as replay.alpha or "
                f"train.batch_size, or one of env, agent, replay, scale, seed; no run has {path!r}"
            )


def _check_baseline(baseline: str | None, by: Sequence[str], runs: Sequence[Run]) -> None:
    """Refuse a method that no run has: others would be compared with nothing."""
    known = dict.fromkeys(name for methods in compared(runs, by).values() for name in methods)
    if baseline is not None and baseline not in known:
        methods = ", ".join(map(repr, known))
        raise UsageError(f"--baseline must be one of the methods {methods}, got {baseline!r}")


def _save(made: Report, command: ReportCommand) -> None:
    try:
        made.save(command.out, command.files)
    except OSError as error:
        options = "--out" if command.files is None else "--out or --files"
        place = command.out if error.filename is None else error.filename
        raise UsageError(
            f"{place} cannot be written ({error.strerror}); choose another {options}"
        ) from error
