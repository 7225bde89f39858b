"""What a sampler saves, and how it goes on from there."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curious_replay.errors import UsageError
from curious_replay.replay.batch import Counts
from curious_replay.replay.mixture import Mixture
from curious_replay.replay.rule import Rule
from curious_replay.replay.saves.rule_json import rule_to_json, same_rule
from curious_replay.torchrl.steps import FollowedSteps, Shape
from curious_replay.untrusted import (
    UnreadableError,
    check,
    check_arrays,
    parse_json,
    read_arrays,
)

FORMAT = "curious-replay torchrl sampler 1"
FILE = "curious.npz"

Arrays = Mapping[str, npt.NDArray[Any]]
_WANTED = {
    "format": str,
    "shape": {"rows": int, "beside": [int], "length": int, "window": str, "cross_episodes": bool},
    "rule": dict,
    "memory": [dict],
    "signals": [str],
    "counts": {field.name: int for field in fields(Counts)},
    "written": int,
}


def describe(steps: FollowedSteps) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return all that is to be saved: JSON values, and copies of arrays."""
    windows, parts, history = steps.windows, steps.sampler.parts, steps.sampler.history
    content = {
        "format": FORMAT,
        "shape": {**steps.shape._asdict(), "beside": list(steps.shape.beside)},
        "rule": rule_to_json(steps.sampler.rule),
        "memory": [dict(part.memory) for part in parts],
        "signals": list(history.names),
        "counts": asdict(steps.counts),
        "written": steps.written,
    }
    arrays = {
        "clock": windows.clock,
        "ends": windows.ends,
        "visits": history.visits,
        "judged": history.judged,
        "told": history.told,
        "drawn": steps.drawn,
        "drawable": steps.drawable,
        **{f"priorities_{i}": part.values for i, part in enumerate(parts)},
    }
    return content, {name: array.copy() for name, array in arrays.items()}


def restore(
    rule: Rule | Mixture, content: Mapping[str, Any], arrays: Arrays, where: str
) -> FollowedSteps:
    """Make the bookkeeping that `describe` described; `where` says in errors what was read.

    By another rule than the saved one, steps have the priorities that it makes of their visits and
    last signals.
    """
    if content.get("format") != FORMAT:
        raise UnreadableError(
            f"{where} has the format {content.get('format')!r}; this version reads {FORMAT!r}"
        )
    check(content, _WANTED, where)
    shape = Shape(**content["shape"])._replace(beside=tuple(content["shape"]["beside"]))
    _check_arrays(content, shape, arrays, where)
    steps = FollowedSteps(rule, shape)
    steps.windows.restore(arrays["clock"], arrays["ends"])
    steps.drawn[:] = arrays["drawn"]
    steps.written = content["written"]
    steps.counts = Counts(**content["counts"])
    history = steps.sampler.history
    history.restore(arrays["visits"], arrays["judged"], content["signals"], arrays["told"])
    drawable = np.flatnonzero(arrays["drawable"])
    same = same_rule(rule_to_json(rule), content["rule"])
    for i, part in enumerate(steps.sampler.parts):
        if same:
            part.restore(arrays[f"priorities_{i}"], drawable, content["memory"][i])
        else:
            for memory in content["memory"]:
                part.memory.update(memory)
            part.judge_all(steps.slots_of_all(), drawable, history)
    return steps


def _check_arrays(content: Mapping[str, Any], shape: Shape, arrays: Arrays, where: str) -> None:
    if min(shape.rows, *shape.beside, shape.length) < 1 or shape.window not in ("last", "first"):
        raise UnreadableError(f"{where} is damaged: there are no slices of {shape}")
    slots = shape.rows * shape.envs
    parts = {f"priorities_{i}": ("float64", (slots,)) for i in range(len(content["memory"]))}
    wanted = {
        "clock": ("int64", (3, shape.envs)),
        **dict.fromkeys(("ends", "drawn", "drawable"), ("bool", (slots,))),
        **dict.fromkeys(("visits", "judged"), ("int32", (slots,))),
        "told": ("float32", (len(content["signals"]), slots)),
        **parts,
    }
    check_arrays(arrays, wanted, Path(where))
    head, oldest, _ = arrays["clock"]
    if np.any((oldest < 0) | (head < oldest) | (head > oldest + shape.rows)) or np.any(
        head > content["written"]
    ):
        raise UnreadableError(f"{where} is damaged: its steps begin after they end")


def write(folder: Path, content: Mapping[str, Any], arrays: Arrays) -> None:
    """Write one file into `folder`, in one step: the one of before, or the new one, is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f"{FILE}.new"
    with temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, content=np.array(json.dumps(content)), **arrays)
    temporary.replace(folder / FILE)


def read(folder: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return what `write` wrote."""
    path = folder / FILE
    if not path.exists():
        raise UsageError(f"{folder} is not what CuriousSampler.dumps wrote: it has no {FILE}")
    arrays = read_arrays(path)
    text = arrays.pop("content", np.array(""))
    content = parse_json(str(text).encode(), str(path))
    if not isinstance(content, dict):
        raise UnreadableError(f"{path} is damaged: it does not say what it holds")
    return content, arrays
