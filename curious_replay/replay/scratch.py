"""A folder of one's own below a folder that many may use.

Each mapped buffer keeps its chunk files in `directory/buffer-<random>/` and holds a lock on it for
as long as it lives. What a dead process left behind is known by its free lock and is removed.
"""

import fcntl
import os
import resource
import shutil
import uuid
import weakref
from pathlib import Path

_LOCK = "lock"


class Scratch:
    """A new folder below `directory` that nobody else touches while this object lives."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(directory)
        name = uuid.uuid4().hex[:12]
        hidden = directory / f".buffer-{name}"  # not seen by others before it is locked
        hidden.mkdir()
        self._lock = os.open(hidden / _LOCK, os.O_CREAT | os.O_RDWR, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = hidden.rename(directory / f"buffer-{name}")
        self._end = weakref.finalize(self, _remove, self.path, self._lock, os.getpid())


def allow_open_files(count: int) -> None:
    """Raise this process's limit of open files, as far as it may, for `count` more of them."""
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
        shutil.rmtree(folder, ignore_errors=True)


def _remove_abandoned(directory: Path) -> None:
    for folder in directory.glob("buffer-*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR)
        except OSError:
            continue  # not ours, or just being removed by another process
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass  # its buffer is alive
        finally:
            os.close(lock)
