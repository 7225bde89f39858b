"""What a saved buffer says of itself, checked so thoroughly that compiled code can rely on it.

Checksums find damage. They do not find a save that was made to do harm, and compiled code reads
whatever memory the numbers in it lead to: so each number is compared with all that it must fit.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from curious_replay.durable import checksum
from curious_replay.replay.batch import Counts
from curious_replay.replay.fields import FLAGS, Array, Layout
from curious_replay.replay.saves.chunkfiles import LoadError, SavedChunk
from curious_replay.replay.sumtree import LARGEST
from curious_replay.untrusted import (
    UnreadableError,
    check,
    check_arrays,
    folder_itself,
    raised_as,
    read_arrays,
    read_object,
)

FORMAT = "curious-replay buffer 3"
SECOND = "curious-replay buffer 2"
"""The format before there was an online queue, and before fields could be written again."""
FIRST = "curious-replay buffer 1"
"""The format before signals were kept. Its saves are read as if they had been told none."""
MANIFEST = "replay.json"
STATE = "state.npz"
COUNTS = tuple(field.name for field in fields(Counts))

_WANTED: dict[str, Any] = {
    "format": str,
    "settings": {
        "capacity": int, "length": int, "num_envs": int, "window": str, "cross_episodes": bool,
        "directory": (str, None), "repeats": bool, "online": bool,
    },
    "rule": dict,
    "memory": [dict],
    "signals": [str],
    "random": {
        "bit_generator": str, "state": {"state": int, "inc": int}, "has_uint32": int,
        "uinteger": int,
    },
    "counts": dict.fromkeys(COUNTS, int),
    "layout": ([{"name": str, "dtype": str, "shape": [int]}], None),
    "rows": (int, None),
    "number": int,
    "chunks": [{field.name: int for field in fields(SavedChunk)} | {"crc32": [int]}],
}  # fmt: skip
_NEW = ("online", "written", "unwritten")
_WANTED_SECOND: dict[str, Any] = {
    **_WANTED,
    **{
        part: {name: kind for name, kind in _WANTED[part].items() if name not in _NEW}
        for part in ("settings", "counts")
    },
}
_WANTED_FIRST: dict[str, Any] = {
    **{name: wanted for name, wanted in _WANTED.items() if name not in ("memory", "signals")},
    "settings": {
        name: kind for name, kind in _WANTED_SECOND["settings"].items() if name != "repeats"
    },
    "minimum": [(float, None)],
    "counts": dict.fromkeys(("added", "sampled", "updated", "stale", "refused"), int),
}
_DTYPE = re.compile(r"[<>|][biufcmM]\d{1,2}(\[\w{1,8}\])?")
_LATEST = 2**62
"""Times and ids stay below, so that the next ones are numbers of 64 bits too."""


class ForeignError(LoadError):
    """The save is of another version; it is not to be written over either."""


def save_name(number: int) -> str:
    """Name of the folder of a save."""
    return f"save-{number:06d}"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the content of a save's manifest, all of it of the right kind and fitting together."""
    path = folder / MANIFEST
    if not path.is_file():
        raise LoadError(f"{folder} is not a saved replay buffer: it has no {MANIFEST}")
    with raised_as(LoadError):
        whole = read_object(path)
        content = whole.get("content")
        found = content.get("format") if isinstance(content, dict) else None
        if not isinstance(content, dict) or found is None:
            raise LoadError(f"{path} is damaged or not a saved replay buffer")
        if found not in (FORMAT, SECOND, FIRST):
            raise ForeignError(
                f"{path} has the format {found!r}; this version reads {FORMAT!r}, {SECOND!r} and "
                f"{FIRST!r}"
            )
        if whole.get("crc32") != checksum(content):
            raise LoadError(f"{path} is damaged: its checksum does not match its content")
        if found == FIRST:
            content = _from_first(content, path)
        if found != FORMAT:
            content = _from_second(content, path)
        check(content, _WANTED, str(path))
        _check_content(content, path)
    return content


