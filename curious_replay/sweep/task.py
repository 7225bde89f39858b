"""One run of a sweep, and what is in its folder: nothing, a part, all of it, or something broken.

A run is complete when its last checkpoint is: metrics alone may have been written by a run that
was killed before it could save.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from curious_replay.analysis.load import Run
from curious_replay.errors import UsageError
from curious_replay.plugins import Wanted
from curious_replay.run.record.record_files import locked
from curious_replay.run.settings.config import Config, differences, load_config
from curious_replay.run_folder import CONFIG
from curious_replay.untrusted import UnreadableError, of_the_disk

State = Literal["missing", "unfinished", "complete", "broken"]

ANYHOW = ("--train.device", "--train.threads", "--env.processes")
"""Settings of where a run computes: a run that computed elsewhere is the same run."""


@dataclass(frozen=True)
class Task:
    """Settings, and the folder to be in when done. Folders are on a disk that all machines see."""

    name: str
    config: Mapping[str, Any]
    """As in config.json."""
    folder: Path
    """Absolute."""
    trunk: "Task | None" = None
    """The task that it begins where that one ends; None: it begins with its first step."""
    plugins: tuple[Wanted, ...] = ()
    """Code of the user's own, to be imported where the task is carried out."""

    @property
    def log(self) -> Path:
        """What the run printed, beside its folder."""
        return self.folder.with_name(f"{self.folder.name}.log")

    @property
    def steps(self) -> int:
        """At which step it ends."""
        return int(self.config["train"]["steps"])

    @property
    def first_step(self) -> int:
        """The step it begins at: 0, or the last one of its trunk."""
        return 0 if self.trunk is None else self.trunk.steps

    @property
    def steps_done(self) -> int:
        """The last step that it recorded."""
        return Run(self.folder, {}).steps_done


@dataclass(frozen=True)
class Found:
    """State of a run folder; `reason` says why it is broken."""

    state: State
    reason: str = ""


def inspect_folder(task: Task) -> Found:
    """Look at the folder of a task; UsageError if it holds a run with other settings.

    Settings that this version does not know are other settings too, and no damage. What cannot be
    read at all just now is an error: the run may be whole.
    """
    if not (task.folder / CONFIG).exists():
        return Found("missing")
    try:
        there = load_config(task.folder)
    except UnreadableError as error:
        if of_the_disk(error):
            raise
        return Found("broken", str(error))
    except UsageError as error:
        raise UsageError(
            f"{task.folder} holds a run of another version: {error}; choose another folder with "
            "--runs, or move that one away"
        ) from error
    for name, (before, now) in differences(there, Config.from_json(task.config)).items():
        if name not in ANYHOW:
            raise UsageError(
                f"{task.folder} holds a run whose {name} is {before}, where {now} is wanted: "
                "choose another folder with --runs, or move that one away"
            )
    return Found("complete" if Run(task.folder, task.config).complete else "unfinished")


def set_aside(folder: Path) -> Path:
    """Move a broken folder out of the way; nothing recorded is deleted.

    LockedError if another process writes to it.
    """
    number = 1
    while (aside := folder.with_name(f"{folder.name}.broken-{number}")).exists():
        number += 1
    with locked(folder) as lock, lock:
        return folder.rename(aside)
