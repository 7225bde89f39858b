"""Saving and loading, such that a kill at any moment leaves the last whole save in place.

A save folder holds

    replay.json     everything small, and which save counts; replaced in one step at the very end
    save-<n>/       state.npz: per-step bookkeeping; chunk-*.bin: the steps themselves

A new save shares the chunk files of the one before by hard links, and a mapped buffer shares its
own; only rows that are new since then are written, and chunks of which fields were written again.
Everything that is read back is checked against checksums.
"""

import json
import os
import re
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curious_replay.durable import checksum, sync_folder, write_bytes
from curious_replay.replay.fields import Layout
from curious_replay.replay.mixture import Mixture
from curious_replay.replay.priority import Uniform
from curious_replay.replay.rule import Rule
from curious_replay.replay.saves.chunkfiles import (
    LoadError,
    SavedChunk,
    load_chunk,
    save_chunk,
)
from curious_replay.replay.saves.manifest import (
    FIRST,
    FORMAT,
    MANIFEST,
    STATE,
    ForeignError,
    read_manifest,
    read_state,
    save_name,
)
from curious_replay.replay.saves.rule_json import rule_from_json, rule_to_json, same_rule

if TYPE_CHECKING:
    from curious_replay.replay.buffer import ReplayBuffer

_BLOCK = 16_384  # windows that are looked at together


def save(buffer: "ReplayBuffer", folder: Path) -> None:
    """Write the next save into `folder`, make it the one that counts, remove those before."""
    folder.mkdir(parents=True, exist_ok=True)
    previous = _previous(folder)
    older = [path for path in folder.iterdir() if re.fullmatch(r"save-\d{6,}", path.name)]
    number = 1 + max((int(path.name[5:]) for path in older), default=0)
    new, old = folder / save_name(number), folder / save_name(previous["number"])
    new.mkdir()
    chunks = _save_chunks(buffer, new, old, [SavedChunk(**c) for c in previous["chunks"]])
    with (new / STATE).open("wb") as file:
        np.savez(file, allow_pickle=False, **_state(buffer))
        os.fsync(file.fileno())
    sync_folder(new)
    content = {**_describe(buffer), "number": number, "chunks": [asdict(c) for c in chunks]}
    _write_manifest(folder, content)
    for path in older:  # the one before, and those that were never finished
        shutil.rmtree(path, ignore_errors=True)


def _previous(folder: Path) -> dict[str, Any]:
    """Return the manifest of the last save in `folder`.

    If there is none, or a damaged one, it is one without chunks.
    """
    try:
        return read_manifest(folder)
    except ForeignError:
        raise
    except LoadError:
        return {"number": 0, "chunks": []}


def load(
    kind: type["ReplayBuffer"],
    folder: Path,
    directory: str | Path | None,
    rule: Rule | Mixture | None,
) -> "ReplayBuffer":
    """Make a buffer from what `save` wrote."""
    content = read_manifest(folder)
    settings = content["settings"]
    if directory != "as saved":
        settings["directory"] = directory
    path = folder / save_name(content["number"])
    state = read_state(path, content)  # first, as it shows that the settings are what they seem
    other = rule is not None and not same_rule(rule_to_json(rule), content["rule"])
    parts = len(content["memory"])
    try:
        # Of another rule the saved priorities are not needed: any rule of as many parts will do.
        placeholder = Mixture(Uniform(), Uniform(), 0.0) if parts > 1 else Uniform()
        made = placeholder if other else rule or rule_from_json(content["rule"])
        buffer = kind(rule=made, **settings)
    except (ValueError, TypeError) as error:
        raise LoadError(f"{folder / MANIFEST} cannot be loaded: {error}") from error
    if len(buffer.sampler.parts) != parts:
        raise LoadError(f"{folder / MANIFEST} is damaged: it is of another number of rules")
    _restore_state(buffer, content, state)
    _check_drawable(buffer, path / STATE)
    if other and rule is not None:
        _put_on(buffer, rule, folder, content["format"])
    if content["layout"] is not None:
        storage = buffer.make_storage(Layout.from_json(content["layout"]), content["rows"])
        for values in content["chunks"]:  # oldest first: in memory, rows may take over older ones
            load_chunk(storage, SavedChunk(**values), path)
    return buffer


