"""The demo as a moving picture: update by update, what both models predict beside the truth."""

from collections.abc import Iterator, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from PIL import Image

from curious_replay.analysis.chart import FAINT, INK, STYLE, color, line_style
from curious_replay.demo.branches import RULES, Trial
from curious_replay.demo.plan import Plan
from curious_replay.demo.verdict import MODELLED, left

Array = np.ndarray
PIXELS_PER_INCH = 100
TESTS_PER_SECOND = 5.0
COLORS = 128
HOLD = 12
"""The last picture is shown for as long as so many others."""


def video(trials: Sequence[Trial], plan: Plan) -> Array:
    """Return pictures uint8 [time, height, width, 3]: one for each test, the last one held.

    On white, so that it can be read on a page of any colour. To the left errors as far as they are
    known by then, to the right a column for each seed.
    """
    figure = Figure(figsize=(4.4 + 0.95 * len(trials), 3.2), dpi=PIXELS_PER_INCH, facecolor="white")
    canvas: Any = FigureCanvasAgg(figure)  # has no types
    with mpl.rc_context(STYLE):
        halves: Any = figure.subfigures(1, 2, width_ratios=(3.5, 0.9 + 0.95 * len(trials)))
        chart, models = halves
        lines = _draw_axes(chart.subplots(), trials, plan)
        chart.subplots_adjust(0.17, 0.17, 0.97, 0.86)
        places = models.subplots(1 + len(RULES), len(trials), squeeze=False)
        models.subplots_adjust(0.9 / (0.9 + 0.95 * len(trials)), 0.03, 0.99, 0.89, 0.06, 0.06)
        images = _draw_pictures(places, trials, plan)
        clock = chart.suptitle(" ", fontsize=11, fontweight="bold")
        shown = []
        for test in range(plan.updates // plan.test_every + 1):
            clock.set_text(f"{test * plan.test_every} updates since the ball appeared")
            for line, (updates, error) in zip(lines, _known(trials, plan, test), strict=True):
                line.set_data(updates, error)
            for name, trial, image in images:
                image.set_data(trial.branches[name].pictures[test])
            canvas.draw()
            shown.append(np.asarray(canvas.buffer_rgba())[..., :3].copy())
    return _with_few_colors(np.stack([*shown, *[shown[-1]] * (HOLD - 1)]))


def _with_few_colors(pictures: Array) -> Array:
    """Return the pictures in colours that all of them share: as a GIF a third of the size."""
    palette = Image.fromarray(np.concatenate(pictures[:, ::2, ::2])).quantize(COLORS)
    none = Image.Dither.NONE
    few = (Image.fromarray(each).quantize(palette=palette, dither=none) for each in pictures)
    return np.stack([np.asarray(each.convert("RGB")) for each in few])


def _known(trials: Sequence[Trial], plan: Plan, test: int) -> Iterator[tuple[Array, Array]]:
    """Yield updates and errors until a test, of the lines in their order: means, then seeds."""
    updates = plan.test_every * np.arange(test + 1)
    for name in RULES:
        errors = np.array([left(trial.branches[name])[: test + 1] for trial in trials])
        yield updates, errors.mean(0)
        yield from ((updates, error) for error in errors)


def _draw_axes(axes: Axes, trials: Sequence[Trial], plan: Plan) -> list[Line2D]:
    """Draw axes for all that will be known, and return the lines that grow in them."""
    highest = max(max(left(branch)) for trial in trials for branch in trial.branches.values())
    axes.set(xlim=(0, plan.updates), ylim=(0, 1.05 * highest))
    axes.set(xlabel="updates", ylabel="error on the ball's pixels")
    axes.axhline(MODELLED, color=FAINT, lw=0.8, ls=":")
    axes.annotate("ball modelled", (0, MODELLED), (4, -3), va="top", textcoords="offset points",
                  fontsize=9, color=INK)  # fmt: skip
    lines = []
    for name in RULES:
        lines += axes.plot([], [], color=color(name), linestyle=line_style(name), lw=2.6,
                           label=f"{name} replay (mean)")  # fmt: skip
        for _ in trials:
            lines += axes.plot([], [], color=color(name), alpha=0.4, lw=0.8)
    axes.legend(loc="lower left", fontsize=9, frameon=True, edgecolor="none", framealpha=0.8)
    return lines


def _draw_pictures(
    places: Array, trials: Sequence[Trial], plan: Plan
) -> list[tuple[str, Trial, AxesImage]]:
    """Draw the truth in the first row, below it a row for each model; return what will change."""
    changing = []
    for row, name in zip(places, ("truth", *RULES), strict=True):
        for place, trial in zip(row, trials, strict=True):
            image = place.imshow(trial.truth[0, plan.shown], interpolation="nearest")
            place.set_xticks([])
            place.set_yticks([])
            place.spines[:].set_visible(False)
            if name in RULES:
                changing.append((name, trial, image))
        ink = color(name) if name in RULES else INK
        row[0].set_ylabel(name, color=ink, fontweight="bold", rotation=0, ha="right", va="center")
    for place, trial in zip(places[0], trials, strict=True):
        place.set_title(f"seed {trial.seed}", fontsize=10)
    return changing
