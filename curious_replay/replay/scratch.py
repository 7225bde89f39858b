"""A folder of one's own below a folder that many may use.

Each mapped buffer keeps its chunk files in `directory/buffer-<random>/` and holds a lock on it for
as long as it lives. What a dead process left behind is known by its free lock and is removed. One
process at a time makes and removes folders, so that none is taken for dead before it has its lock.

Windows has no such locks (and removes no file that is mapped), so there a buffer is kept in memory.
"""

import os
import sys
import uuid
import weakref
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from curious_replay.errors import UsageError

_LOCK = "lock"


def _of_posix(name: str) -> Any:
    """Import a module that not every system has; None there."""
    try:
        return import_module(name)
    except ImportError:
        return None


fcntl, resource = _of_posix("fcntl"), _of_posix("resource")


class Scratch:
    """A new folder below `directory` that nobody else touches while this object lives."""

    def __init__(self, directory: Path) -> None:
        if fcntl is None:
            raise UsageError(
                f"steps cannot be kept in the folder {directory}: that takes POSIX file locks, "
                f"which {sys.platform} lacks; with directory=None they are kept in memory"
            )
        directory.mkdir(parents=True, exist_ok=True)
        alone = os.open(directory, os.O_RDONLY)
        try:
            fcntl.flock(alone, fcntl.LOCK_EX)
            _remove_abandoned(directory)
            self.path = directory / f"buffer-{uuid.uuid4().hex[:12]}"
            self.path.mkdir()
            self._lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        finally:
            os.close(alone)
        self._end = weakref.finalize(self, _remove, self.path, self._lock, os.getpid())


def allow_open_files(count: int) -> None:
    """Raise this process's limit of open files, as far as it may, for `count` more of them."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 3 * count + 256  # others need some too, a second buffer for instance
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _remove(folder: Path, lock: int, owner: int) -> None:
    """Remove the folder when its buffer is gone, unless this is a forked child of its process."""
    os.close(lock)
    if os.getpid() == owner:
        _delete(folder)


def _delete(folder: Path) -> None:
    """Remove a folder; the lock goes last, so that what a kill leaves of it is still known."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name != _LOCK:
                path.unlink(missing_ok=True)
        (folder / _LOCK).unlink(missing_ok=True)
        folder.rmdir()


def _remove_abandoned(directory: Path) -> None:
    for folder in directory.glob("buffer-*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR)
        except OSError:
            with suppress(OSError):
                folder.rmdir()  # if empty, its process died early; else it is not ours
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _delete(folder)
        except BlockingIOError:
            pass  # its buffer is alive
        finally:
            os.close(lock)
