"""The files of a run folder, and what must hold of them before a run goes on in it."""

import errno
import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import IO, Any

from curious_replay.errors import UsageError
from curious_replay.run.record.files import read_json
from curious_replay.run_folder import (
    CHECKPOINTS,
    CONFIG,
    EPISODES,
    EVENTS,
    META,
    METRICS,
    PROBE,
    SPEED,
    VIDEOS,
)
from curious_replay.untrusted import check, open_file, raised_as

COUNTERS = ("frame", "step", "update")
LOCK = ".lock"
REPEATABLE = (METRICS, EPISODES, PROBE)
"""Files that a resumed run writes again, line by line, as they were."""
TAGS = {METRICS: "train", EPISODES: "episode", SPEED: "speed", PROBE: "probe"}
"""Before names that have no group of their own ("loss/image"), where they are shown in groups."""


class RecordError(UsageError):
    """The folder cannot be written to: it holds another run, or a damaged one."""


class DamagedError(RecordError):
    """Lines that a checkpoint counts on are gone, or what should tell of them cannot be read."""


class LockedError(RecordError):
    """Another process is writing to the folder."""


def read_meta(folder: Path) -> dict[str, Any]:
    """Return meta.json, with the list of resumes that every run has."""
    with raised_as(DamagedError):
        meta: dict[str, Any] = read_json(folder / META)
        check(meta, dict, str(folder / META))
        check(meta.get("resumes"), [dict], f"{folder / META}, resumes")
    return meta


def refuse_strange_files(folder: Path) -> None:
    """Refuse links, and folders, pipes or devices in the place of files.

    What a link leads to would be written to. To open a pipe is to wait for somebody at its other
    end, perhaps for ever.
    """
    files = (CONFIG, META, LOCK, *TAGS)
    for name in (*files, EVENTS, VIDEOS, CHECKPOINTS):
        path = folder / name
        if path.is_symlink():
            raise RecordError(f"{path} is a symbolic link; it must be a file itself")
        if name in files and path.exists() and not path.is_file():
            raise RecordError(f"{path} must be a file; it is a folder, pipe or device")


def sizes_at(folder: Path, position: Mapping[str, Any]) -> dict[str, int]:
    """Return the bytes that each file had at a position; DamagedError if that cannot be one."""
    name = f"the position in {folder} that its checkpoint has"
    with raised_as(DamagedError):
        check(position, dict, name)
        check(position.get("bytes", {}), dict, f"{name}, bytes")
        sizes = {file: position.get("bytes", {}).get(file, 0) for file in REPEATABLE}
        numbers = {each: position.get(each, 0) for each in ("frame", "line")} | sizes
        check(numbers, dict.fromkeys(numbers, int), name)
        if not all(0 <= number < 2**62 for number in numbers.values()):
            raise DamagedError(f"{name} has numbers below 0 or too large: {numbers}")
    return sizes


def check_reaches(path: Path, size: int) -> None:
    """Refuse a file that does not reach to where it should be cut, or not with a whole line."""
    found = path.stat().st_size if path.exists() else 0
    if found < size:
        raise DamagedError(
            f"{path} is damaged: it has {found} bytes, at the checkpoint it had {size}"
        )
    if size:
        with open_file(path) as file:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                raise DamagedError(f"{path} is damaged: no line ends at byte {size}, as one did")


@contextmanager
def locked(folder: Path) -> Iterator[FileIO]:
    """Make sure that no other process writes to the run, for as long as the file stays open.

    That is until this process ends, even by a kill. The file is closed here only if what follows
    fails.
    """
    file = (folder / LOCK).open("ab", buffering=0)
    try:
        _lock(file, fcntl.LOCK_EX, folder)
        yield file
    except BaseException:
        file.close()
        raise


@contextmanager
def nobody_writes(folder: Path) -> Iterator[None]:
    """Make sure that no process writes to the run meanwhile; nothing of the folder is changed."""
    if not (folder / LOCK).exists():  # whoever writes to it makes one
        yield
        return
    with open_file(folder / LOCK) as file:
        _lock(file, fcntl.LOCK_SH, folder)
        yield


def _lock(file: IO[bytes], kind: int, folder: Path) -> None:
    # Of all locks, this kind is not inherited by the worker processes of environments, which may
    # live a moment longer than a run that was killed. Some file systems have none.
    try:
        fcntl.lockf(file, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise LockedError(f"{folder} is being written to by a run not ended yet") from error
