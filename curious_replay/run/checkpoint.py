"""Checkpoints: all of a run at one moment, in one folder that is whole or not there.

    checkpoints/000007-step-70000/
        agent.safetensors    parameters, optimisers, the agent's random state
        policy.safetensors   what the policy remembers, and its random state
        state.json, state.npz   counters, environments, the batch that is next, random states
        replay/              the buffer; rows that the checkpoint before has are shared by links
        manifest.json        sizes and checksums of the above, written last

A checkpoint is written under another name and renamed when all of it is on disk. The last one and
the one before are kept. Reading checks everything; a damaged checkpoint is passed over.
"""

import json
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from curious_replay.agents.blocks.weights import read_tensors
from curious_replay.replay import Mixture, ReplayBuffer, Rule
from curious_replay.run.files import sync_folder, write_json
from curious_replay.run.plain import pack, unpack
from curious_replay.untrusted import (
    UnreadableError,
    check,
    folder_itself,
    of_the_disk,
    open_file,
    raised_as,
    read_arrays,
    read_json,
    read_object,
)

FORMAT = "curious-replay checkpoint 1"
MANIFEST = "manifest.json"
UNFINISHED = ".new-"
KEPT = 2
FILES = ("agent.safetensors", "policy.safetensors", "state.json", "state.npz")
"""What the manifest vouches for; the replay has checksums of its own."""
_BLOCK = 16 * 2**20
_NAME = re.compile(r"(\d{6,})-step-(\d+)")

Note = Callable[[str], None]


class CheckpointError(UnreadableError):
    """There is no whole checkpoint, or this one is damaged."""


