"""Figures that look alike: each method of replay has its colour and line everywhere.

A `Chart` is a figure with the caption that says what it shows. Nothing here touches pyplot's global
state, so charts can be made anywhere.
"""

import colorsys
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

INK = "#20262e"
"""Of text and axes: the page replaces it with the colour of its own text."""
TRUNK = "before the fork"
"""Stands for a method in curves: what forks share with others, each trunk once."""
COLORS = {
    "uniform": "#7d8590",
    "curious": "#d81b84",
    "count": "#2487d8",
    "adversarial": "#e07b00",
    "td": "#23955a",
    "td+adversarial": "#8a63d2",
    "balanced": "#009e9e",
    TRUNK.replace(" ", ""): INK,
}
OTHERS = (
    "#a0522d", "#5c6bc0", "#8a8d00", "#c62828", "#c9a400", "#7cb342", "#ff8a80", "#b48ead",
)  # fmt: skip
"""Colours of methods by other names."""
LINES: Mapping[str, Any] = {
    COLORS["uniform"]: "--",
    COLORS["td"]: "-.",
    COLORS["count"]: ":",
    COLORS["adversarial"]: (0, (5, 1, 1, 1)),
}
"""Lines that are not drawn through, by their colour."""
_given: ContextVar[Mapping[str, str]] = ContextVar("colours of methods")
FAINT = "#8f98a5"
POWER = re.compile(r"\$\\mathdefault\{[\d.^{}\\times−-]*\}\$")

STYLE: Any = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 2,
    "savefig.dpi": 150,
    "savefig.transparent": True,
    "svg.fonttype": "path",
    "svg.hashsalt": "curious",
}

ChangeMarks = Sequence[tuple[int, str]]
"""Frames and the phases that begin there."""


@dataclass(frozen=True)
class Chart:
    """A figure and what it shows."""

    figure: Figure
    caption: str

    def svg(self) -> str:
        """Return the figure as SVG with no background, the same for the same data."""
        out = io.StringIO()
        with mpl.rc_context(STYLE):
            self._settle()
            self.figure.savefig(out, format="svg", metadata={"Date": None}, transparent=True)
        return out.getvalue()

    def save(self, path: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
        """Write `path` with each suffix, on white; the caption is kept in the files."""
        made = [path.with_name(f"{path.name}.{suffix}") for suffix in formats]
        with mpl.rc_context(STYLE):
            self._settle()
            for each in made:
                known = each.suffix in (".png", ".svg")
                metadata: dict[str, Any] = {"Description": self.caption} if known else {}
                if each.suffix == ".svg":
                    metadata["Date"] = None  # the same data give the same file
                self.figure.savefig(each, metadata=metadata, transparent=False, facecolor="white")
        return made

    def _settle(self) -> None:
        """Find each part's place once, and not again for each file."""
        self._take_text_as_it_is()
        if self.figure.get_layout_engine() is not None:
            self.figure.draw_without_rendering()
            self.figure.set_layout_engine(None)

    def _take_text_as_it_is(self) -> None:
        """Keep text from being read as formulas.

        Names of runs, methods and phases are none, whatever dollar signs are in them.
        """
        for axes in self.figure.axes:  # labels of ticks are written when they are asked for
            axes.get_xticklabels()
            axes.get_yticklabels()
        for text in self.figure.findobj(Text):
            # A power of ten at a logarithmic axis is a formula, and of matplotlib itself.
            if isinstance(text, Text) and not POWER.fullmatch(text.get_text()):
                text.set_parse_math(False)


def color(method: str) -> str:
    """Return the colour of a method: the one that `colors_of` gave it, or that of its name."""
    given = _given.get({}).get(method)
    return given or COLORS.get(_plain(method)) or OTHERS[_number(method) % len(OTHERS)]


def line_style(method: str) -> Any:
    """Return how the line of a method is drawn, as matplotlib takes it; it goes with its colour."""
    return LINES.get(color(method), "-")


@contextmanager
def colors_of(kinds: Mapping[str, str]) -> Iterator[None]:
    """Give methods, {name: kind of replay}, a colour each in all charts that are drawn within.

    A method has the colour of its name; else that of its kind of replay, if no other method has it;
    else another one that follows from its name and from who else is there. Within another
    `colors_of`, methods keep the colours that they have.
    """
    found: dict[str, str] = {}

    def give(method: str, wanted: str | None) -> None:
        if wanted is not None and method not in found and wanted not in found.values():
            found[method] = wanted

    for method in sorted(kinds):
        give(method, COLORS.get(_plain(method)))
    for method in sorted(kinds):
        give(method, COLORS.get(kinds[method]))
    for method in sorted(kinds):
        start = _number(method)
        for i in range(len(OTHERS)):
            give(method, OTHERS[(start + i) % len(OTHERS)])
        while method not in found:  # more methods than colours: hues far from each other
            start += 1
            parts = colorsys.hls_to_rgb(start * 0.618 % 1, 0.55, 0.5)
            give(method, "#" + "".join(f"{round(255 * each):02x}" for each in parts))
    token = _given.set({**found, **_given.get({})})
    try:
        yield
    finally:
        _given.reset(token)


def _plain(method: str) -> str:
    return method.lower().replace(" ", "")


def _number(method: str) -> int:
    return sum(method.encode())


def make_figure(width: float = 7.0, height: float = 3.8) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes, inches wide and high."""
    figure = Figure(figsize=(width, height), layout="constrained")
    with mpl.rc_context(STYLE):
        return figure, figure.subplots()


def mark(axes: Axes, changes: ChangeMarks, named: bool = True) -> None:
    """Draw a line where a phase begins, with its name; where there is nothing yet, none."""
    end = axes.get_xlim()[1]
    for frame, phase in changes:
        if 0 < frame <= end:
            axes.axvline(frame, color=FAINT, lw=1, ls="--")
            if named:
                axes.annotate(phase, (frame, 1), (4, -2), xycoords=("data", "axes fraction"),
                              textcoords="offset points", va="top", fontsize=9)  # fmt: skip


def say_nothing(axes: Axes) -> None:
    """Say that there is nothing to show."""
    axes.text(0.5, 0.5, "no data", transform=axes.transAxes, ha="center", va="center")


def short(value: float, _: int = 0) -> str:
    """Return a number in short: 1500000 as 1.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
