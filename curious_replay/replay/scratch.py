"""A folder of one's own below a folder that many may use.

Each mapped buffer keeps its chunk files in `directory/buffer-<random>/` and holds a lock on it for
as long as it lives. What a dead process left behind is known by its free lock and is removed.
"""

import fcntl
import os
import shutil
import uuid
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

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            os.close(self._lock)


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
