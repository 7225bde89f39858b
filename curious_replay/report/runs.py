"""Every run: the table of all folders, and all measures of each run, for programs to read."""

from collections.abc import Iterator, Sequence

from curious_replay.analysis import forks
from curious_replay.analysis.load import Run, Runs
from curious_replay.report.parts import Section
from curious_replay.report.tables import Cell, Table, csv_of

CHOSEN = ("env", "agent", "replay", "scale")
TIDY = ("run", *CHOSEN, "seed", "method", "measure", "value")


def folders(found: Runs, trunks: Sequence[Run]) -> Table:
    """Return a table of all folders that were asked for, and what is the matter with each."""
    rows: list[list[Cell]] = [
        [
            run.name, *(str(run.setting(each)) for each in CHOSEN),
            run.seed, run.steps_done, run.setting("train.steps"),
            "trunk of others" if run in trunks else _state(run),
            str(run.meta.get("commit") or "")[:10], forks.origin(run),
        ]
        for run in found.runs
    ]  # fmt: skip
    for folder, reason in found.broken.items():
        rows.append([folder.name, *[None] * 7, f"cannot be read: {reason}", "", ""])
    names = (
        "folder", "env", "agent", "replay", "scale", "seed", "steps", "of", "state", "commit",
        "fork of",
    )  # fmt: skip
    caption = "All runs that were asked for."
    if not any(row[-1] for row in rows):
        return Table("folders", caption, names[:-1], [row[:-1] for row in rows])
    caption += (
        " What a fork recorded before its fork is its parent's; a run that ended where forks of it "
        "begin, their trunk, is no run of a method."
    )
    return Table("folders", caption, names, rows)


def _state(run: Run) -> str:
    return "finished" if run.finished else "unfinished" if run.steps_done else "not begun"


def tidy(every: Sequence[Run], sections: Sequence[Section]) -> str:
    """Return CSV with one row for each run and measure, numbers exact, empty where there is none.

    Every run has its steps, frames and hours, whatever else there is to measure.
    """
    methods = {
        id(run): method
        for each in sections
        for method, its_runs in each.methods.items()
        for run in its_runs
    }
    rows: list[list[Cell]] = []
    for run, measure, value in [*_counted(every), *_measured(sections)]:
        chosen = (str(run.setting(each)) for each in CHOSEN)
        rows.append([str(run.folder), *chosen, run.seed, methods.get(id(run)), measure, value])
    return csv_of(TIDY, rows, exact=True)


def _counted(every: Sequence[Run]) -> Iterator[tuple[Run, str, float]]:
    for run in every:
        yield run, "steps", run.steps_done
        yield run, "frames", run.frames_done
        yield run, "hours", run.hours


def _measured(sections: Sequence[Section]) -> Iterator[tuple[Run, str, float]]:
    for section in sections:
        for measure in section.measures:
            for method, values in measure.values.items():
                for run, value in zip(section.methods[method], values, strict=True):
                    yield run, measure.name, value
