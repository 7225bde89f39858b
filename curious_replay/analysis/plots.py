"""The figures of the paper, from arrays: curves, bars, spectrum, trajectories, the buffer."""

from collections.abc import Mapping, Sequence
from textwrap import fill

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from curious_replay.analysis.chart import (
    COLORS,
    FAINT,
    INK,
    STYLE,
    ChangeMarks,
    Chart,
    color,
    line_style,
    make_figure,
    mark,
    say_nothing,
    short,
)
from curious_replay.analysis.crafter import HARD, SPECTRUM
from curious_replay.analysis.lines import Array
from curious_replay.analysis.replay_probe import Profile
from curious_replay.analysis.returns import Band
from curious_replay.analysis.stats import Comparison, finite, summary


def curves(
    bands: Mapping[str, Band],
    *,
    ylabel: str,
    xlabel: str = "frames",
    changes: ChangeMarks = (),
    caption: str = "",
) -> Chart:
    """Draw the mean and standard error of each method along the frames of training."""
    figure, axes = make_figure()
    with mpl.rc_context(STYLE):
        for method, band in bands.items():
            known = np.isfinite(band.mean)
            x, mean = band.grid[known], band.mean[known]
            sem = np.nan_to_num(band.sem[known])
            runs = int(band.n.max(initial=0))
            label = f"{method} ({runs} run{'s' * (runs != 1)})"
            axes.plot(x, mean, color=color(method), linestyle=line_style(method), label=label)
            axes.fill_between(x, mean - sem, mean + sem, color=color(method), alpha=0.2, lw=0)
        mark(axes, changes)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.xaxis.set_major_formatter(FuncFormatter(short))
        if bands:
            axes.legend(loc="best")
        else:
            say_nothing(axes)
    return Chart(figure, caption or f"{ylabel.capitalize()}: mean and standard error of the runs.")


def runs(
    lines: Sequence[tuple[str, Array, Array]],
    *,
    title: str,
    changes: ChangeMarks = (),
    logarithmic: bool = False,
) -> Chart:
    """Draw every run in a small chart: its method, frames [N] and values [N]."""
    figure, axes = make_figure(width=3.4, height=2.3)
    with mpl.rc_context(STYLE):
        for method, x, y in lines:
            point = "." if len(x) == 1 else ""  # no line leads from it
            style = {"color": color(method), "linestyle": line_style(method), "marker": point}
            axes.plot(x, y, lw=1.2, alpha=0.8, **style)
        mark(axes, changes, named=False)
        if logarithmic:
            axes.set_yscale("log")
        axes.set_title(title, loc="left", fontsize=10)
        axes.xaxis.set_major_formatter(FuncFormatter(short))
        axes.xaxis.set_major_locator(MaxNLocator(5))
    return Chart(figure, f"{title}, every run, by frame.")


def bars(
    groups: Mapping[str, npt.ArrayLike],
    *,
    ylabel: str,
    comparisons: Sequence[Comparison] = (),
    caption: str = "",
) -> Chart:
    """Draw the mean of each method with its standard error, every run as a point, p-values above.

    Runs whose value is not finite are counted under their bar: they did not get there.
    """
    figure, axes = make_figure(width=max(4.0, 1.4 * len(groups) + 1.5), height=3.8)
    with mpl.rc_context(STYLE):
        top, labels = 0.0, []
        for place, (method, values) in enumerate(groups.items()):
            kept, total = finite(values), np.size(np.asarray(values))
            found = summary(kept)
            if found.n:
                spread = np.nan_to_num(found.sem)
                axes.bar(place, found.mean, 0.62, color=color(method), alpha=0.75)
                axes.errorbar(place, found.mean, spread, color=INK, capsize=4, lw=1.5)
                shift = np.linspace(-0.18, 0.18, found.n) if found.n > 1 else np.zeros(1)
                axes.scatter(place + shift, np.sort(kept), s=18, color=INK, alpha=0.6, zorder=3)
                top = max(top, float(kept.max()), found.mean + spread)
            missed = f"{total - found.n} of {total}\nnot reached" if found.n < total else ""
            labels.append(f"{fill(method, 16, break_long_words=False)}\n{missed}".strip())
        top = _brackets(axes, list(groups), comparisons, top or 1.0)
        axes.set_ylim(min(0, axes.get_ylim()[0]), top * 1.08)
        axes.set_xticks(range(len(groups)), labels)
        axes.set_xlim(-0.6, max(len(groups), 1) - 0.4)
        axes.set_ylabel(ylabel)
        axes.yaxis.set_major_formatter(FuncFormatter(short))
        if not groups:
            say_nothing(axes)
    return Chart(
        figure, caption or f"{ylabel.capitalize()}: mean and standard error; points are runs."
    )


