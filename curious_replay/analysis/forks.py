"""Runs that are forks: what they share with others, which is evidence only once.

The record of a fork begins with the lines of its parent, up to the checkpoint that it was forked
from: its trunk. meta.json names the parent ("parent"), whose own parent is named there too, so the
history of a run is known when the folders of its ancestors are gone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curious_replay.analysis.load import Run


@dataclass(frozen=True)
class Part:
    """A run, and the frame up to which others have the same lines: after it they are its own."""

    run: Run
    begin: int


def origin(run: Run) -> str:
    """Return what a run is a fork of, in words; nothing if it is none."""
    parent = run.parent
    if parent is None:
        return ""
    return (
        f"{Path(parent['folder']).name} at step {parent['step']:,} (checkpoint "
        f"{parent['checkpoint']}, checksum {parent['checksum']})"
    )


def shared(first: Run, second: Run) -> int:
    """Return the frame up to which two runs are one; 0 if they never were."""
    until = 0
    for (one, end), (other, its_end) in zip(_history(first), _history(second), strict=False):
        if one != other or math.isinf(min(end, its_end)):
            break
        until = int(min(end, its_end))
        if end != its_end:
            break
    return until


def parts(runs: Sequence[Run]) -> list[Part]:
    """Return what is each run's own.

    That is what comes after its fork, and after the last fork of it among these runs.
    """
    return [
        Part(run, max([run.forked_at, *(shared(run, other) for other in runs if other is not run)]))
        for run in runs
    ]


def trunks(runs: Sequence[Run]) -> list[Part]:
    """Return what comes before the `parts`, each once.

    Of each, a run that has it, and the frame at which it ends.
    """
    kept: list[Part] = []
    for part in sorted(parts(runs), key=lambda part: -part.begin):
        if part.begin > max((shared(part.run, other.run) for other in kept), default=0):
            kept.append(part)
    return kept


def only_trunks(runs: Sequence[Run]) -> list[Run]:
    """Return runs that ended where forks of them begin: they have nothing of their own."""
    return [
        run
        for run in runs
        if any(run.frames_done <= shared(run, other) for other in runs if other is not run)
        and run.frames_done
    ]


def not_independent(runs: Sequence[Run]) -> list[list[Run]]:
    """Return runs of one method that share a trunk, together; none where each has its own."""
    groups: list[list[Run]] = []
    for run in runs:
        mine = next((each for each in groups if any(shared(run, other) for other in each)), None)
        if mine is None:
            groups.append([run])
        else:
            mine.append(run)
    return [group for group in groups if len(group) > 1]


def _history(run: Run) -> list[tuple[str, float]]:
    """Return which runs a run's lines are of, and up to which frame, the oldest first."""
    own: list[tuple[str, float]] = [(_name(run.meta, run.folder), math.inf)]
    parent = run.parent
    while parent is not None:
        own.insert(0, (_name(parent, parent["folder"]), parent["frame"]))
        parent = parent.get("parent")
    return own


def _name(known: Mapping[str, Any], folder: Path | str) -> str:
    """Return what names a run wherever its folder is; of an older one, its folder."""
    return str(known.get("id") or Path(folder).resolve())
