"""Where the steps are: chunks of rows, in memory or in memory-mapped files.

Time t of an environment (see windows.py) is row t mod R of its chunk t div R. A chunk holds R rows
of every field, field after field in one block of bytes, so that a window is at most a few
contiguous pieces. A row stays as it is until its step is long gone, and a save may refer to it
while the buffer goes on; a chunk whose rows are written again first becomes one that no save has
(`own`). In memory, a chunk takes over the place of the one that is
`places` older; in a folder every chunk is a file of its own, deleted when its steps are gone.
"""

import mmap
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curious_replay.replay.compiled import compiled, copy_bytes
from curious_replay.replay.fields import Array, Layout
from curious_replay.replay.scratch import allow_open_files
from curious_replay.replay.sumtree import Ints

Bytes = npt.NDArray[np.uint8]

# Mapped pages that were touched count as resident memory until they are given back.
RELEASE_AFTER = 256 * 2**20
_TAKES_BACK = hasattr(mmap.mmap, "madvise") and hasattr(mmap, "MADV_DONTNEED")


class Chunk:
    """R rows of every field."""

    def __init__(self, number: int, layout: Layout, rows: int, path: Path | None = None) -> None:
        self.number = number
        self.path = path
        size = chunk_bytes(layout, rows)
        self._map: mmap.mmap | None = None
        if path is None:
            block = np.empty(size, np.uint8)
        else:
            self._map = _map_file(path, size)
            block = np.frombuffer(self._map, np.uint8)
        self.fields = [
            block[start : start + rows * field.nbytes].view(field.dtype).reshape(rows, *field.shape)
            for field, start in zip(layout.fields, _starts(layout, rows), strict=False)
        ]

    def raw(self, position: int, start: int, stop: int) -> memoryview:
        """Return the bytes of rows `start` to `stop` of a field."""
        return self.fields[position][start:stop].reshape(-1).view(np.uint8).data

    def flush(self) -> None:
        """Write mapped rows to disk."""
        if self._map is not None:
            self._map.flush()

    def release(self) -> None:
        """Give mapped pages back to the system, if it takes them; they stay in its file cache."""
        if self._map is not None and _TAKES_BACK:
            self._map.madvise(mmap.MADV_DONTNEED)

    def delete(self) -> None:
        """Remove the file; saves that link to it keep theirs."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


class Storage:
    """The rows of all environments."""

    def __init__(
        self,
        layout: Layout,
        num_envs: int,
        stripe: int,
        directory: Path | None,
        rows: int | None = None,
    ) -> None:
        self.layout = layout
        self.directory = directory
        # In a folder, each chunk is an open file: there must not be too many of them.
        self.rows = rows or max(64, -(-stripe // max(2, min(64, 256 // num_envs))))
        # A step counts only once it is written, and until then the oldest one must stay. Files are
        # never written again, so with them a new chunk cannot take the place of a living one.
        spare = 1 if directory is None else self.rows
        self.places = -(-(stripe + spare) // self.rows)
        if directory is not None:
            allow_open_files(self.places * num_envs)
            if not _TAKES_BACK:
                warnings.warn(
                    f"{sys.platform} takes no advice on memory: this buffer may come to occupy as "
                    f"much of it as its files in {directory} are large",
                    stacklevel=2,
                )
        self._chunks: list[list[Chunk | None]] = [[None] * self.places for _ in range(num_envs)]
        self._addresses: Ints = np.zeros((len(layout.fields), num_envs, self.places), np.int64)
        self.saved: dict[tuple[int, int], Any] = {}  # what chunkfiles.py has on disk of each chunk
        self._touched = 0
        self._step_bytes = sum(field.nbytes for field in layout.fields)

    @property
    def nbytes(self) -> int:
        """Bytes of all chunks in use."""
        used = sum(chunk is not None for chunks in self._chunks for chunk in chunks)
        return used * chunk_bytes(self.layout, self.rows)

    def place(self, env: int, number: int) -> Chunk:
        """Return the chunk for the rows of `number`; make it if need be."""
        chunk = self._chunks[env][number % self.places]
        if chunk is not None and chunk.number == number:
            return chunk
        if chunk is not None and self.directory is None:
            chunk.number = number
            return chunk
        new = Chunk(number, self.layout, self.rows, self.path(env, number))
        if chunk is not None:
            chunk.delete()
        self.put(env, new)
        return new

    def path(self, env: int, number: int) -> Path | None:
        """Return the file of a chunk, None in memory."""
        return self.directory / chunk_name(env, number) if self.directory else None

    def put(self, env: int, chunk: Chunk) -> None:
        """Make `chunk` part of the storage."""
        place = chunk.number % self.places
        self._chunks[env][place] = chunk
        for i, rows in enumerate(chunk.fields):
            self._addresses[i, env, place] = _address(rows)

    def chunk(self, env: int, number: int) -> Chunk:
        """Return the chunk that holds, or held until it was overwritten, chunk `number`."""
        chunk = self._chunks[env][number % self.places]
        if chunk is None:
            raise KeyError(f"environment {env} has no chunk {number}")
        return chunk

    def write(self, env: int, time: int, step: list[Array], at: int | None) -> None:
        """Write one step: entry `at` of arrays [num_envs, ...], or, with None, arrays [...].

        Fails where there is no room for another chunk, on a full disk for instance.
        """
        number, row = divmod(time, self.rows)
        chunk = self._chunks[env][number % self.places]
        if chunk is None or chunk.number != number:
            chunk = self.place(env, number)
        if at is None:
            for rows, value in zip(chunk.fields, step):  # noqa: B905
                rows[row] = value
        else:
            for rows, values in zip(chunk.fields, step):  # noqa: B905
                rows[row] = values[at]
        if self.directory is not None:
            self._touch(self._step_bytes)

    def flags(self, envs: Ints, times: Ints) -> list[npt.NDArray[np.bool_]]:
        """Return the flags is_first [N] and is_last [N] of steps."""
        flags = self.gather(self.layout.flags, envs, times, 1)
        return [flag[:, 0].astype(np.bool_, copy=False) for flag in flags]

    def mark(self, position: int, env: int, time: int) -> None:
        """Set a flag of a stored step."""
        self.chunk(env, time // self.rows).fields[position][time % self.rows] = True

    def gather(
        self,
        positions: Sequence[int],
        envs: Ints,
        starts: Ints,
        length: int,
        empty: Callable[[tuple[int, ...], np.dtype[Any]], Array] = np.empty,
    ) -> list[Array]:
        """Return the fields at `positions` of windows, each [B, length, ...]: made by `empty`."""
        fields = [self.layout.fields[position] for position in positions]
        out = [empty((len(envs), length, *field.shape), field.dtype) for field in fields]
        # One compiled call for all fields: a call takes as long as copying a small field.
        copies: Ints = np.array(
            [(p, f.nbytes, _address(o)) for p, f, o in zip(positions, fields, out)]  # noqa: B905
        )
        _gather(self._addresses, self.rows, copies, envs, starts, length)
        if self.directory is not None:
            self._touch(sum(array.nbytes for array in out))
        return out

    def own(self, envs: Ints, times: Ints) -> None:
        """Let the chunks of steps [N] be such as no save refers to, so that rows may change.

        Fails, without a change, where there is no room for a copy of a mapped chunk.
        """
        numbers = (times // self.rows).tolist()
        for key in {*zip(envs.tolist(), numbers, strict=True)} & self.saved.keys():
            env, number = key
            path = self.chunk(env, number).path
            if path is not None and path.stat().st_nlink > 1:
                copy = path.with_suffix(".new")
                try:
                    shutil.copyfile(path, copy)
                    copy.replace(path)
                finally:
                    copy.unlink(missing_ok=True)
                self.put(env, Chunk(number, self.layout, self.rows, path))
            del self.saved[key]

    def rewrite(self, position: int, envs: Ints, times: Ints, values: Array) -> None:
        """Write one field of steps [N], whose chunks are owned; `values` [N, ...] are contiguous.

        Of a step that occurs more than once, the last value stays.
        """
        row_bytes = self.layout.fields[position].nbytes
        _scatter(self._addresses[position], self.rows, row_bytes, _address(values), envs, times)
        if self.directory is not None:
            self._touch(values.nbytes)

    def clear(self) -> None:
        """Drop all chunks."""
        self.saved.clear()
        for chunks in self._chunks:
            for place, chunk in enumerate(chunks):
                if chunk is not None:
                    chunk.delete()
                chunks[place] = None

    def _touch(self, count: int) -> None:
        self._touched += count
        if self._touched > RELEASE_AFTER:
            self._touched = 0
            for chunks in self._chunks:
                for chunk in chunks:
                    if chunk is not None:
                        chunk.release()


def chunk_name(env: int, number: int) -> str:
    """Return the file name of a chunk."""
    return f"chunk-{env:04d}-{number:08d}.bin"


def chunk_bytes(layout: Layout, rows: int) -> int:
    """Return the size of a chunk of `rows` rows."""
    return _starts(layout, rows)[-1]


def field_offset(layout: Layout, rows: int, position: int, row: int) -> int:
    """Return where in a chunk's bytes the given row of a field begins."""
    return _starts(layout, rows)[position] + row * layout.fields[position].nbytes