def _put_on(buffer: "ReplayBuffer", rule: Rule | Mixture, folder: Path, saved_format: str) -> None:
    """Let another rule take over; one that needs signals the format did not have begins cold."""
    try:
        buffer.put_on(rule)
    except ValueError as error:
        if saved_format != FIRST:
            raise
        buffer.put_on(rule, cold=True)
        warnings.warn(
            f"{folder} kept no signals: {error}. Its steps have p_max until they are trained on",
            stacklevel=4,
        )


def _check_drawable(buffer: "ReplayBuffer", path: Path) -> None:
    """Refuse steps whose window reaches beyond what is stored: reading it would read anything."""
    windows = buffer.windows
    drawable = np.flatnonzero(buffer.sampler.parts[0].tree.leaves)
    for block in np.split(drawable, range(_BLOCK, len(drawable), _BLOCK)):
        envs, starts, _ = windows.around(block, windows.length)
        if np.any(starts < windows.oldest[envs]) or np.any(
            starts + windows.length > windows.head[envs]
        ):
            raise LoadError(f"{path} is damaged: a step can be drawn whose window is not stored")


def _save_chunks(
    buffer: "ReplayBuffer", new: Path, old: Path, previous: list[SavedChunk]
) -> list[SavedChunk]:
    storage = buffer.storage
    if storage is None:
        return []
    shared = {(entry.env, entry.number): entry for entry in previous}
    chunks = []
    for env, (oldest, head) in enumerate(
        zip(buffer.windows.oldest.tolist(), buffer.windows.head.tolist(), strict=True)
    ):
        for number in range(oldest // storage.rows, -(-head // storage.rows)):
            start = max(0, oldest - number * storage.rows)
            stop = min(storage.rows, head - number * storage.rows)
            if start < stop:
                found = shared.get((env, number))
                chunks.append(save_chunk(storage, env, number, start, stop, new, old, found))
    storage.saved = {(entry.env, entry.number): entry for entry in chunks}
    return chunks


def _state(buffer: "ReplayBuffer") -> dict[str, Any]:
    windows, parts, history = buffer.windows, buffer.sampler.parts, buffer.sampler.history
    return {
        "clock": windows.clock,
        "ends": windows.ends,
        "visits": history.visits,
        "judged": history.judged,
        "drawable": parts[0].tree.leaves > 0,
        **{f"priorities_{i}": part.values for i, part in enumerate(parts)},
        "told": history.told,
        "online": np.zeros(buffer.num_envs, np.int64)
        if buffer.queue is None
        else buffer.queue.next,
    }


def _restore_state(
    buffer: "ReplayBuffer", content: Mapping[str, Any], state: Mapping[str, Any]
) -> None:
    buffer.windows.restore(state["clock"], state["ends"])
    buffer.sampler.history.restore(
        state["visits"], state["judged"], content["signals"], state["told"]
    )
    drawable = np.flatnonzero(state["drawable"])
    for i, (part, memory) in enumerate(zip(buffer.sampler.parts, content["memory"], strict=True)):
        part.restore(state[f"priorities_{i}"], drawable, memory)
    if buffer.queue is not None:
        buffer.queue.next[:] = state["online"]
    buffer.rng.bit_generator.state = content["random"]
    buffer.counts = type(buffer.counts)(**content["counts"])


def _describe(buffer: "ReplayBuffer") -> dict[str, Any]:
    storage = buffer.storage
    return {
        "format": FORMAT,
        "settings": {
            "capacity": buffer.capacity,
            "length": buffer.length,
            "num_envs": buffer.num_envs,
            "window": buffer.window,
            "cross_episodes": buffer.cross_episodes,
            "directory": None if buffer.directory is None else str(buffer.directory),
            "repeats": buffer.repeats,
            "online": buffer.queue is not None,
        },
        "rule": rule_to_json(buffer.rule),
        "memory": [dict(part.memory) for part in buffer.sampler.parts],
        "signals": buffer.sampler.history.names,
        "random": buffer.rng.bit_generator.state,
        "counts": asdict(buffer.counts),
        "layout": storage and storage.layout.to_json(),
        "rows": storage and storage.rows,
    }


def _write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    whole = {"crc32": checksum(content), "content": content}
    write_bytes(folder / MANIFEST, json.dumps(whole).encode())
