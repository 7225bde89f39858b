"""The live table of a sweep: which runs are where, how far, and how long it may take."""

import time
from collections.abc import Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from curious_replay.run.record.progress import duration
from curious_replay.sweep.sweep import Status, Sweep, TaskState

SECONDS = 2.0
"""Between two pictures of the table: reading how far runs are takes time too."""
ROWS = 30
"""Runs that are shown at most, those under way first."""
ORDER: tuple[Status, ...] = ("running", "failed", "stopped", "waiting", "complete")


class SweepTable:
    """Shows a sweep: a table that renews itself, or, where there is no terminal, what changes."""

    def __init__(self, console: Console, sweep: Sweep, title: str) -> None:
        self._console, self._sweep, self._title = console, sweep, title
        self._begun: dict[str, tuple[float, int]] = {}  # seconds and steps when first seen running
        self._shown: dict[str, Status] = {name: e.status for name, e in sweep.entries.items()}
        self._last = -SECONDS
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> "SweepTable":
        if self._live is not None:
            self._live.start()
        self._console.print(self._title, highlight=False, soft_wrap=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.show(at_once=True)
        if self._live is not None:
            self._live.stop()

    def show(self, at_once: bool = False) -> None:
        """Show what has changed."""
        for name, entry in self._sweep.entries.items():
            if entry.status == "running" and name not in self._begun:
                steps = max(entry.task.steps_done, entry.task.first_step)
                self._begun[name] = time.monotonic(), steps
        if self._live is not None:
            if at_once or time.monotonic() - self._last >= SECONDS:
                self._last = time.monotonic()
                self._live.update(self.picture(), refresh=True)
            return
        for name, entry in self._sweep.entries.items():
            if entry.status != self._shown[name]:
                self._shown[name] = entry.status
                self._console.print(self._line(entry), highlight=False, soft_wrap=True)

    def picture(self) -> Group:
        """Return the table as it is now."""
        entries = sorted(self._sweep.entries.values(), key=lambda e: ORDER.index(e.status))
        table = Table(box=None, pad_edge=False)
        table.add_column("run", overflow="fold")  # its seed is at the end: nothing is cut off
        for name in ("state", "steps", "time left"):
            table.add_column(name, justify="left" if name == "state" else "right", no_wrap=True)
        for entry in entries[:ROWS]:
            table.add_row(*self._row(entry))
        return Group(table, Text(self._counts(entries)))

    def _row(self, entry: TaskState) -> tuple[str, str, str, str]:
        task = entry.task
        done = task.steps if entry.status == "complete" else task.steps_done
        more = f", attempt {entry.attempts + 1}" if entry.attempts else ""
        if entry.status == "waiting" and self._sweep.held(entry):
            more = " for its trunk"
        return (
            task.name,
            f"{entry.status}{more if entry.status in ('running', 'waiting') else ''}",
            f"{done:,} of {task.steps:,}",
            self._left(entry, done),
        )

    def _left(self, entry: TaskState, done: int) -> str:
        """Return the time that a run may still take, at the pace that it has had so far."""
        if entry.status != "running" or entry.task.name not in self._begun:
            return ""
        seconds, steps = self._begun[entry.task.name]
        if done <= steps:
            return "–"
        pace = (time.monotonic() - seconds) / (done - steps)
        return duration(pace * (entry.task.steps - done))

    def _counts(self, entries: Sequence[TaskState]) -> str:
        counts = {status: sum(e.status == status for e in entries) for status in ORDER}
        said = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        hidden = len(entries) - ROWS
        return f"{said}{f'; {hidden} not shown' if hidden > 0 else ''}"

    def _line(self, entry: TaskState) -> str:
        done = sum(e.status == "complete" for e in self._sweep.entries.values())
        why = f": {entry.reason}" if entry.status == "failed" else ""
        return f"{done}/{len(self._sweep.entries)} complete  {entry.status}  {entry.task.name}{why}"
