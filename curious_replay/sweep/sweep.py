"""The course of a sweep: look what is there, run what is not, try again what failed.

A sweep has no state of its own. Start it again and it looks at the run folders: what is complete
stays, what is unfinished goes on from its checkpoint.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from curious_replay.sweep.task import Task, look
from curious_replay.sweep.work import Ended, Launcher

PAUSE = 0.2
"""Seconds between two looks at what has ended."""

Status = Literal["waiting", "running", "complete", "failed", "stopped"]


@dataclass
class Entry:
    """Where one task is."""

    task: Task
    status: Status
    attempts: int = 0
    """How often it has failed."""
    reason: str = ""
    """Why it failed last."""
    steps: int = 0
    """How far it had come when it was last stopped by a signal."""


@dataclass
class Sweep:
    """All tasks of a sweep, and where they are."""

    entries: dict[str, Entry] = field(default_factory=dict)
    stopped: bool = False

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> "Sweep":
        """Look at all folders; ValueError if one holds another run."""
        status: dict[str, Status] = {"complete": "complete"}
        return cls({
            task.name: Entry(task, status.get(look(task).state, "waiting")) for task in tasks
        })  # fmt: skip

    def of_status(self, *wanted: Status) -> list[Entry]:
        """Tasks that are in one of these states."""
        return [entry for entry in self.entries.values() if entry.status in wanted]

    def run(
        self,
        launcher: Launcher,
        retries: int,
        show: Callable[[], None] = lambda: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Run what is not complete, each task until it has failed 1 + `retries` times.

        `show` is called now and then; as soon as `stop` says so, all save and stop.
        """
        launcher.submit([entry.task for entry in self.of_status("waiting")])
        while self.of_status("waiting", "running"):
            for name in launcher.running():
                self.entries[name].status = "running"
            failed = [entry for ended in launcher.ended() if (entry := self._failed(ended))]
            for entry in failed:
                entry.status = "waiting" if entry.attempts <= retries else "failed"
            launcher.submit([entry.task for entry in failed if entry.status == "waiting"])
            show()
            if stop():
                launcher.stop()
                self.stopped = True
                for ended in launcher.ended():
                    self._failed(ended)
                for entry in self.of_status("waiting", "running"):
                    entry.status = "stopped"
                return
            time.sleep(PAUSE)

    def _failed(self, ended: Ended) -> Entry | None:
        """Write down how a task ended; the task if it did not end well."""
        entry = self.entries[ended.name]
        entry.reason = ended.reason or last_line(entry.task)
        try:
            # The folder has the last word: what is there counts, whatever the process said.
            if look(entry.task).state == "complete":
                entry.status = "complete"
                return None
        except ValueError as error:  # it cannot be read just now
            entry.reason = str(error)
        entry.attempts += not self._made_room(entry, ended)
        return entry

    def _made_room(self, entry: Entry, ended: Ended) -> bool:
        """Whether it saved and stopped for somebody else's sake, which is no failure."""
        if ended.code < 128:
            return False
        # Bounded: who is stopped again and again at the same step is stopped because of itself,
        # and a run has only so many steps.
        steps = entry.task.steps_done
        further, entry.steps = steps > entry.steps, steps
        return further


def last_line(task: Task) -> str:
    """The last thing that a task said."""
    if not task.log.exists():
        return f"it left no log at {task.log}"
    lines = task.log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
