"""Charts of what happens in the course of training."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from curious_replay.analysis import crafter, interaction, model_error, plots, returns
from curious_replay.analysis.load import Run
from curious_replay.report import measures as m
from curious_replay.report.parts import (
    TRUNK,
    Figure,
    Section,
    bands_along,
    bands_of,
    changes_of,
    grid_of,
)

TRACKED = (100_000, 200_000, 300_000)
"""Frames after the change for which the paper shows where agent and ball were (Figure 12)."""


def curves(name: str, methods: m.Methods) -> list[Figure]:
    """Draw learning curves: the return of training episodes."""
    if not m.has_returns(methods):
        return []
    grid, window = grid_of(methods)
    bands = bands_along(
        methods, grid, lambda run: returns.curve(*returns.returns_of(run), grid, window)
    )
    caption = (
        f"Return of training episodes, mean over {window:,} frames; bands are standard errors."
    )
    return _along_training(f"{name}-return", methods, bands, "return", caption)


def interactions(name: str, methods: m.Methods) -> list[Figure]:
    """Draw the contacts with the object so far."""
    if not m.has_interactions(methods):
        return []
    start, (grid, _) = m.first_change(methods), grid_of(methods)
    grid = grid[grid > start]

    def total(run: Run) -> tuple[np.ndarray, np.ndarray]:
        return interaction.cumulative(*interaction.counts_of(run), start=start)

    bands = bands_of(methods, grid, total, grid=grid - start)
    caption = "Points of contact with the object so far; bands are standard errors."
    label = "frames since the object appeared" if start else "frames"
    drawn = plots.curves(bands, ylabel="contacts", xlabel=label, caption=_told(caption, bands))
    return [Figure(f"{name}-contacts", drawn)]


def pixels(name: str, methods: m.Methods) -> list[Figure]:
    """Draw the pixels of the object that replay holds.

    They are from intervals of training, as exact as these are short.
    """
    begun = (next((run for run in runs if run.metrics.rows), None) for runs in methods.values())
    names = (name for run in begun if run for name in run.metrics)  # runs of a method log alike
    what = next((name for name in names if name.endswith("_pixels")), None)
    if what is None:
        return []

    def rows(run: Run) -> tuple[np.ndarray, np.ndarray]:
        table, clear = run.metrics, int(run.setting("replay.clear_at_change") or 0)
        capacity = int(run.setting("replay.capacity") or 0) or None
        cleared = run.changes[clear][0] if 0 < clear < len(run.changes) else None
        if cleared is not None:
            cleared = int(np.interp(cleared, table["frame"], table["step"]))
        held = interaction.pixels_by_interval(table["step"], table[what], capacity, cleared)
        return table["frame"], held

    bands = bands_of(methods, grid_of(methods)[0], rows)
    caption = "Pixels of the object in all pictures that replay holds; bands are standard errors."
    return _along_training(f"{name}-pixels", methods, bands, "object pixels in replay", caption)


SHARES = {
    "share_after_change": "Share of what is replayed that was stored after the last change.",
    "novelty_share": "Share of the draws that goes by novelty: that of the count term.",
    "distinct": "Share of distinct steps in a batch; the others are copies of these.",
}


def shares(name: str, methods: m.Methods) -> list[Figure]:
    """Draw how much of what is replayed is new, is drawn because it is, and is not there twice."""
    made = []
    for what, caption in SHARES.items():
        column = f"replay/{what}"
        if not any(column in run.metrics for run in m.all_runs(methods)):
            continue

        def rows(run: Run, column: str = column) -> tuple[np.ndarray, np.ndarray]:
            return run.metrics["frame"], run.metrics[column]

        bands = bands_of(methods, grid_of(methods)[0], rows, before=np.nan)
        file = f"{name}-{what.replace('_', '-')}"
        made += _along_training(file, methods, bands, "share of batches", caption)
    return made


def errors(name: str, methods: m.Methods) -> list[Figure]:
    """Draw the model error on test scenes."""
    if not m.has_probes(methods):
        return []
    probed = [model_error.errors_of(run)[0] for run in m.all_runs(methods)]
    grid = np.unique(np.concatenate(probed))

    def line(run: Run) -> np.ndarray:
        frames, errors = model_error.errors_of(run)
        row = np.full(len(grid), np.nan)
        row[np.searchsorted(grid, frames)] = errors
        return row

    bands = bands_along(methods, grid, line)
    caption = "Error of the world model on the object's pixels in test scenes."
    return _along_training(f"{name}-model-error", methods, bands, "model error", caption)


def spectrum(name: str, methods: m.Methods) -> list[Figure]:
    """Draw Crafter's ability spectrum."""
    if not m.is_crafter(methods):
        return []
    budget = crafter.budget_of(m.all_runs(methods))
    rates = {
        method: np.array([crafter.success_rates(*crafter.episodes_of(run), budget) for run in runs])
        for method, runs in methods.items()
    }
    return [Figure(f"{name}-spectrum", plots.spectrum(rates))]


def trajectories(name: str, part: Section) -> list[Figure]:
    """Draw the places of agent and object after the change.

    They are shown for as long as the paper shows or there is.
    """
    start, panels = m.first_change(part.methods), {}
    for method, (_, steps) in part.stored.items():
        agent = interaction.position_of(steps, "agent")
        ball = interaction.object_name(steps)
        places = None if ball is None else interaction.position_of(steps, ball)
        if agent is None or ball is None:
            continue
        last = int(steps.frame.max()) - start
        for length in [each for each in TRACKED if each <= last] or [last]:
            inside = partial(interaction.trajectory, steps.frame, start=start, length=length)
            panels[f"{method}, {length:,} frames"] = (
                inside(agent), None if places is None else inside(places)
            )  # fmt: skip
    caption = (
        "Where the agent (grey) and the object (magenta) were in the frames after it appeared, "
        "first seed."
    )
    drawn = plots.trajectories(panels, caption=caption) if panels else None
    return [Figure(f"{name}-places", drawn)] if drawn else []


def _along_training(
    name: str, methods: m.Methods, bands: Mapping[str, returns.Band], ylabel: str, caption: str
) -> list[Figure]:
    """Draw curves with the changes of the world marked."""
    marked, told = changes_of(methods), _told(caption, bands)
    return [Figure(name, plots.curves(bands, ylabel=ylabel, changes=marked, caption=told))]


def _told(caption: str, bands: Mapping[str, returns.Band]) -> str:
    """Return the caption, with what there is to say of forks."""
    forked = f" A fork is drawn from its fork on; {TRUNK}, each trunk counts once."
    return caption + (forked if TRUNK in bands else "")
