"""What a run looks like while it runs: a display that stays in place, or lines in a log."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

Counters = Mapping[str, int]
Values = Mapping[str, float | str]

REFRESH_SECONDS = 1.0  # drawing takes some 5 ms
RECENT_SECONDS = 60.0  # speed and time left are judged by this much of the past
NARROW, WIDE = 28, 40  # characters of a name with its number
NUMBER = 11  # characters of a number alone


class Progress:
    """Shows counters, speed, time left, and any values; use as a context manager.

    Values are named "group/name"; each group has its own block. A value keeps its place once it has
    been shown, and numbers have one width, so that nothing jumps. On a terminal the display is
    drawn at most once a second. Elsewhere there is one line every `every_seconds` seconds.
    """

    def __init__(
        self,
        console: Console,
        total_steps: int,
        every_seconds: float = 10.0,
        *,
        title: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = console
        self.total_steps = total_steps
        self.title = title
        self._clock = clock
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._every = REFRESH_SECONDS if self._live else every_seconds
        self._began = self._next = clock()
        self._counters: Counters = {}
        self._values: dict[str, float | str] = {}
        self._recent: deque[tuple[float, int, int]] = deque()  # time, frame, step

    def __enter__(self) -> "Progress":
        self._began = self._next = self._clock()
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._counters:
            self._draw()
        if self._live:
            self._live.stop()

    def show(self, counters: Counters, values: Values) -> None:
        """Take the newest counters and values; they are drawn when it is time to."""
        self._counters = counters
        self._values.update(values)
        now = self._clock()
        if now >= self._next:
            self._next = now + self._every
            self._remember(now)
            self._draw()

    def note(self, text: str) -> None:
        """Print a message that stays, above the display."""
        self.console.print(Text(text), soft_wrap=True)

    def _remember(self, now: float) -> None:
        self._recent.append((now, self._counters["frame"], self._counters["step"]))
        while len(self._recent) > 2 and self._recent[1][0] <= now - RECENT_SECONDS:
            self._recent.popleft()

    def _speeds(self) -> tuple[float, float]:
        """Return frames and steps per second of late; 0 as long as nobody knows."""
        if len(self._recent) < 2:
            return 0.0, 0.0
        (then, frame, step), (now, new_frame, new_step) = self._recent[0], self._recent[-1]
        seconds = max(now - then, 1e-9)
        return (new_frame - frame) / seconds, (new_step - step) / seconds

    def _draw(self) -> None:
        if self._live:
            self._live.update(self._display(), refresh=True)
        else:
            self.console.print(self._line(), soft_wrap=True)

    def _line(self) -> Text:
        speed, left = self._outlook()
        counters = "  ".join(f"{name} {value:,}" for name, value in self._counters.items())
        values = "  ".join(f"{name} {number(value)}" for name, value in self._values.items())
        return Text(f"{self._share():6.1%}  {counters}  {speed} frames/s  {left} left  {values}")

    def _display(self) -> RenderableType:
        speed, left = self._outlook()
        inner = self.console.width - 4
        times = Table.grid(expand=True, padding=(0, 1))
        times.add_column(width=6, justify="right")
        times.add_column(ratio=1)
        times.add_column(justify="right", no_wrap=True)
        times.add_row(
            f"{self._share():.1%}",
            ProgressBar(total=max(self.total_steps, 1), completed=self._counters["step"]),
            Text.assemble((f"{left:>8}", "bold"), (" left", "dim")),
        )
        cells = [(name, f"{value:,}") for name, value in self._counters.items()]
        cells += [("frames/s", speed), ("elapsed", duration(self._clock() - self._began))]
        across = len(cells) if inner >= 20 * len(cells) else max(1, inner // 22)
        counters = Table.grid(expand=True)
        for _ in range(across):
            counters.add_column(ratio=1, no_wrap=True)
        texts = [Text.assemble((f"{name} ", "dim"), (value, "bold")) for name, value in cells]
        for start in range(0, len(texts), across):
            counters.add_row(*texts[start : start + across])
        body = Group(times, counters, Text(""), self._blocks(inner))
        return Panel(body, title=self.title or None, border_style="dim", padding=(0, 1))

    def _blocks(self, inner: int) -> RenderableType:
        """Lay out the groups in as many columns as the terminal is wide, each where there is room.

        The layout follows from the names alone, so it changes only when a new name appears.
        """
        groups: dict[str, list[tuple[str, float | str]]] = {}
        for name, value in self._values.items():
            group, _, rest = name.rpartition("/")
            groups.setdefault(group, []).append((rest, value))
        across = max(1, min((inner + 3) // (NARROW + 3), len(groups)))
        width = min(WIDE, (inner + 3) // across - 3)
        columns: list[list[RenderableType]] = [[] for _ in range(across)]
        heights = [0] * across
        for group, rows in groups.items():
            shortest = heights.index(min(heights))
            if columns[shortest]:
                columns[shortest].append(Text(""))
            columns[shortest].append(_block(group, rows, width))
            heights[shortest] += len(rows) + 2
        grid = Table.grid(padding=(0, 3))
        for _ in columns:
            grid.add_column(width=width)
        grid.add_row(*(Group(*column) for column in columns))
        return grid

    def _outlook(self) -> tuple[str, str]:
        """Return frames per second and the time left, as text."""
        frames, steps = self._speeds()
        if not steps > 0:
            return "–", duration(None)
        left = max(0, self.total_steps - self._counters["step"]) / steps
        return f"{frames:,.1f}", duration(left)

    def _share(self) -> float:
        return min(1.0, self._counters["step"] / max(self.total_steps, 1))


def _block(group: str, rows: list[tuple[str, float | str]], width: int) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=width - NUMBER - 1, no_wrap=True)
    table.add_column(width=NUMBER, justify="right", no_wrap=True)
    table.add_row(Text(group or "train", style="bold cyan"), "")
    for name, value in rows:
        table.add_row(Text(name, style="dim"), number(value))
    return table


def number(value: float | str) -> str:
    """Return at most 10 characters with about four digits that matter."""
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if value == int(value) and size < 1e9:
        return f"{int(value):,}"
    if size >= 1e6 or size < 1e-3:
        return f"{value:.2e}"
    decimals = 0 if size >= 1e4 else 1 if size >= 100 else 2 if size >= 10 else 3
    return f"{value:,.{decimals}f}"


def duration(seconds: float | None) -> str:
    """Return hours, minutes and seconds as 1:02:03, days before them if there are any."""
    if seconds is None:
        return "–:––"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    clock = f"{hours}:{minutes:02d}:{rest:02d}"
    return f"{days}d {clock}" if days else clock
