"""Where the time of a run goes: never part of what must be the same in each repeat."""

import time
from collections.abc import Callable
from typing import Any

from curious_replay.run.loop.driver import Counters


class Stopwatch:
    """Seconds spent on each part of the loop, and speeds, since the last time it was read."""

    def __init__(self, counters: Counters, parts: tuple[str, ...]) -> None:
        self.counters, self.parts = counters, parts
        self.restart()

    def restart(self) -> None:
        """Begin anew, at the present counters."""
        self._began = time.monotonic()
        self._then = vars(self.counters).copy()
        self._seconds = dict.fromkeys(self.parts, 0.0)

    def time(self, part: str, act: Callable[[], Any]) -> None:
        """Do something and count its time."""
        began = time.monotonic()
        act()
        self._seconds[part] += time.monotonic() - began

    def read(self) -> dict[str, float]:
        """Return frames, steps and updates a second and each part's share of time; begin anew."""
        seconds = max(time.monotonic() - self._began, 1e-9)
        now = vars(self.counters)
        values = {
            f"{name}s_per_second": (now[name] - self._then[name]) / seconds
            for name in ("frame", "step", "update")
        }
        values |= {f"share/{part}": spent / seconds for part, spent in self._seconds.items()}
        self.restart()
        return values
