"""The paper's Figure 7 in miniature: an object that was always there beside one that appears.

    python results/figure7.py

It draws what results.json of the two experiments say, for each pair of them that was run, and puts
the picture with the results of the first. Each dot is a run; those at the top did not get there in
the time that they had.
"""

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curious_replay.analysis.chart import FAINT, INK, STYLE, Chart, color
from curious_replay.experiments.miniatures import rooms
from curious_replay.experiments.miniatures.shared import arms
from curious_replay.run.record.files import read_json

HERE = Path(__file__).parent
PAIRS = (("mini-object-same", "mini-object"), ("mini-appears-same", "mini-appears"))
"""Experiments whose object was always there, and those in which it appears."""
METHODS = (arms.UNIFORM, arms.CURIOUS)
NAME = "figure-7"


class Times(NamedTuple):
    """Steps to the fifth contact of the runs of a method, NaN: never."""

    world: str
    method: str
    values: np.ndarray

    @property
    def median(self) -> float:
        """The median run's, of which "never" is more than any number."""
        return float(np.median(np.where(np.isnan(self.values), np.inf, self.values)))


def times(unchanging: dict[str, Any], changing: dict[str, Any]) -> list[Times]:
    """Return the times of both methods in both worlds, from two results.json."""
    found = []
    for world, results in (("always there", unchanging), ("appears", changing)):
        (measure,) = [one for one in results["measures"] if one["name"] == rooms.SOONER.name]
        rows = {row["method"]: row["values"] for row in measure["rows"]}
        found += [Times(world, name, np.array(rows[name], float)) for name in METHODS]
    return found


def draw(found: list[Times]) -> Chart:
    """Draw a dot for each run and a line for each median, methods side by side in each world."""
    values = np.concatenate([each.values for each in found])
    got_there = values[~np.isnan(values)]
    least, most = (got_there.min(), got_there.max()) if len(got_there) else (1.0, 1.0)
    never = 1.6 * most
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.5, 3.6), layout="constrained")
        axes: Axes = figure.subplots()
        for place, each in enumerate(found):
            x = place + 0.4 * (place // len(METHODS))
            beside = x + np.linspace(-0.22, 0.22, len(each.values))
            heights = np.where(np.isnan(each.values), never, each.values)
            axes.scatter(beside, heights, s=22, color=color(each.method), zorder=3)
            middle = min(each.median, never)
            axes.hlines(middle, x - 0.32, x + 0.32, color=color(each.method))
        axes.axhline(1.25 * most, color=FAINT, linestyle=":")
        axes.set(yscale="log", ylabel="steps to the fifth contact", ylim=(0.6 * least, 1.3 * never))
        ticks = [tick for tick in (10, 30, 100, 300, 1000, 3000) if 0.6 * least < tick < 1.2 * most]
        axes.set_yticks([*ticks, never], [*(f"{tick:,}" for tick in ticks), "never"])
        axes.minorticks_off()
        places = [place + 0.4 * (place // len(METHODS)) for place in range(len(found))]
        axes.set_xticks(places, [each.method for each in found])
        for world in range(2):
            middle = float(np.mean(places[2 * world : 2 * world + 2]))
            title = found[2 * world].world
            axes.annotate(
                title, (middle, 1.02), xycoords=("data", "axes fraction"), ha="center", color=INK
            )
    return Chart(
        figure,
        "Steps until an exploring agent has touched an object five times, where it was there from "
        "the first step and where it appears in a world that the agent knows; lines are medians, "
        "dots at the top are runs that did not get there in their time",
    )


def main() -> None:
    """Draw each pair that was run."""
    for unchanging, changing in PAIRS:
        folders = [HERE / f"{name}-mini" for name in (unchanging, changing)]
        if all((folder / "results.json").exists() for folder in folders):
            results = [read_json(folder / "results.json") for folder in folders]
            draw(times(*results)).save(folders[0] / NAME, ("svg",))


if __name__ == "__main__":
    main()
