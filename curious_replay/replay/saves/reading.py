"""Looking into a saved buffer without loading it: a million pictures stay on disk.

saved = SavedBuffer(run / "checkpoints" / name / "replay")
contacts = saved.field("log_contacts")   # one field of all steps
"""

import contextlib
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curious_replay.replay.fields import Array, Layout
from curious_replay.replay.judging import terms_of
from curious_replay.replay.mixture import Mixture
from curious_replay.replay.rule import Floats
from curious_replay.replay.saves.chunkfiles import LoadError, SavedChunk
from curious_replay.replay.saves.manifest import read_manifest, read_state, save_name
from curious_replay.replay.saves.rule_json import rule_from_json
from curious_replay.replay.storage import chunk_bytes, chunk_name, field_offset
from curious_replay.replay.sumtree import Ints
from curious_replay.untrusted import check_bytes, open_file, raised_as


class SavedBuffer:
    """The steps of a save, environment by environment, oldest first; nothing is written.

    ids        int64 [N]      names of the steps: time · num_envs + environment
    env, time  int64 [N]      the two parts of an id
    visits     int64 [N]      how often each was trained on
    priorities float64 [N]    what the first rule gave each
    second_priorities         the same of the second rule of a mixture; None if there is one rule
    fraction                  part of a batch that the second rule draws
    judged     int64 [N]      visits when a rule last gave each a priority; 0: never
    signals    float32 [N]    {name: last value that was told of each}, NaN if there was none
    drawable   bool [N]       whether its window is whole; a draw picks one of these by priority
    """

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder)
        content = read_manifest(folder)
        self.settings: dict[str, Any] = content["settings"]
        self.rule: dict[str, Any] = content["rule"]
        self.counts: dict[str, int] = content["counts"]
        self._folder = folder / save_name(content["number"])
        self._rows = int(content["rows"] or 0)
        self._chunks = [SavedChunk(**values) for values in content["chunks"]]
        self._layout = Layout.from_json(content["layout"]) if content["layout"] else None
        state = read_state(self._folder, content)
        num_envs = int(self.settings["num_envs"])
        stripe = int(self.settings["capacity"]) // num_envs
        head, oldest, _ = state["clock"]
        spans = [np.arange(low, high) for low, high in zip(oldest, head, strict=True)]
        self.time: Ints = np.concatenate(spans)
        self.env: Ints = np.repeat(np.arange(num_envs), [len(span) for span in spans])
        self.ids: Ints = self.time * num_envs + self.env
        slots = self.env * stripe + self.time % stripe
        self.visits: Ints = state["visits"][slots].astype(np.int64)
        self.priorities: Floats = state["priorities_0"][slots].astype(np.float64)
        second = state.get("priorities_1")
        self.second_priorities: Floats | None = (
            None if second is None else second[slots].astype(np.float64)
        )
        self.fraction = float(self.rule.get("fraction", self.rule.get("novelty", 0.0)))
        self.judged: Ints = state["judged"][slots].astype(np.int64)
        self.signals: dict[str, npt.NDArray[np.float32]] = {
            name: told[slots] for name, told in zip(content["signals"], state["told"], strict=True)
        }
        self._memory = content["memory"]
        self.drawable: npt.NDArray[np.bool_] = state["drawable"][slots]

    def __len__(self) -> int:
        return len(self.ids)

    def terms(self) -> dict[str, Floats] | None:
        """Take the priorities of the first rule apart, as `ReplayBuffer.terms` does.

        None if the rule is not one of this package, is no sum of terms, or reads signals that were
        not kept.
        """
        with contextlib.suppress(ValueError):
            rule = rule_from_json(self.rule)
            first = rule.first if isinstance(rule, Mixture) else rule
            if all(name in self.signals for name in first.signals):
                told = {n: self.signals[n].astype(np.float64) for n in first.signals}
                return terms_of(first, self._memory[0], self.priorities, self.judged, told)
        return None

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of what is stored for each step."""
        return () if self._layout is None else tuple(f.name for f in self._layout.fields)

    def field(self, name: str) -> Array:
        """Return one field of all steps, [N, ...], checked against its checksums."""
        return self._read(name, None)

    def rows(self, name: str, positions: npt.ArrayLike) -> Array:
        """Return one field of some steps [N, ...], by positions [N] in `ids`; read no more."""
        wanted = np.asarray(positions, np.int64).reshape(-1)
        if len(wanted) and (wanted.min() < 0 or wanted.max() >= len(self)):
            raise IndexError(f"positions must be from 0 to {len(self) - 1}")
        return self._read(name, wanted)

    def _read(self, name: str, positions: Ints | None) -> Array:
        if self._layout is None:
            raise KeyError(f"no field {name!r}: the buffer is empty")
        position = self._layout.find(name)
        field = self._layout.fields[position]
        count = len(self) if positions is None else len(positions)
        out = np.empty((count, *field.shape), field.dtype)
        for chunk in self._chunks:
            first = chunk.number * self._rows
            rows = self._map(chunk, position)
            if positions is None:
                if zlib.crc32(np.ascontiguousarray(rows).data) != chunk.crc32[position]:
                    raise LoadError(f"{self._path(chunk)}: the rows of {name!r} have changed")
                inside = self._inside(chunk, self.env, self.time)
                out[inside] = rows[self.time[inside] - first - chunk.start]
            else:
                env, time = self.env[positions], self.time[positions]
                inside = self._inside(chunk, env, time)
                out[inside] = rows[time[inside] - first - chunk.start]
        return out

    def _inside(self, chunk: SavedChunk, env: Ints, time: Ints) -> npt.NDArray[np.bool_]:
        """Return which steps are in a chunk."""
        first = chunk.number * self._rows
        low, high = first + chunk.start, first + chunk.stop
        return np.asarray((env == chunk.env) & (time >= low) & (time < high))

    def _map(self, chunk: SavedChunk, position: int) -> Array:
        """Return the saved rows of one field of a chunk, as a view of its file."""
        assert self._layout is not None
        field, path = self._layout.fields[position], self._path(chunk)
        shape = (chunk.stop - chunk.start, *field.shape)
        if not field.nbytes:
            return np.zeros(shape, field.dtype)
        with raised_as(LoadError), open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size != chunk_bytes(self._layout, self._rows):
                raise LoadError(f"{path} is damaged: it has {size} bytes")
            offset = field_offset(self._layout, self._rows, position, chunk.start)
            rows = np.memmap(file, field.dtype, "r", offset, shape)
            check_bytes(rows, str(path))
            return rows

    def _path(self, chunk: SavedChunk) -> Path:
        return self._folder / chunk_name(chunk.env, chunk.number)
