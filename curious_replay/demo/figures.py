"""Pictures of the demo: how the error falls, how the ball comes in, and what is replayed."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from curious_replay.analysis.chart import FAINT, INK, STYLE, Chart, color, line_style, make_figure
from curious_replay.demo.branches import RULES, Trial
from curious_replay.demo.plan import Plan
from curious_replay.demo.verdict import MODELLED, left

PICTURES = 6
"""Predictions in a row."""


def story(trials: Sequence[Trial], plan: Plan) -> Chart:
    """Draw the error over updates, and below it one prediction as it gets better."""
    columns = np.unique(np.linspace(0, plan.updates // plan.test_every, PICTURES).round()).astype(
        int
    )
    figure = Figure(figsize=(7, 6.2), layout="constrained")
    with mpl.rc_context(STYLE):
        upper, lower = np.asarray(figure.subfigures(2, 1, height_ratios=(3.6, 2.6)))
        _draw_errors(upper.subplots(), trials, plan)
        rows = lower.subplots(len(RULES), len(columns) + 1, squeeze=False)
        for row, (name, branch) in zip(rows, trials[0].branches.items(), strict=True):
            pictures = [*(branch.pictures[i] for i in columns), trials[0].truth[0, plan.shown]]
            for place, picture in zip(row, pictures, strict=True):
                place.imshow(picture, interpolation="nearest")
                place.set_xticks([])
                place.set_yticks([])
                place.spines[:].set_visible(False)
            row[0].set_ylabel(name, color=color(name), fontweight="bold")
        for place, column in zip(rows[0], columns, strict=False):
            place.set_title(f"{column * plan.test_every}", fontsize=10)
        rows[0][-1].set_title("truth", fontsize=10)
        lower.suptitle("predicted after so many updates", fontsize=11)
    return Chart(
        figure,
        f"Above: error on the ball's pixels, 1 to {plan.ahead} steps ahead without seeing, "
        f"relative to when the ball appeared; thick lines are means of {len(trials)} seeds, thin "
        "ones seeds. "
        f"Below: what the models of seed {trials[0].seed} predict {plan.shown_ahead} steps ahead.",
    )


def shares(trials: Sequence[Trial], plan: Plan) -> Chart:
    """Draw how much of what is replayed is new."""
    figure, axes = make_figure(height=2.6)
    updates = plan.test_every * np.arange(1, plan.updates // plan.test_every + 1)
    with mpl.rc_context(STYLE):
        for name in RULES:
            every = np.array([trial.branches[name].shares for trial in trials])
            used = every[:, : len(updates) * plan.test_every]
            blocks = used.reshape(len(trials), len(updates), plan.test_every).mean((0, 2))
            axes.plot(updates, 100 * blocks, color=color(name), linestyle=line_style(name))
            axes.annotate(f"{name} replay", (updates[-1], 100 * blocks[-1]), (-4, 5), ha="right",
                          textcoords="offset points", color=color(name))  # fmt: skip
        new = plan.arenas * updates / plan.updates_per_step
        there = 100 * new / (plan.old_steps + new)
        axes.plot(updates, there, color=FAINT, lw=1, ls=":")
        axes.set(xlabel="updates since the ball appeared", ylabel="new steps in\nbatches (%)",
                 ylim=(0, 105), xlim=(0, None))  # fmt: skip
    return Chart(
        figure,
        "Share of the replayed steps that are from after the ball appeared, mean over seeds. "
        "Dotted: their share of all that is stored.",
    )


def _draw_errors(axes: Axes, trials: Sequence[Trial], plan: Plan) -> None:
    updates = plan.test_every * np.arange(plan.updates // plan.test_every + 1)
    for name in RULES:
        lines = [left(trial.branches[name]) for trial in trials]
        for line in lines:
            axes.plot(updates, line, color=color(name), alpha=0.35, lw=0.8)
        style = line_style(name)
        axes.plot(updates, np.mean(lines, 0), color=color(name), linestyle=style, lw=2.6,
                  label=f"{name} replay")  # fmt: skip
    axes.axhline(MODELLED, color=INK, lw=0.8, ls=":")
    axes.annotate("ball modelled", (0, MODELLED), (2, 3), textcoords="offset points", fontsize=9)
    axes.set(xlabel="updates since the ball appeared", ylabel="error on the ball's pixels",
             ylim=(0, None), xlim=(0, plan.updates))  # fmt: skip
    axes.legend(loc="upper right")
