"""The picture of an object that appears: where the explorer was, and how often it touched it.

    python results/newcomer.py RUNS...    count it in the runs of `mini-appears`, and draw
    python results/newcomer.py            draw it anew from what was counted

newcomer.json keeps the counts: for each method and seed the steps spent in each cell while the
object was there, and the contacts with it after every 50 steps; and for the trunks the steps in
each cell in as long a time before.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curious_replay.analysis import interaction, stored
from curious_replay.analysis.chart import INK, STYLE, Chart, color
from curious_replay.analysis.load import Run, load_runs
from curious_replay.experiments.jobs import jobs, with_trunks
from curious_replay.experiments.miniatures import appears
from curious_replay.experiments.miniatures.shared import arms
from curious_replay.run.record.files import read_json, write_json

COUNTED = Path(__file__).parent / "mini-appears-mini" / "newcomer.json"
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "newcomer"
EVERY = 50
BUDGET = appears.T1 - appears.T0
STEPS = np.arange(EVERY, BUDGET + 1, EVERY)
BEFORE = "before"
SHOWN = (BEFORE, arms.UNIFORM, arms.CURIOUS)
"""Of the maps."""


def count(runs: Sequence[Run]) -> dict[str, Any]:
    """Count steps in cells and contacts in complete runs, by method, the trunks as "before"."""
    branches = jobs(appears.APPEARS, "mini")
    names = {job.name: job.method.name for job in branches}
    names |= {job.name: BEFORE for job in with_trunks(branches) if job.name not in names}
    told: dict[str, Any] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        found = stored.newest(run) if run.complete and run.name in names else None
        if found is None:
            continue
        name = names[run.name]
        begin = appears.T0 - BUDGET if name == BEFORE else appears.T0
        cell = told.setdefault(name, {"seeds": [], "cells": [], "contacts": []})
        cell["seeds"].append(run.seed)
        cell["cells"].append(_cells(found, begin).tolist())
        frames, counts = interaction.counts_of(run, "contacts", found)
        since = [int(counts[(frames > begin) & (frames <= begin + n)].sum()) for n in STEPS]
        cell["contacts"].append(since)
    return told


def _cells(found: stored.Stored, begin: int) -> np.ndarray:
    """Return the steps in each cell in the time after a step, [rows, columns], walls included."""
    settings = appears.SHARED["settings"]["mini"]
    room, rooms = settings["env.room"], settings["env.rooms"]
    places = interaction.position_of(found, "agent")
    assert places is not None
    then = places[(found.frame > begin) & (found.frame <= begin + BUDGET)].astype(int)
    counts = np.zeros((room + 2, rooms * (room + 1) + 1), int)
    np.add.at(counts, tuple(then.T), 1)
    return counts


def draw(told: dict[str, Any]) -> Chart:
    """Draw maps of where the explorer was, and the contacts since the object appeared."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 4.2), layout="constrained")
        parts: Any = figure.subfigures(1, 2, width_ratios=(1, 1.15))
        left, right = parts
        for axes, name in zip(left.subplots(len(SHOWN), 1), SHOWN, strict=True):
            _map(axes, name, np.array(told[name]["cells"]))
        order = [method.name for method in appears.APPEARS.methods if method.name in told]
        _contacts(right.subplots(), {name: told[name] for name in order})
    seeds = max(len(each["seeds"]) for each in told.values())
    return Chart(
        figure,
        f"Where an explorer was in {BUDGET:,} steps before an object appeared in the last of three "
        "rooms, and in as many after it, and how often it touched it, with each kind of replay "
        f"({seeds} seeds, all kinds from the same runs)",
    )


def _map(axes: Axes, name: str, cells: np.ndarray) -> None:
    """Draw how often the explorer was in each cell, on average of the seeds."""
    mean = cells.mean(0)
    inside = np.zeros(mean.shape, bool)
    inside[1:-1, 1:-1] = True
    settings = appears.SHARED["settings"]["mini"]
    room = settings["env.room"]
    walls = np.arange(0, mean.shape[1], room + 1)
    inside[:, walls] = False
    inside[1 + room // 2, walls[1:-1]] = True  # doors
    axes.imshow(np.where(inside, np.sqrt(mean), np.nan), cmap="magma", vmin=0, vmax=6)
    axes.set(xticks=[], yticks=[])
    axes.set_facecolor("0.85")
    axes.spines[:].set_visible(False)
    if name != BEFORE:
        place = (mean.shape[1] - 2 - room // 2, 1 + room // 2)
        axes.plot(*place, marker="s", markersize=9, markerfacecolor="none", color="magenta")
    title = (
        "before the object appears (brighter: more steps)"
        if name == BEFORE
        else f"after it, {name} replay"
    )
    axes.set_title(title, loc="left", color=INK if name == BEFORE else color(name))


def _contacts(axes: Axes, told: dict[str, Any]) -> None:
    for name, each in told.items():
        lines = np.array(each["contacts"])
        low, high = np.quantile(lines, (0.25, 0.75), axis=0)
        axes.fill_between(STEPS, low, high, color=color(name), alpha=0.12, linewidth=0)
        axes.plot(STEPS, np.median(lines, 0), color=color(name), label=name)
    axes.set(xlabel="steps since the object appeared", ylim=(0, None))
    axes.set_title("contacts with it (median and middle half of seeds)", loc="left")
    axes.legend(loc="upper left", labelcolor=INK)


def main() -> None:
    """Count if runs are given, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("runs", type=Path, nargs="*", help="run folders, or folders of them")
    options = parser.parse_args()
    if options.runs:
        told = count(load_runs(options.runs).runs)
        missing = [name for name in SHOWN if name not in told]
        if missing:
            parser.error(f"among these runs of mini-appears none is complete: {', '.join(missing)}")
        write_json(COUNTED, told)
    draw(read_json(COUNTED)).save(PICTURE, ("png",))


if __name__ == "__main__":
    main()
