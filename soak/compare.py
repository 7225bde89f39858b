"""Whether a run that was killed and resumed left what one never disturbed did."""

import json
import re
from pathlib import Path

import numpy as np

from curious_replay.durable import UNFINISHED
from curious_replay.replay import SavedBuffer
from curious_replay.run.record.checkpoint import UNFINISHED as UNFINISHED_CHECKPOINT
from curious_replay.run.record.checkpoint import Checkpoints
from curious_replay.run.record.checkpoint_files import FILES
from curious_replay.run.record.files import read_lines
from curious_replay.run.record.record_files import REPEATABLE
from curious_replay.run_folder import CHECKPOINTS, METRICS, REPLAY

TEMPORARY = re.compile(rf"({re.escape(UNFINISHED)}|{re.escape(UNFINISHED_CHECKPOINT)}).*")
BY_SESSION = re.compile(r"events/.*|speed\.jsonl|meta\.json|checkpoints/.*")
"""What has a file, or a line, for each start, or bears a number that grows with each save."""


def lines(folder: Path) -> int:
    """How many lines must be the same again."""
    return sum((folder / name).read_bytes().count(b"\n") for name in REPEATABLE)


def step(folder: Path) -> int:
    """The step of the last line of metrics; 0 if there is none yet."""
    path = folder / METRICS
    written = read_lines(path) if path.exists() else []
    return int(written[-1]["step"]) if written else 0


def after_kill(whole: Path, killed: Path) -> list[str]:
    """Differences that can be seen at once: whole lines must be the first ones of the other run."""
    found = []
    for name in REPEATABLE:
        path = killed / name
        content = path.read_bytes() if path.exists() else b""
        written = content[: content.rfind(b"\n") + 1]
        if not (whole / name).read_bytes().startswith(written):
            found.append(f"{name} has other lines after a kill")
    return found


def at_end(whole: Path, killed: Path) -> list[str]:
    """Differences between two runs that are complete."""
    found = [f"left behind: {path}" for path in leftovers(killed)]
    expected, there = _files(whole), _files(killed)
    found += [f"missing: {name}" for name in sorted(expected.keys() - there.keys())]
    found += [f"too many: {name}" for name in sorted(there.keys() - expected.keys())]
    for name in sorted(expected.keys() & there.keys()):
        if expected[name].read_bytes() != there[name].read_bytes():
            found.append(f"{name} differs")
    return found + _checkpoints(whole, killed)


def leftovers(folder: Path) -> list[str]:
    """Temporary files and folders that should be gone."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if TEMPORARY.fullmatch(path.name)
    )


def _files(folder: Path) -> dict[str, Path]:
    """Files that two runs have in common, byte for byte."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path for name, path in found.items() if not BY_SESSION.fullmatch(name)}


def _checkpoints(whole: Path, killed: Path) -> list[str]:
    """Differences between the last checkpoints: weights, optimisers, random states, replay."""
    kept = [Checkpoints(folder / CHECKPOINTS).all() for folder in (whole, killed)]
    steps = [[path.name.rpartition("-")[2] for path in paths] for paths in kept]
    if len(kept[1]) > len(kept[0]) or steps[0][:1] != steps[1][:1]:
        return [f"checkpoints are of the steps {steps[1]}, not {steps[0]}"]
    one, other = kept[0][0], kept[1][0]
    found = [name for name in FILES if (one / name).read_bytes() != (other / name).read_bytes()]
    return [f"{name} of the last checkpoint differs" for name in found + _replay(one, other)]


def _replay(one: Path, other: Path) -> list[str]:
    """Parts of two saved buffers that differ; how they are numbered does not matter."""
    manifests = []
    for path in (one, other):
        content = json.loads((path / "replay/replay.json").read_text())["content"]
        content.pop("number")
        content.pop("chunks")  # may hold rows that were dropped since: the steps are compared below
        content["settings"].pop("directory")
        manifests.append(content)
    found = [f"replay: {name}" for name in manifests[0] if manifests[0][name] != manifests[1][name]]
    steps = [SavedBuffer(path / REPLAY) for path in (one, other)]
    for name in steps[0].fields:
        if not np.array_equal(steps[0].field(name), steps[1].field(name)):
            found.append(f"replay: {name}")
    states = []
    for path in (one, other):
        (state,) = path.glob("replay/save-*/state.npz")
        with np.load(state) as file:
            states.append(dict(file))
    for name, value in states[0].items():
        if not np.array_equal(value, states[1][name], equal_nan=value.dtype.kind == "f"):
            found.append(f"replay: {name}")
    return found
