"""Curves of every run, also where nothing can be compared: return, losses, what the world logs."""

from collections.abc import Iterator, Sequence

import numpy as np

from curious_replay.analysis import plots
from curious_replay.analysis.lines import Array
from curious_replay.analysis.load import Run
from curious_replay.report import measures as m
from curious_replay.report.parts import POINTS, Figure, changes_of

RETURNS = {"train": "return", "eval": "return in evaluation"}
"""Modes of episodes, and what their curve is called."""
WIDE = 50
"""A loss whose largest value is so many times the smallest has a logarithmic axis."""
Curve = tuple[str, Array, Array]
"""Method, frames and values of one run."""


def each_run(name: str, methods: m.Methods) -> list[Figure]:
    """Draw a small chart of each thing that runs record, with a line for each of them."""
    found: dict[str, list[Curve]] = {}
    for method, its_runs in methods.items():
        wanted = _columns(its_runs)
        for run in its_runs:  # one after the other: only one file is kept in memory
            for title, frames, values in _curves(run, wanted):
                curve = _thinned(frames, values)
                if len(curve[0]):
                    found.setdefault(title, []).append((method, *curve))
    marked = changes_of(methods)
    return [
        Figure(
            f"{name}-runs-{title.replace('/', '-').replace(' ', '-')}",
            plots.runs(lines, title=title, changes=marked, logarithmic=_is_wide(title, lines)),
        )
        for title, lines in found.items()
    ]


def _columns(its_runs: Sequence[Run]) -> list[str]:
    """Return losses and logs of a method; its runs record alike, so one that has begun tells."""
    begun = next((run for run in its_runs if run.metrics.rows), None)
    names = [] if begun is None else list(begun.metrics)
    losses = [name for name in names if "loss" in name]
    return losses + [name for name in names if name.startswith("log/")]


def _curves(run: Run, wanted: list[str]) -> Iterator[tuple[str, Array, Array]]:
    for mode, title in RETURNS.items():
        played = run.played(mode)
        yield title, played["frame"], played["return"]
    for name in wanted:
        yield name, run.metrics["frame"], run.metrics[name]


def _thinned(frames: Array, values: Array) -> tuple[Array, Array]:
    """Return at most `POINTS` points: means of equally many frames, as later rows may be denser."""
    known = np.isfinite(frames) & np.isfinite(values)
    frames, values = frames[known].astype(float), values[known].astype(float)
    if len(frames) <= POINTS:
        return frames, values
    edges = np.linspace(frames.min(), frames.max(), POINTS + 1)[1:-1]
    part = np.digitize(frames, edges)
    count = np.bincount(part, minlength=POINTS)
    there = count > 0
    means = (np.bincount(part, each, POINTS)[there] / count[there] for each in (frames, values))
    x, y = means
    return x, y


def _is_wide(title: str, lines: list[Curve]) -> bool:
    low = min(values.min() for *_, values in lines)
    high = max(values.max() for *_, values in lines)
    return "loss" in title and low > 0 and high / low > WIDE