class AllDamagedError(CheckpointError):
    """All checkpoints of a run were read, and none is whole."""


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds; its replay is read on demand."""

    path: Path
    step: int
    state: dict[str, Any]
    agent: dict[str, Tensor]
    policy: dict[str, Tensor]

    def load_replay(self, directory: Path | None, rule: Rule | Mixture) -> ReplayBuffer:
        """The buffer, with its steps in memory or in files below `directory`."""
        with raised_as(CheckpointError):
            folder = folder_itself(self.path / "replay")
        return ReplayBuffer.load(folder, directory=directory, rule=rule)

    @contextmanager
    def put_to_use(self) -> Iterator[None]:
        """Whatever goes wrong within is put down to what was saved: it does not fit this run."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError,
                AssertionError, MemoryError) as error:  # fmt: skip
            raise CheckpointError(
                f"{self.path} does not fit the run that it is in: {type(error).__name__}: {error}"
            ) from error


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._base: Path | None = None  # whose replay files can be shared

    def all(self) -> list[Path]:
        """Finished checkpoints, newest first."""
        with raised_as(CheckpointError):
            folder_itself(self.folder)
        if not self.folder.is_dir():
            return []
        found = [path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        return sorted(found, key=_serial, reverse=True)

    def save(
        self,
        step: int,
        state: dict[str, Any],
        agent: Mapping[str, Tensor],
        policy: Mapping[str, Tensor],
        replay: ReplayBuffer,
    ) -> Path:
        """Write a checkpoint and remove those that are no longer needed."""
        self.tidy()
        base = _serial(self._base) if self._base else 0
        for path in self.all():  # damaged ones that were passed over
            if _serial(path) > base:
                self._remove(path)
        serial = base + 1
        name = f"{serial:06d}-step-{step}"
        new = self.folder / f"{UNFINISHED}{name}"
        new.mkdir(parents=True)
        try:
            if self._base is not None:
                _link_tree(self._base / "replay", new / "replay")
            replay.save(new / "replay")
            _write_all_but_replay(new, step, state, agent, policy)
        except BaseException:  # on a full disk, what is no use should not take room
            shutil.rmtree(new, ignore_errors=True)
            raise
        self._base = new.rename(self.folder / name)
        sync_folder(self.folder)
        self.tidy()
        return self._base

    def tidy(self) -> None:
        """Remove what a killed process left unfinished, and checkpoints that are not needed.

        Those that are newer than the one in use were found to be damaged: they stay until there is
        a better one.
        """
        for path in self.folder.glob(f"{UNFINISHED}*"):
            shutil.rmtree(path, ignore_errors=True)
        base = _serial(self._base) if self._base else 0
        for old in [path for path in self.all() if _serial(path) <= base][KEPT:]:
            self._remove(old)

    def read(self, path: Path) -> Saved:
        """Read and check all but the replay of a checkpoint."""
        with raised_as(CheckpointError):
            content = _read_manifest(folder_itself(path))
            for name, expected in content["files"].items():
                if _measure(path / name) != expected:
                    raise CheckpointError(f"{path / name} has changed since it was written")
            arrays = read_arrays(path / "state.npz")
            try:
                state = unpack(read_json(path / "state.json"), arrays)
            except (LookupError, TypeError, ValueError) as error:
                raise CheckpointError(f"{path / 'state.json'} is damaged: {error!r}") from error
            check(state, dict, str(path / "state.json"))
            agent, policy = (read_tensors(path / f"{n}.safetensors") for n in ("agent", "policy"))
        return Saved(path, content["step"], state, agent, policy)

    def newest(self, note: Note) -> Saved:
        """The newest checkpoint that is whole, its replay left aside."""
        for path in self.all():
            try:
                return self.read(path)
            except CheckpointError as error:
                note(f"{error}: using the checkpoint before")
        raise CheckpointError(f"{self.folder} has no whole checkpoint")

    def resume(
        self, directory: Path | None, rule: Rule | Mixture, note: Note
    ) -> tuple[Saved, ReplayBuffer] | None:
        """The newest checkpoint that is whole, replay included; None if none was ever finished.

        Damaged ones are passed over. The next save takes their place.
        """
        found = self.all()
        kind: type[CheckpointError] = AllDamagedError
        for path in found:
            try:
                saved = self.read(path)
                replay = saved.load_replay(directory, rule)
            except UnreadableError as error:
                note(f"{error}: going back to the checkpoint before")
                kind = CheckpointError if of_the_disk(error) else kind
                continue
            self._base = path
            return saved, replay
        if found:
            raise kind(f"none of the checkpoints in {self.folder} is whole")
        return None

    def _remove(self, path: Path) -> None:
        """Remove a checkpoint; a kill in between leaves nothing that looks like one."""
        doomed = path.rename(self.folder / f"{UNFINISHED}{path.name}")
        shutil.rmtree(doomed, ignore_errors=True)


def _serial(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    assert match is not None
    return int(match[1])


def _link_tree(source: Path, target: Path) -> None:
    """Let `target` hold the same files as `source`; nothing where links are not possible.

    A save of the buffer into `target` then finds the one before and adds rows to it. Rows that a
    checkpoint counts on are never changed, so sharing does it no harm.
    """
    with suppress(OSError):
        shutil.copytree(source, target, copy_function=_link_or_copy)
        return
    shutil.rmtree(target, ignore_errors=True)


def _link_or_copy(source: str, target: str) -> None:
    if Path(source).name == "replay.json":  # will be replaced, and is small
        shutil.copyfile(source, target)
    else:
        os.link(source, target)


def _write_all_but_replay(
    new: Path,
    step: int,
    state: dict[str, Any],
    agent: Mapping[str, Tensor],
    policy: Mapping[str, Tensor],
) -> None:
    """Write agent, policy and state of a checkpoint, and last its manifest."""
    _save_tensors(new / "agent.safetensors", agent)
    _save_tensors(new / "policy.safetensors", policy)
    arrays: dict[str, np.ndarray] = {}
    packed = pack(state, arrays)
    (new / "state.json").write_text(json.dumps(packed, allow_nan=False))
    with (new / "state.npz").open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    files = {path.name: _measure(path, sync=True) for path in new.iterdir() if path.is_file()}
    content = {"format": FORMAT, "step": step, "files": files}
    write_json(new / MANIFEST, {**content, "crc32": _checksum(content)})


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
    """Size and checksum of a file, perhaps after making sure that it is on disk."""
    crc = 0
    with open_file(path) as file:
        while block := file.read(_BLOCK):
            crc = zlib.crc32(block, crc)
        if sync:
            os.fsync(file.fileno())
        return {"bytes": os.fstat(file.fileno()).st_size, "crc32": crc}


def _checksum(content: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def _read_manifest(path: Path) -> dict[str, Any]:
    content = read_object(path / MANIFEST)
    if content.pop("crc32", None) != _checksum(content):
        raise CheckpointError(f"{path / MANIFEST} has changed since it was written")
    if content.get("format") != FORMAT:
        raise CheckpointError(f"{path} has the format {content.get('format')!r}, not {FORMAT!r}")
    files = {name: {"bytes": int, "crc32": int} for name in FILES}
    check(content, {"format": str, "step": int, "files": files}, str(path / MANIFEST))
    return content
