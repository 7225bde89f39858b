"""Checkpoints: all of a run at one moment, in one folder that is whole or not there.

    checkpoints/000007-step-70000/      its files: checkpoint_files.py

A checkpoint is written under another name and renamed when all of it is on disk. The last one and
the one before are there, and those that are kept for good. Reading checks everything; a damaged
checkpoint is passed over.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from curious_replay.durable import sync_folder
from curious_replay.replay import Mixture, ReplayBuffer, Rule
from curious_replay.run.record import checkpoint_files as files
from curious_replay.run.record.checkpoint_files import CheckpointError, Saved
from curious_replay.run_folder import CHECKPOINT, REPLAY, checkpoint_name
from curious_replay.untrusted import UnreadableError, folder_itself, of_the_disk, raised_as

UNFINISHED = ".new-"
LAST = 2

Note = Callable[[str], None]


class AllDamagedError(CheckpointError):
    """All checkpoints of a run were read, and none is whole."""


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._base: Path | None = None  # whose replay files can be shared
        self._ours = False  # whether this process wrote them

    def all(self) -> list[Path]:
        """Return the finished checkpoints, newest first."""
        with raised_as(CheckpointError):
            folder_itself(self.folder)
        if not self.folder.is_dir():
            return []
        found = [path for path in self.folder.iterdir() if CHECKPOINT.fullmatch(path.name)]
        return sorted(found, key=_serial, reverse=True)

    def at(self, step: int | None) -> Path:
        """Return the checkpoint that is kept for a step, or was made at it.

        Without a step it is the newest.
        """
        found = self.all()
        if not found:
            raise CheckpointError(f"{self.folder} has no checkpoint")
        if step is None:
            return found[0]
        kept = [path for path in found if step in files.kept_at(path)]
        made = [path for path in found if step_of(path) == step]
        if not kept and not made:
            told = ", ".join(map(_told, reversed(found)))
            raise CheckpointError(
                f"{self.folder} has no checkpoint of step {step:,}; there are those of {told}"
            )
        return (kept or made)[0]

    def save(
        self,
        step: int,
        state: dict[str, Any],
        agent: Mapping[str, Tensor],
        policy: Mapping[str, Tensor],
        replay: ReplayBuffer,
        kept: Sequence[int] = (),
    ) -> Path:
        """Write a checkpoint and remove those that are no longer needed.

        One that is `kept`, as the checkpoint of these steps, stays for good.
        """
        self.tidy()
        base = _serial(self._base) if self._base else 0
        for path in self.all():  # damaged ones that were passed over
            if _serial(path) > base:
                self._remove(path)
        serial = base + 1
        name = checkpoint_name(serial, step)
        new = self.folder / f"{UNFINISHED}{name}"
        new.mkdir(parents=True)
        try:
            if self._base is not None:
                files.link_replay(self._base / REPLAY, new / REPLAY, ours=self._ours)
            replay.save(new / REPLAY)
            files.write(new, step, state, agent, policy, kept)
        except BaseException:  # on a full disk, what is no use should not take room
            shutil.rmtree(new, ignore_errors=True)
            raise
        self._base, self._ours = new.rename(self.folder / name), True
        sync_folder(self.folder)
        self.tidy()
        return self._base

    def tidy(self) -> None:
        """Remove what a killed process left unfinished, and checkpoints that are not needed.

        Those that are newer than the one in use were found to be damaged: they stay until there is
        a better one.
        """
        for path in self.folder.glob(f"{UNFINISHED}*"):
            shutil.rmtree(path, ignore_errors=True)
        base = _serial(self._base) if self._base else 0
        for old in [path for path in self.all() if _serial(path) <= base][LAST:]:
            if not files.kept_at(old):
                self._remove(old)

    def newest(self, note: Note) -> Saved:
        """Return the newest checkpoint that is whole, its replay left aside."""
        for path in self.all():
            try:
                return files.read(path)
            except CheckpointError as error:
                note(f"{error}: using the checkpoint before")
        raise CheckpointError(f"{self.folder} has no whole checkpoint")

    def resume(
        self, directory: Path | None, rule: Rule | Mixture, note: Note
    ) -> tuple[Saved, ReplayBuffer] | None:
        """Return the newest whole checkpoint and its replay; None if none was ever finished.

        Damaged ones are passed over. The next save takes their place.
        """
        found = self.all()
        kind: type[CheckpointError] = AllDamagedError
        for path in found:
            try:
                saved = files.read(path)
                replay = saved.load_replay(directory, rule)
            except UnreadableError as error:
                note(f"{error}: going back to the checkpoint before")
                kind = CheckpointError if of_the_disk(error) else kind
                continue
            self._base = path
            return saved, replay
        if found:
            raise kind(f"none of the checkpoints in {self.folder} is whole")
        return None

    def _remove(self, path: Path) -> None:
        """Remove a checkpoint; a kill in between leaves nothing that looks like one."""
        doomed = path.rename(self.folder / f"{UNFINISHED}{path.name}")
        shutil.rmtree(doomed, ignore_errors=True)


def step_of(path: Path) -> int:
    """Return the step at which a checkpoint was made, from its name."""
    return int(path.name.rpartition("-")[2])


def _serial(path: Path) -> int:
    return int(path.name.partition("-")[0])


def _told(path: Path) -> str:
    """Return a text with the step of a checkpoint, and whether it stays."""
    kept = ", ".join(f"{step:,}" for step in sorted(files.kept_at(path)))
    step = f"{step_of(path):,}"
    return f"{step} (kept)" if kept == step else f"{step} (kept as {kept})" if kept else step
