"""The files of one checkpoint.

agent.safetensors       parameters, optimisers, the agent's random state
policy.safetensors      what the policy remembers, and its random state
state.json, state.npz   counters, environments, the batch that is next, random states
replay/                 the buffer; rows that the checkpoint before has are shared by links
kept-at-8000            empty: this is the checkpoint of step 8000, and stays for good
manifest.json           sizes and checksums of the first four, written last
"""

import json
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import OutOfMemoryError, Tensor

from curious_replay.agents.blocks.weights import read_tensors
from curious_replay.durable import checksum
from curious_replay.replay import Mixture, ReplayBuffer, Rule
from curious_replay.replay.saves.manifest import MANIFEST as REPLAY_MANIFEST
from curious_replay.run.record.files import write_json
from curious_replay.run.record.serialize import pack, unpack
from curious_replay.run_folder import REPLAY, STATE
from curious_replay.untrusted import (
    UnreadableError,
    check,
    folder_itself,
    open_file,
    raised_as,
    read_arrays,
    read_bytes,
    read_json,
    read_object,
)

FORMAT = "curious-replay checkpoint 1"
MANIFEST = "manifest.json"
FILES = ("agent.safetensors", "policy.safetensors", STATE, "state.npz")
"""What the manifest vouches for; the replay has checksums of its own."""
RENAMED = {
    "driver": {"shown": "transition", "tally": "stats"},
    "every": {"film": "video"},
}
"""Parts of a state, and what is in them, under their names of before."""
_KEPT = "kept-at-"
_BLOCK = 16 * 2**20


class CheckpointError(UnreadableError):
    """There is no whole checkpoint, or this one is damaged."""


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds; its replay is read on demand."""

    path: Path
    step: int
    state: dict[str, Any]
    agent: dict[str, Tensor]
    policy: dict[str, Tensor]

    def load_replay(self, directory: Path | None, rule: Rule | Mixture) -> ReplayBuffer:
        """Return the buffer, with its steps in memory or in files below `directory`."""
        with raised_as(CheckpointError):
            folder = folder_itself(self.path / REPLAY)
        return ReplayBuffer.load(folder, directory=directory, rule=rule)

    @contextmanager
    def put_to_use(self) -> Iterator[None]:
        """Put down whatever goes wrong within to what was saved: it does not fit this run."""
        try:
            yield
        except OutOfMemoryError:  # of a card; the same checkpoint may fit another
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError,
                AssertionError, MemoryError) as error:  # fmt: skip
            raise CheckpointError(
                f"{self.path} does not fit the run that it is in: {type(error).__name__}: {error}"
            ) from error


def write(
    folder: Path,
    step: int,
    state: dict[str, Any],
    agent: Mapping[str, Tensor],
    policy: Mapping[str, Tensor],
    kept: Iterable[int] = (),
) -> None:
    """Write all of a checkpoint but its replay, and last its manifest."""
    _save_tensors(folder / "agent.safetensors", agent)
    _save_tensors(folder / "policy.safetensors", policy)
    arrays: dict[str, np.ndarray] = {}
    packed = pack(state, arrays)
    (folder / STATE).write_text(json.dumps(packed, allow_nan=False))
    with (folder / "state.npz").open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    keep(folder, kept)
    files = {name: _measure(folder / name, sync=True) for name in FILES}
    content = {"format": FORMAT, "step": step, "files": files}
    write_json(folder / MANIFEST, {**content, "crc32": checksum(content)})


def read(path: Path) -> Saved:
    """Read and check all but the replay of a checkpoint."""
    with raised_as(CheckpointError):
        content = _read_manifest(folder_itself(path))
        for name, expected in content["files"].items():
            if _measure(path / name) != expected:
                raise CheckpointError(f"{path / name} has changed since it was written")
        arrays = read_arrays(path / "state.npz")
        try:
            state = unpack(read_json(path / STATE), arrays)
        except (LookupError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path / STATE} is damaged: {error!r}") from error
        check(state, dict, str(path / STATE))
        _use_new_names(state)
        agent, policy = (read_tensors(path / f"{n}.safetensors") for n in ("agent", "policy"))
    return Saved(path, content["step"], state, agent, policy)


def _use_new_names(state: dict[str, Any]) -> None:
    """Rename what checkpoints of earlier versions call otherwise."""
    for part, names in RENAMED.items():
        content = state.get(part)
        if isinstance(content, dict):
            for before in names.keys() & content.keys():
                content[names[before]] = content.pop(before)


def digest(path: Path) -> str:
    """Name the content of a checkpoint by eight digits, from its manifests, which vouch for it."""
    content = [read_bytes(path / name) for name in (MANIFEST, f"{REPLAY}/{REPLAY_MANIFEST}")]
    return f"{zlib.crc32(b''.join(content)):08x}"


def keep(path: Path, steps: Iterable[int]) -> None:
    """Mark a checkpoint as the one of these steps, which stays for good."""
    for step in steps:
        (path / f"{_KEPT}{step}").touch()


def kept_at(path: Path) -> set[int]:
    """Return the steps whose checkpoint this is, if it stays for good."""
    marks = (each.name.removeprefix(_KEPT) for each in path.glob(f"{_KEPT}*"))
    return {int(mark) for mark in marks if mark.isdecimal()}


def link_replay(source: Path, target: Path, *, ours: bool) -> None:
    """Let `target` hold the files of the replay in `source`; none where links are not possible.

    A save of the buffer into `target` then finds the one before, shares its files and adds rows to
    the last one. Rows that a checkpoint counts on are never changed, so this does it no harm; but
    two processes that go on from one checkpoint would write different rows to the same place. So
    only files that are `ours`, written by this process, are added to: of others the last one of
    each environment is left out, and the save writes it anew.
    """
    with suppress(OSError):
        left_out = None if ours else _last_chunks
        shutil.copytree(source, target, copy_function=_link_or_copy, ignore=left_out)
        return
    shutil.rmtree(target, ignore_errors=True)


def _last_chunks(folder: str, names: list[str]) -> set[str]:
    """Return the files in a folder that are the last chunk of an environment: see `chunk_name`."""
    chunks = sorted(name for name in names if name.startswith("chunk-"))
    return set({name.rpartition("-")[0]: name for name in chunks}.values())


def _link_or_copy(source: str, target: str) -> None:
    if Path(source).name == REPLAY_MANIFEST:  # will be replaced, and is small
        shutil.copyfile(source, target)
    else:
        os.link(source, target)


def _save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    whole = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    try:
        save_file(whole, path)
    except SafetensorError as error:  # tells of a full disk in words only
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def _measure(path: Path, sync: bool = False) -> dict[str, int]:
    """Return size (bytes) and checksum of a file; with `sync` make sure that it is on disk."""
    crc = 0
    with open_file(path) as file:
        while block := file.read(_BLOCK):
            crc = zlib.crc32(block, crc)
        if sync:
            os.fsync(file.fileno())
        return {"bytes": os.fstat(file.fileno()).st_size, "crc32": crc}


def _read_manifest(path: Path) -> dict[str, Any]:
    content = read_object(path / MANIFEST)
    if content.pop("crc32", None) != checksum(content):
        raise CheckpointError(f"{path / MANIFEST} has changed since it was written")
    if content.get("format") != FORMAT:
        raise CheckpointError(f"{path} has the format {content.get('format')!r}, not {FORMAT!r}")
    files = {name: {"bytes": int, "crc32": int} for name in FILES}
    check(content, {"format": str, "step": int, "files": files}, str(path / MANIFEST))
    return content