def read_state(folder: Path, content: Mapping[str, Any]) -> dict[str, Array]:
    """Return the bookkeeping of all steps, from the folder of a save; see `_state` in saving.py."""
    path = folder / STATE
    with raised_as(LoadError):
        folder_itself(folder)
        state = read_arrays(path)
        settings = content["settings"]
        envs, stripe = settings["num_envs"], settings["capacity"] // settings["num_envs"]
        slots = envs * stripe
        parts = [f"priorities_{i}" for i in range(len(content["memory"]))]
        wanted = {
            "clock": ("int64", (3, envs)),
            "ends": ("bool", (slots,)),
            "visits": ("int32", (slots,)),
            "judged": ("int32", (slots,)),
            "drawable": ("bool", (slots,)),
            **dict.fromkeys(parts, ("float64", (slots,))),
            "told": ("float32", (len(content["signals"]), slots)),
            "online": ("int64", (envs,)),
        }
        if content["format"] != FORMAT:
            state["online"] = np.zeros(envs, np.int64)
        if content["format"] == FIRST and "visits" in state:
            state |= {"judged": state["visits"], "told": np.empty((0, slots), np.float32)}
        check_arrays(state, wanted, path)
        head, oldest, episode = state["clock"]
        if np.any((oldest < 0) | (oldest > head) | (episode < 0) | (head > _LATEST // envs)):
            raise LoadError(f"{path} is damaged: an environment's steps begin after they end")
        if np.any(head - oldest > stripe):
            raise LoadError(f"{path} is damaged: more steps than fit are said to be stored")
        if np.any((state["online"] < 0) | (state["online"] > head)):
            raise LoadError(f"{path} is damaged: steps were replayed before they came")
        if np.any((state["judged"] < 0) | (state["judged"] > state["visits"])):
            raise LoadError(f"{path} is damaged: visits and judged visits must be 0 or more")
        for name in parts:
            if not np.all((state[name] >= 0) & (state[name] <= LARGEST)):
                raise LoadError(f"{path} is damaged: priorities must be from 0 to {LARGEST}")
        _check_chunks(content, head, oldest, folder)
    return {name: state[name] for name in wanted}


def _from_first(content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return what a manifest of the first format would say in the second."""
    check(content, _WANTED_FIRST, str(path))
    rule = content["rule"]
    rules = [rule["first"], rule["second"]] if "second" in rule else [rule]
    return {
        **{name: value for name, value in content.items() if name != "minimum"},
        "settings": {**content["settings"], "repeats": True},
        "counts": {**content["counts"], "drawn": 0, "copies": 0},
        "signals": [],
        "memory": [
            {} if minimum is None else {f"{part.get('signal')}_minimum": minimum}
            for part, minimum in zip(rules, content["minimum"], strict=False)
        ],
    }


def _from_second(content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return what a manifest of the second format would say in the present one."""
    check(content, _WANTED_SECOND, str(path))
    return {
        **content,
        "settings": {**content["settings"], "online": False},
        "counts": {**content["counts"], **dict.fromkeys(_NEW, 0)},
    }


def _check_content(content: Mapping[str, Any], path: Path) -> None:
    settings, random = content["settings"], content["random"]
    if not 1 <= settings["num_envs"] <= settings["capacity"]:
        raise UnreadableError(f"{path}: num_envs must be from 1 to capacity")
    if not 1 <= len(content["memory"]) <= 2:
        raise UnreadableError(f"{path}: memory must be one for each of 1 or 2 rules")
    for memory in content["memory"]:
        for name, value in memory.items():
            check(value, float, f"{path}, memory, {name}")
    if len(set(content["signals"])) < len(content["signals"]):
        raise UnreadableError(f"{path}: signals must differ in name")
    if random["bit_generator"] != "PCG64":
        raise UnreadableError(f"{path}: random numbers must be those of PCG64")
    for number, most in (
        *((each, 2**128) for each in random["state"].values()),
        (random["has_uint32"], 2), (random["uinteger"], 2**32),
        *((each, _LATEST) for each in content["counts"].values()),
    ):  # fmt: skip
        if not 0 <= number < most:
            raise UnreadableError(f"{path}: {number} must be from 0 to {most - 1}")
    if content["layout"] is not None:
        _check_layout(content, path)


def _check_layout(content: Mapping[str, Any], path: Path) -> None:
    if content["rows"] is None or not 1 <= content["rows"] < _LATEST:
        raise UnreadableError(f"{path}: rows must be at least 1")
    shapes = {}
    for field in content["layout"]:
        if not _DTYPE.fullmatch(field["dtype"]):
            raise UnreadableError(f"{path}: {field['dtype']!r} is no dtype of numbers or booleans")
        if not all(0 <= axis < _LATEST for axis in field["shape"]) or len(field["shape"]) > 31:
            raise UnreadableError(f"{path}: {field['shape']} cannot be the shape of a step's field")
        shapes[field["name"]] = field["shape"]
    missing = [flag for flag in FLAGS if shapes.get(flag) != []]
    if missing or len(shapes) < len(content["layout"]):
        raise UnreadableError(f"{path}: fields must differ in name, and {FLAGS} must be among them")
    for name in shapes:
        if any(other.startswith(f"{name}/") for other in shapes):
            raise UnreadableError(f"{path}: {name!r} cannot be a field and a group of fields")
    try:
        Layout.from_json(content["layout"])
    except (TypeError, ValueError) as error:
        raise UnreadableError(f"{path}: {error}") from error


def _check_chunks(content: Mapping[str, Any], head: Array, oldest: Array, folder: Path) -> None:
    """Refuse chunks that are not exactly those of the stored steps."""
    rows = content["rows"] or 1
    wanted = {}
    for env, (low, high) in enumerate(zip(oldest.tolist(), head.tolist(), strict=True)):
        for number in range(low // rows, -(-high // rows)):
            span = max(0, low - number * rows), min(rows, high - number * rows)
            if span[0] < span[1]:
                wanted[env, number] = span
    chunks = [SavedChunk(**values) for values in content["chunks"]]
    count = len(content["layout"] or ())
    fit = all(
        0 <= chunk.start <= low and chunk.stop == high and len(chunk.crc32) == count
        for chunk in chunks
        for low, high in [wanted.get((chunk.env, chunk.number), (-1, -1))]
    )
    found = [(chunk.env, chunk.number) for chunk in chunks]
    if not fit or sorted(found) != sorted(wanted) or (wanted and content["layout"] is None):
        raise LoadError(f"{folder} is damaged: its chunks are not those of the stored steps")