def spectrum(rates: Mapping[str, npt.ArrayLike]) -> Chart:
    """Draw Crafter's ability spectrum (paper: Figure 4): success [runs, 22] of each method.

    Bars are means over runs on a logarithmic axis from 0.01 to 100 %, whiskers standard errors.
    """
    figure, axes = make_figure(width=11, height=4.4)
    with mpl.rc_context(STYLE):
        first = SPECTRUM.index(HARD[0])
        axes.axvspan(first - 0.5, len(SPECTRUM) - 0.5, color=FAINT, alpha=0.15, lw=0)
        axes.text(len(SPECTRUM) - 0.6, 130, "need four or more others", ha="right", fontsize=9)
        width = 0.8 / max(len(rates), 1)
        for number, (method, values) in enumerate(rates.items()):
            found = [summary(column) for column in np.atleast_2d(np.asarray(values, float)).T]
            mean = np.array([each.mean for each in found])
            sem = np.nan_to_num([each.sem for each in found])
            x = np.arange(len(SPECTRUM)) + width * (number - (len(rates) - 1) / 2)
            low = np.minimum(sem, np.maximum(mean - 0.01, 0))
            axes.bar(x, np.maximum(mean, 0.01), width, color=color(method), label=method)
            axes.errorbar(x, np.maximum(mean, 0.01), [low, sem], fmt="none", ecolor=INK, lw=1)
        axes.set_yscale("log")
        axes.set_ylim(0.01, 100)
        axes.set_yticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
        axes.set_xlim(-0.7, len(SPECTRUM) - 0.3)
        names = [name.replace("_", " ") for name in SPECTRUM]
        axes.set_xticks(range(len(SPECTRUM)), names, rotation=40, ha="right")
        axes.set_ylabel("success (%)")
        if rates:
            axes.legend(loc="lower left", ncols=len(rates), bbox_to_anchor=(0, 1.0))
    return Chart(figure, "Success of training episodes; achievements in the order of "
                 "their prerequisites, those that need four or more shaded.")  # fmt: skip


def trajectories(
    panels: Mapping[str, tuple[Array, Array | None]],
    *,
    caption: str = "",
) -> Chart:
    """Draw where agent (grey) and ball (magenta) were (paper: Figure 12).

    Both are [steps, 2] for each panel.
    """
    count = max(len(panels), 1)
    figure = Figure(figsize=(3.1 * count, 3.3), layout="constrained")
    with mpl.rc_context(STYLE):
        row = figure.subplots(1, count, squeeze=False)[0]
        places = [place for pair in panels.values() for place in pair if place is not None]
        limits = _limits(places)
        for axes, (title, (agent, ball)) in zip(row, panels.items(), strict=False):
            _dots(axes, agent, FAINT)
            if ball is not None:
                _dots(axes, ball, COLORS["curious"])
            axes.set(title=title, xlim=limits[:2], ylim=limits[2:], aspect="equal")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_visible(True)
            axes.spines[:].set_color(FAINT)
        if not panels:
            say_nothing(row[0])
    return Chart(figure, caption or "Places of the agent (grey) and of the ball (magenta).")


