"""What a page is put together from, and how runs are brought to a common grid."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from curious_replay.analysis import chart, returns
from curious_replay.analysis.load import Run
from curious_replay.analysis.stored import Stored
from curious_replay.report import measures as m
from curious_replay.report.tables import Table

SEED = 0
"""Of all resampling: the same runs give the same page."""
POINTS = 120
Rows = Callable[[Run], tuple[np.ndarray, np.ndarray]]
"""Frames and values of a run."""


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
    measures: Sequence[m.Measure] = ()
    stored: Mapping[str, tuple[Run, Stored]] = field(default_factory=dict)
    """Of each method, the first run whose replay can be read, and what it holds."""
    verdicts: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


def grid_of(methods: m.Methods) -> tuple[np.ndarray, int]:
    """Points [POINTS] along the frames of all runs, and a window for means, in frames."""
    last = max((run.frames_done for run in m.all_runs(methods)), default=0)
    return np.linspace(0, last, POINTS + 1)[1:].astype(np.int64), max(last // 25, 1)


def changes_of(methods: m.Methods) -> chart.Changes:
    """The changes that the runs went through, from one that tells them."""
    return next((run.changes for run in m.all_runs(methods) if len(run.changes) > 1), ())


def bands_of(
    methods: m.Methods, grid: np.ndarray, rows: Rows, before: float = 0.0
) -> dict[str, returns.Band]:
    """Bring rows of runs to a common grid: the last row up to each point, nothing after the end.

    `before` is the value ahead of the first row.
    """
    bands = {}
    for method, runs in methods.items():
        lines = []
        for frames, values in map(rows, runs):
            at = np.searchsorted(frames, grid, side="right")
            known = np.concatenate([[before], values])[at]
            over = grid > (frames[-1] if len(frames) else 0)
            lines.append(np.where(over, np.nan, known))
        bands[method] = returns.band(grid, lines)
    return bands
