"""Carrying out a task in this process; launchers bring it to where it is to happen."""

import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

from rich.console import Console

from curious_replay import host, plugins
from curious_replay.errors import UsageError
from curious_replay.run.record.record_files import DamagedError, LockedError
from curious_replay.run.settings.config import Config
from curious_replay.sweep.task import Task, inspect_folder, set_aside
from curious_replay.untrusted import UnreadableError, of_the_disk

LOCK_SECONDS = 180.0
"""How long a run that another process is still writing to is waited for; NFS keeps the locks of a
machine that is lost for 90 seconds."""
STOP_SECONDS = 300.0
"""How long tasks may take to save when a sweep is stopped, before they are ended."""


@dataclass(frozen=True)
class Ended:
    """A task that ended, well (`code` is 0) or not."""

    name: str
    code: int
    """0: complete; 128 + n: stopped by signal n; anything else: failed."""
    reason: str = ""
    """Why, where the launcher knows more than the task's log."""


class Launcher(Protocol):
    """Carries out tasks."""

    def submit(self, tasks: list[Task]) -> None:
        """Take over these tasks and return at once."""

    def running(self) -> set[str]:
        """Return the names of those that have begun and not ended."""

    def ended(self) -> list[Ended]:
        """Return those that ended since the last call."""

    def stop(self) -> None:
        """Let all that run save and stop, forget the others, and return when that is done."""


def describe(error: Exception) -> str:
    """Describe an error in one line: its last, which says most where it quotes another machine."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__


def run_task(task: Task) -> int:
    """Train as the task says, or go on where it was saved; returns the code of `Ended`.

    Whatever goes wrong is written to the task's log. A folder that is damaged beyond resuming is
    set aside, and the run begins anew, where its trunk ended if it has one.
    """
    host.prepare()
    task.folder.parent.mkdir(parents=True, exist_ok=True)
    with task.log.open("a", encoding="utf-8") as log:
        try:
            return _train(task, log)
        except Exception:
            traceback.print_exc(file=log)
            return 1


def _train(task: Task, log: TextIO) -> int:
    # PyTorch: not to plan a sweep.
    from curious_replay.run.record.checkpoint import AllDamagedError  # noqa: PLC0415
    from curious_replay.run.training import train  # noqa: PLC0415

    plugins.load(task.plugins)
    for each in (task, task.trunk):
        if each is not None:
            plugins.confirm(each.folder)
    config, console = Config.from_json(task.config), Console(file=log, width=200)
    deadline, damage = time.monotonic() + LOCK_SECONDS, ""
    while True:
        try:
            if damage := damage or inspect_folder(task).reason:
                print(f"set aside as {set_aside(task.folder)}: {damage}", file=log)
                damage = ""
            if task.trunk is not None and inspect_folder(task).state == "missing":
                _branch_off(task.trunk, task.folder, config)
                print(f"begun as {task.trunk.folder} at step {task.trunk.steps}", file=log)
            outcome = train(config, task.folder, resume=True, console=console)
            break
        except LockedError:  # a run whose machine was lost may live on for a moment
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        except (DamagedError, AllDamagedError) as error:
            if of_the_disk(error):
                raise
            damage = str(error)
    if outcome.finished:
        return 0
    return 1 if outcome.signal is None else 128 + outcome.signal


def _branch_off(trunk: Task, folder: Path, config: Config) -> None:
    """Begin a run as a fork of its trunk, at the end of that one."""
    if inspect_folder(trunk).state != "complete":
        raise UsageError(
            f"its trunk {trunk.folder} is not complete: start the sweep again, which sees to it"
        )
    from curious_replay.run.forking import fork_run  # noqa: PLC0415

    try:
        fork_run(trunk.folder, folder, config)
    except (UnreadableError, DamagedError) as error:
        if of_the_disk(error):
            raise
        raise UsageError(
            f"its trunk {trunk.folder} cannot be read: {error}; move it away and start the sweep "
            "again, which trains it anew"
        ) from error
