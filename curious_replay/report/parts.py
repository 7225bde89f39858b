"""What a page is put together from, and how runs are brought to a common grid."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from curious_replay.analysis import chart, forks, returns
from curious_replay.analysis.load import Run
from curious_replay.analysis.stored import Stored
from curious_replay.report import measures as m
from curious_replay.report.tables import Table

SEED = 0
"""Of all resampling: the same runs give the same page."""
POINTS = 120
TRUNK = chart.TRUNK
Rows = Callable[[Run], tuple[np.ndarray, np.ndarray]]
"""Frames and values of a run."""
Line = Callable[[Run], np.ndarray]
"""Values of a run at given frames."""


@dataclass(frozen=True)
class Figure:
    """A chart and the name of its file."""

    name: str
    chart: chart.Chart


@dataclass(frozen=True)
class Section:
    """One environment and agent, or what is said of several together."""

    title: str
    name: str
    key: tuple[str, ...] = ()
    """Environment, agent and scale."""
    methods: m.Methods = field(default_factory=dict)
    measures: Sequence[m.Measured] = ()
    stored: Mapping[str, tuple[Run, Stored]] = field(default_factory=dict)
    """Of each method, the first run whose replay can be read, and what it holds."""
    verdicts: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    small: list[Figure] = field(default_factory=list)
    """Charts of every run, to be shown side by side."""


def grid_of(methods: m.Methods) -> tuple[np.ndarray, int]:
    """Return points [POINTS] along the frames of all runs, and a window for means, in frames."""
    last = max((run.frames_done for run in m.all_runs(methods)), default=0)
    return np.linspace(0, last, POINTS + 1)[1:].astype(np.int64), max(last // 25, 1)


def changes_of(methods: m.Methods) -> chart.ChangeMarks:
    """Return the changes that the runs went through, from one that tells them."""
    return next((run.changes for run in m.all_runs(methods) if len(run.changes) > 1), ())


def bands_along(
    methods: m.Methods, frames: np.ndarray, line: Line, grid: np.ndarray | None = None
) -> dict[str, returns.Band]:
    """Return each method's mean and standard error at each of `frames`, drawn over `grid` if given.

    Runs that share a trunk are one run before their fork. A method's curve begins where its runs
    are themselves, and what is before is a line of its own, with each trunk once.
    """
    runs = list(m.all_runs(methods))
    begin = {id(part.run): part.begin for part in forks.parts(runs)}
    over = frames if grid is None else grid
    bands = {}
    for method, its_runs in methods.items():
        own = [(frames > begin[id(run)]) | (begin[id(run)] == 0) for run in its_runs]
        lines = [np.where(at, line(run), np.nan) for at, run in zip(own, its_runs, strict=True)]
        bands[method] = returns.band(over, lines)
    before = [np.where(frames <= part.begin, line(part.run), np.nan) for part in forks.trunks(runs)]
    if np.isfinite(before).any():
        bands[TRUNK] = returns.band(over, before)
    return bands


def bands_of(
    methods: m.Methods,
    frames: np.ndarray,
    rows: Rows,
    before: float = 0.0,
    grid: np.ndarray | None = None,
) -> dict[str, returns.Band]:
    """Return the bands of `bands_along` from rows of runs.

    They have the last row up to each point, nothing after the end. `before` is the value ahead of
    the first row. Where there is a `grid`, frames of rows count as its points do.
    """
    points = frames if grid is None else grid

    def line(run: Run) -> np.ndarray:
        at, values = rows(run)
        known = np.concatenate([[before], values])[np.searchsorted(at, points, side="right")]
        return np.where(points > (at[-1] if len(at) else 0), np.nan, known)

    return bands_along(methods, frames, line, grid)
