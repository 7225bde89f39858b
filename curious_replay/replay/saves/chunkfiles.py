"""Chunks of steps as files of a save: written in part, shared by links, checked when read."""

import os
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from curious_replay.replay.storage import Chunk, Storage, chunk_bytes, chunk_name, field_offset
from curious_replay.untrusted import UnreadableError, check_bytes, open_file, raised_as

_BLOCK = 16 * 2**20  # bytes read at a time when checking a file


class LoadError(UnreadableError):
    """The folder is not a save, or the save is damaged."""


@dataclass(frozen=True)
class SavedChunk:
    """Which rows of a chunk are on disk, and the checksum of those rows for each field."""

    env: int
    number: int
    start: int
    stop: int
    crc32: list[int]


def save_chunk(
    storage: Storage,
    env: int,
    number: int,
    start: int,
    stop: int,
    folder: Path,
    previous_folder: Path,
    previous: SavedChunk | None,
) -> SavedChunk:
    """Put rows `start` to `stop` of a chunk into `folder`, writing no more than what is new.

    `previous` is what the last save in `previous_folder` says of this chunk. Its file is shared
    only if it holds the very rows that this buffer saved or loaded; rows after those are free.
    """
    chunk = storage.chunk(env, number)
    path = folder / chunk_name(env, number)
    known = storage.saved.get((env, number))
    if chunk.path is not None and _linked(chunk.path, path):
        if known is None or known.stop < stop:
            chunk.flush()
    else:  # in memory, or mapped on another file system
        shared = previous_folder / path.name
        if known is not None and known == previous and _whole(storage, shared):
            _share(shared, path)
        else:
            known = None
        _write_rows(storage, chunk, known.stop if known else start, stop, path)
    known = known or SavedChunk(env, number, start, start, [0] * len(chunk.fields))
    sums = [
        zlib.crc32(chunk.raw(position, known.stop, stop), crc)
        for position, crc in enumerate(known.crc32)
    ]
    return SavedChunk(env, number, known.start, stop, sums)


def load_chunk(storage: Storage, saved: SavedChunk, folder: Path) -> None:
    """Bring a saved chunk into the storage, after checking it."""
    path = folder / chunk_name(saved.env, saved.number)
    if path.is_symlink():
        raise LoadError(f"{path} is a symbolic link; it must be a file itself")
    if not path.is_file():
        raise LoadError(f"{path} is missing: the save is not whole")
    if not _whole(storage, path):
        size, expected = path.stat().st_size, chunk_bytes(storage.layout, storage.rows)
        raise LoadError(f"{path} is damaged: it has {size} bytes instead of {expected}")
    target = storage.path(saved.env, saved.number)
    if target is None:
        chunk = storage.place(saved.env, saved.number)
        _read_rows(storage, saved, path, chunk)
    else:
        _read_rows(storage, saved, path, None)
        # Rows will be added to a chunk that is not full: not in a file that other saves share.
        if saved.stop < storage.rows:
            _copy(path, target)
        else:
            _share(path, target)
        storage.put(saved.env, Chunk(saved.number, storage.layout, storage.rows, target))
    storage.saved[saved.env, saved.number] = saved


def _whole(storage: Storage, path: Path) -> bool:
    size = chunk_bytes(storage.layout, storage.rows)
    return path.is_file() and path.stat().st_size == size


def _write_rows(storage: Storage, chunk: Chunk, start: int, stop: int, path: Path) -> None:
    if start == stop:
        return
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.truncate(chunk_bytes(storage.layout, storage.rows))
        for position in range(len(chunk.fields)):
            file.seek(field_offset(storage.layout, storage.rows, position, start))
            file.write(chunk.raw(position, start, stop))
        file.flush()
        os.fsync(file.fileno())


def _read_rows(storage: Storage, saved: SavedChunk, path: Path, into: Chunk | None) -> None:
    """Check the rows of a saved chunk, and put them into memory if `into` is given."""
    with raised_as(LoadError), open_file(path) as file:
        for position, field in enumerate(storage.layout.fields):
            file.seek(field_offset(storage.layout, storage.rows, position, saved.start))
            left = (saved.stop - saved.start) * field.nbytes
            crc = 0
            if into is not None:
                rows = into.raw(position, saved.start, saved.stop)
                file.readinto(rows)
                crc = zlib.crc32(rows)
                check_bytes(into.fields[position][saved.start : saved.stop], str(path))
            else:
                while left > 0 and (block := file.read(min(left, _BLOCK))):
                    crc = zlib.crc32(block, crc)
                    if field.dtype.kind == "b":
                        check_bytes(np.frombuffer(block, np.bool_), str(path))
                    left -= len(block)
            if crc != saved.crc32[position]:
                raise LoadError(f"{path} is damaged: the rows of {field.name!r} have changed")


def _share(source: Path, target: Path) -> None:
    """Let `target` be the same file as `source`; a copy where the file system has no links."""
    if not _linked(source, target):
        _copy(source, target)


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    with target.open("rb+") as file:
        os.fsync(file.fileno())
