"""The picture that tells the story: an agent's task turns round, and comes back.

    python results/story.py RUNS...    count it in the runs of `mini-mirror-back`, and draw
    python results/story.py            draw it anew from what was counted

story.json keeps the counts: for each method and seed the goals that were reached in every 100 steps
around the changes, and which part of what was replayed was from after the first change.
"""

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curious_replay.analysis.chart import FAINT, INK, STYLE, Chart, color
from curious_replay.analysis.load import Run, load_runs
from curious_replay.experiments.jobs import jobs
from curious_replay.experiments.miniatures import mirror
from curious_replay.run.record.files import read_json, write_json
from curious_replay.run.worlds.environments import make_env

COUNTED = Path(__file__).parent / "mini-mirror-mini" / "story.json"
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "miniature"
EVERY, BEFORE = 100, 500
EDGES = np.arange(mirror.T0 - BEFORE, mirror.END + 1, EVERY)
CHANGES = ((mirror.T0, "moves are mirrored"), (mirror.T1, "and back"))


def count(runs: list[Run]) -> dict[str, Any]:
    """Count goals and what was replayed in complete branches, by method."""
    names = {job.name: job.method.name for job in jobs(mirror.BACK, "mini")}
    told: dict[str, Any] = {method.name: _nothing() for method in mirror.BACK.methods}
    for run in sorted(runs, key=lambda run: run.seed):
        if run.parent is None or not run.complete or run.name not in names:
            continue
        cell = told[names[run.name]]
        played, metrics = run.played(), run.metrics
        goals = np.histogram(played["step"], EDGES, weights=played["return"])[0]
        later = (metrics["step"] > mirror.T0) & (metrics["step"] <= mirror.T1)
        cell["seeds"].append(run.seed)
        cell["goals"].append(goals.astype(int).tolist())
        cell["steps"] = metrics["step"][later].astype(int).tolist()
        share = metrics["replay/share_after_change"][later]
        cell["share"].append([round(float(value), 3) for value in share])
    return told


def _nothing() -> dict[str, Any]:
    return {"seeds": [], "goals": [], "steps": [], "share": []}


def draw(told: dict[str, Any]) -> Chart:
    """Draw the two worlds, the goals reached, and what was replayed."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 3.6), layout="constrained")
        parts: Any = figure.subfigures(1, 3, width_ratios=(0.5, 2, 1))
        for axes, phase in zip(parts[0].subplots(2, 1), ("straight", "mirrored"), strict=True):
            axes.imshow(_picture(phase))
            axes.set(xticks=[], yticks=[], title={"straight": "before", "mirrored": "after"}[phase])
        _goals(parts[1].subplots(), told)
        _share(parts[2].subplots(), told)
    seeds = len(next(iter(told.values()))["seeds"])
    return Chart(
        figure,
        f"Goals that DreamerV3 reaches while all moves are mirrored and once they are not, {seeds} "
        "seeds of each kind of replay (mean, and middle half), all from the same runs until then",
    )


def _goals(axes: Axes, told: dict[str, Any]) -> None:
    middle = (EDGES[:-1] + EDGES[1:]) / 2
    for method, each in told.items():
        lines = np.array(each["goals"])
        low, high = np.quantile(lines, (0.25, 0.75), axis=0)
        axes.fill_between(middle, low, high, color=color(method), alpha=0.15, linewidth=0)
        axes.plot(middle, lines.mean(0), color=color(method), label=method)
    for step, text in CHANGES:
        axes.axvline(step, color=FAINT, linestyle=":")
        axes.annotate(f" {text}", (step, 1.0), xycoords=("data", "axes fraction"), color=INK)
    axes.set(xlabel="steps", ylabel=f"goals in {EVERY} steps", ylim=(0, None))
    axes.legend(loc="upper left", bbox_to_anchor=(0.18, 0.92), labelcolor=INK)


def _share(axes: Axes, told: dict[str, Any]) -> None:
    for method, each in told.items():
        axes.plot(each["steps"], 100 * np.mean(each["share"], 0), color=color(method))
    axes.set(xlabel="steps until the old world is back", ylim=(0, 101))
    axes.set_title("% of replay that is new", loc="left")


def _picture(phase: str) -> np.ndarray:
    """What the agent sees in a phase."""
    config = jobs(mirror.BACK, "mini", 1)[0].config
    env: Any = make_env(config.choice.env, config.env)
    env.unwrapped.set_phase(phase)
    observation, _ = env.reset(seed=1)
    env.close()
    return np.asarray(observation["image"])


def main() -> None:
    """Count if runs are given, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("runs", type=Path, nargs="*", help="run folders, or folders of them")
    options = parser.parse_args()
    if options.runs:
        write_json(COUNTED, count(load_runs(options.runs).runs))
    draw(read_json(COUNTED)).save(PICTURE, ("png",))


if __name__ == "__main__":
    main()