def _starts(layout: Layout, rows: int) -> list[int]:
    """Return where fields begin in a chunk, at multiples of 64 bytes; last, where it ends."""
    starts = [0]
    for field in layout.fields:
        starts.append(starts[-1] + -(-rows * field.nbytes // 64) * 64)
    return starts


def _map_file(path: Path, size: int) -> mmap.mmap:
    """Map a file, which is made if it does not exist."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        # Take the disk space now: a full disk is then an error here and not a crash later on.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.ftruncate(descriptor, size)
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


@compiled
def _gather(
    addresses: Ints, rows: int, copies: Ints, envs: Ints, starts: Ints, length: int
) -> None:
    """Copy windows; a row of `copies`: a field's position, its bytes a step, where to put them."""
    places = addresses.shape[2]
    for k in range(len(copies)):
        position, row_bytes, to = copies[k]
        target = np.uintp(to)
        for i in range(len(envs)):
            time, left = starts[i], length
            while left > 0:
                number, row = divmod(time, rows)
                count = min(left, rows - row)
                source = addresses[position, envs[i], number % places] + row * row_bytes
                copy_bytes(target, np.uintp(source), np.uintp(count * row_bytes))
                target += np.uintp(count * row_bytes)
                time += count
                left -= count


@compiled
def _scatter(
    addresses: Ints, rows: int, row_bytes: int, values: int, envs: Ints, times: Ints
) -> None:
    """Copy rows [N] that lie at the address `values` to where steps have them."""
    places = addresses.shape[1]
    source = np.uintp(values)
    for i in range(len(envs)):
        number, row = divmod(times[i], rows)
        target = addresses[envs[i], number % places] + row * row_bytes
        copy_bytes(np.uintp(target), source, np.uintp(row_bytes))
        source += np.uintp(row_bytes)
