"""The course of a sweep: look what is there, run what is not, try again what failed.

A sweep has no state of its own. Start it again and it looks at the run folders: what is complete
stays, what is unfinished goes on from its checkpoint. A task with a trunk is not begun before that
one is complete; a trunk is run only if a task that has not begun needs it.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from curious_replay.errors import UsageError
from curious_replay.sweep.task import Task, inspect_folder
from curious_replay.sweep.work import Ended, Launcher

PAUSE = 0.2
"""Seconds between two looks at what has ended."""

Status = Literal["waiting", "running", "complete", "failed", "stopped"]


@dataclass
class TaskState:
    """Where one task is."""

    task: Task
    status: Status
    attempts: int = 0
    """How often it has failed."""
    reason: str = ""
    """Why it failed last."""
    steps: int = 0
    """How far it had come when it was last stopped by a signal."""
    begun: bool = False
    """Whether its folder holds a part of the run, so that it needs its trunk no more."""
    given: bool = False
    """Whether a launcher has taken it over."""


@dataclass
class Sweep:
    """All tasks of a sweep, and where they are."""

    entries: dict[str, TaskState] = field(default_factory=dict)
    stopped: bool = False

    @classmethod
    def of(cls, tasks: Iterable[Task]) -> "Sweep":
        """Look at all folders, also of the trunks; UsageError if one holds another run."""
        entries: dict[str, TaskState] = {}
        for task in tasks:
            entry = _look(task)
            trunk = task.trunk
            if trunk is not None and trunk.name not in entries:
                found = _look(trunk)
                if found.status == "complete" or not (entry.begun or entry.status == "complete"):
                    entries[trunk.name] = found
            entries[task.name] = entry
        return cls(entries)

    def of_status(self, *wanted: Status) -> list[TaskState]:
        """Return the tasks that are in one of these states."""
        return [entry for entry in self.entries.values() if entry.status in wanted]

    def held(self, entry: TaskState) -> bool:
        """Return whether it cannot begin yet: its trunk is not complete."""
        trunk = entry.task.trunk
        return (
            trunk is not None and not entry.begun and self.entries[trunk.name].status != "complete"
        )

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
        while self.of_status("waiting", "running"):
            self._submit(launcher)
            for name in launcher.running():
                self.entries[name].status = "running"
            for ended in launcher.ended():
                entry = self._failed(ended)
                if entry is not None:
                    entry.status = "waiting" if entry.attempts <= retries else "failed"
                    entry.given = False
            self._give_up()
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

    def _submit(self, launcher: Launcher) -> None:
        """Hand over what can begin."""
        ready = [
            entry for entry in self.of_status("waiting") if not entry.given and not self.held(entry)
        ]
        for entry in ready:
            entry.given = True
        if ready:
            launcher.submit([entry.task for entry in ready])

    def _give_up(self) -> None:
        """Do not wait for a trunk that has failed for good."""
        for entry in self.of_status("waiting"):
            if self.held(entry) and entry.task.trunk is not None:
                trunk = self.entries[entry.task.trunk.name]
                if trunk.status == "failed":
                    entry.status = "failed"
                    entry.reason = f"its trunk {trunk.task.name} failed: {trunk.reason}"

    def _failed(self, ended: Ended) -> TaskState | None:
        """Write down how a task ended; return the task if it did not end well."""
        entry = self.entries[ended.name]
        entry.reason = ended.reason or last_line(entry.task)
        try:
            # The folder has the last word: what is there counts, whatever the process said.
            if inspect_folder(entry.task).state == "complete":
                entry.status = "complete"
                return None
        except UsageError as error:  # it cannot be read just now
            entry.reason = str(error)
        entry.attempts += not self._made_room(entry, ended)
        return entry

    def _made_room(self, entry: TaskState, ended: Ended) -> bool:
        """Return whether it saved and stopped for somebody else's sake, which is no failure."""
        if ended.code < 128:
            return False
        # Bounded: who is stopped again and again at the same step is stopped because of itself,
        # and a run has only so many steps.
        steps = entry.task.steps_done
        further, entry.steps = steps > entry.steps, steps
        return further


def _look(task: Task) -> TaskState:
    state = inspect_folder(task).state
    status: Status = "complete" if state == "complete" else "waiting"
    return TaskState(task, status, begun=state == "unfinished")


def last_line(task: Task) -> str:
    """Return the last thing that a task said."""
    if not task.log.exists():
        return f"it left no log at {task.log}"
    lines = task.log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
