"""Where a command will write, tried before anything takes time."""

import os
from pathlib import Path
from tempfile import TemporaryFile

from curious_replay.errors import UsageError


def check_file(option: str, path: Path) -> None:
    """Refuse a file that could not be written; nothing is left behind by the trial."""
    if path.is_dir():
        raise UsageError(f"{option} must be a file, got the folder {path}")
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageError(f"{option}: {path} may not be written to; choose another")
    _try(option, path, path.parent)


def check_folder(option: str, path: Path) -> None:
    """Refuse a folder that cannot be made, or is there and not writable."""
    _try(option, path, path)


def _try(option: str, path: Path, folder: Path) -> None:
    """Write into the folder, or into the nearest one above it that is there."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        with TemporaryFile(dir=there):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            f"{option}: nothing can be written to {path}: {reason}; choose another"
        ) from error
