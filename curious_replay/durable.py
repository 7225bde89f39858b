"""Files that a kill at any moment leaves whole: on disk before they take their name."""

import json
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

UNFINISHED = ".part-"
"""How the names of files begin that are still being written, or never were finished."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which takes the place of `path` once it is whole and on disk."""
    temporary = path.with_name(f"{UNFINISHED}{path.name}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Write or replace a file, so that it has the old or the new content and nothing between."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def sync_folder(folder: Path) -> None:
    """Make sure that the entries of a folder are on disk.

    Windows opens no folders, and keeps their entries safe by itself.
    """
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checksum(content: Mapping[str, Any]) -> int:
    """Return the checksum by which a manifest vouches for its own content."""
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())