def replay_view(
    profiles: Mapping[str, Profile],
    *,
    xlabel: str = "frame at which a step was seen",
    changes: ChangeMarks = (),
    caption: str = "",
) -> Chart:
    """Draw priorities and visits across the buffer (paper: Figure 16), one line for each method."""
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    with mpl.rc_context(STYLE):
        upper, lower = figure.subplots(2, 1, sharex=True)
        for method, found in profiles.items():
            style = {"color": color(method), "linestyle": line_style(method), "lw": 1.5}
            upper.plot(found.position, np.maximum(found.chance, 1e-6), label=method, **style)
            lower.plot(found.position, found.visits, label=method, **style)
        upper.axhline(1, color=FAINT, lw=1)
        upper.set_yscale("log")
        upper.set_ylabel("chance to be drawn\nrelative to uniform")
        lower.set_ylabel("visits")
        lower.set_xlabel(xlabel)
        lower.xaxis.set_major_formatter(FuncFormatter(short))
        mark(upper, changes)
        mark(lower, changes, named=False)
        if profiles:
            upper.legend(loc="best")
    return Chart(figure, caption or "What is replayed: above, how likely a stored step is drawn "
                 "next; below, how often it was trained on.")  # fmt: skip


def profiles(
    thresholds: npt.ArrayLike,
    shares: Mapping[str, tuple[Array, Array, Array]],
    *,
    xlabel: str = "score",
    ylabel: str = "share of runs above",
    caption: str = "",
) -> Chart:
    """Draw performance profiles: share of runs above each score, with intervals.

    `shares` gives of each method the share at each of the thresholds [N], from 0 to 1, and the
    lower and upper end of its interval, [N] each.
    """
    figure, axes = make_figure()
    x = np.asarray(thresholds)
    with mpl.rc_context(STYLE):
        for method, (values, low, high) in shares.items():
            axes.plot(x, values, color=color(method), linestyle=line_style(method), label=method)
            axes.fill_between(x, low, high, color=color(method), alpha=0.2, lw=0)
        axes.xaxis.set_major_formatter(FuncFormatter(short))
        axes.set(xlabel=xlabel, ylabel=ylabel, ylim=(-0.02, 1.02))
        if shares:
            axes.legend(loc="best")
    return Chart(figure, caption or "Share of runs that score above a value, 95 % intervals.")


def _dots(axes: Axes, places: Array, dot_color: str) -> None:
    """Draw places as dots: the fewer, the larger; as one picture, since there may be a million."""
    size = float(np.clip(120 / np.sqrt(max(len(places), 1)), 1, 6))
    axes.plot(*places[:, :2].T, ".", color=dot_color, ms=size, alpha=0.6, rasterized=True)


def _brackets(axes: Axes, names: list[str], comparisons: Sequence[Comparison], top: float) -> float:
    """Draw p-values over pairs of bars; return how high they reach."""
    step, level = 0.11 * top, top * 1.04
    for found in comparisons:
        if not np.isfinite(found.corrected) or not {found.first, found.second} <= set(names):
            continue
        a, b = sorted((names.index(found.first), names.index(found.second)))
        foot = level + 0.2 * step
        axes.plot([a, a, b, b], [foot, level + step / 2, level + step / 2, foot], color=INK, lw=1)
        axes.text((a + b) / 2, level + step / 2, _p(found.corrected), ha="center", va="bottom",
                  fontsize=9)  # fmt: skip
        level += 1.3 * step
    return level + 0.4 * step


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _limits(places: list[Array]) -> tuple[float, float, float, float]:
    full = [place[:, :2] for place in places if len(place)]
    if not full:
        return -1, 1, -1, 1
    low, high = np.concatenate(full).min(0), np.concatenate(full).max(0)
    room = 0.05 * max(float((high - low).max()), 1e-6)
    return (
        float(low[0]) - room, float(high[0]) + room, float(low[1]) - room, float(high[1]) + room,
    )  # fmt: skip
