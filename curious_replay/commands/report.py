"""`curious report RUNS...`: one page from run folders."""

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from curious_replay.analysis.load import Run, Runs, load_runs
from curious_replay.commands.outputs import check_file, check_folder
from curious_replay.errors import UsageError
from curious_replay.report.page import compared, report

LONGEST = 86_400
"""Seconds, a day."""
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
    watch: bool = False
    """Write the page again and again while runs go on; a browser that shows it keeps up."""
    every: float = 30.0
    """Seconds between two pages of --watch."""
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
    if not 1 <= command.every <= LONGEST:
        raise UsageError(f"--every must be from 1 to {LONGEST} seconds, got {command.every:g}")
    if command.watch:
        return _watch(command, console)
    with _warned(console):
        found = _load(command)
        if found.runs:
            _write(command, found)
    if not found.runs:
        _say(console, "no run could be read")
        return 1
    _say(console, f"{len(found.runs)} runs: {command.out}")
    return 0


def _watch(command: ReportCommand, console: Console) -> int:
    """Write the page whenever runs have come further, until all are finished or Ctrl-C."""
    seen: object = None
    _say(console, "Ctrl-C ends this; runs go on.")
    while True:
        with _warned(console, loud=seen is None):
            found = _load(command)
            state = [(run.folder, run.steps_done, run.frames_done) for run in found.runs]
            going_on = sum(not run.finished for run in found.runs)
            is_last = bool(found.runs) and not going_on
            is_new = bool(found.runs) and state != seen
            if is_new:
                _write(command, found, None if is_last else command.every)
        if is_new:
            done = sum(run.steps_done for run in found.runs)
            _say(console, f"{len(found.runs)} runs, {going_on} not finished, {done:,} steps: "
                 f"{command.out}")  # fmt: skip
        elif seen is None:
            _say(console, "no run could be read yet")
        if is_last:
            return 0
        seen = state
        try:
            time.sleep(command.every)
        except KeyboardInterrupt:
            with _warned(console, loud=False):
                if found.runs:  # a page that browsers need not load again
                    _write(command, found)
            return 0


@contextmanager
def _warned(console: Console, loud: bool = True) -> Iterator[None]:
    """Say afterwards what could not be read, if `loud`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught if loud else ():
        _say(console, f"warning: {warning.message}")


def _load(command: ReportCommand) -> Runs:
    found = load_runs(command.runs)
    if found.runs:
        _check_settings(command.by, found.runs)
        _check_baseline(command.baseline, command.by, found.runs)
    return found


def _write(command: ReportCommand, found: Runs, renew: float | None = None) -> None:
    made = report(found, by=command.by, baseline=command.baseline or BASELINE, renew=renew)
    try:
        made.save(command.out, command.files)
    except OSError as error:
        options = "--out" if command.files is None else "--out or --files"
        place = command.out if error.filename is None else error.filename
        raise UsageError(
            f"{place} cannot be written ({error.strerror}); choose another {options}"
        ) from error


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, highlight=False, markup=False)


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
