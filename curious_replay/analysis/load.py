"""Run folders: settings, tables, schedules.

A `Run` is one folder; its tables (lines.py) are read when they are first asked for. Folders that
hold no readable run are named.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curious_replay.analysis.lines import Array, Columns, read_columns, read_last
from curious_replay.extras import require
from curious_replay.run_folder import (
    CHECKPOINT,
    CHECKPOINTS,
    CONFIG,
    EPISODES,
    META,
    METRICS,
    PROBE,
    SPEED,
)
from curious_replay.untrusted import UnreadableError, check, read_object

if TYPE_CHECKING:
    import pandas as pd

COUNT = (int, None)
USED: dict[str, Any] = {
    "choice.env": (str, None), "choice.agent": (str, None), "choice.replay": (str, None),
    "choice.scale": (str, None), "train.steps": (float, None), "train.prefill": COUNT,
    "env.action_repeat": COUNT, "replay.capacity": COUNT, "replay.clear_at_change": COUNT,
    "seed": COUNT, "env.schedule": (list, None),
}  # fmt: skip
"""Settings that analyses rely on, and what kind of value each has."""
PARENT: dict[str, Any] = {
    "id": (str, None), "folder": str, "step": int, "frame": int, "checkpoint": str, "checksum": str,
}  # fmt: skip
"""What meta.json says of the run that a fork is of; see run/forking.py."""
TABLES = ("metrics", "episodes", "speed", "probes")
"""What a run has tables of."""
MOST = 2**62
"""Counters beyond this are damage."""


@dataclass(frozen=True)
class Run:
    """One run folder."""

    folder: Path
    config: Mapping[str, Any]
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.name

    @property
    def seed(self) -> int:
        """Seed of the run; -1 if it is not known."""
        found = self.config.get("seed", self.meta.get("seed", -1))
        return found if isinstance(found, int) else -1

    @property
    def parent(self) -> Mapping[str, Any] | None:
        """What it is a fork of: folder, step, frame, checkpoint, and the parent of that run."""
        return self.meta.get("parent")

    @property
    def forked_at(self) -> int:
        """The frame at which it was forked: what was recorded up to it is its parent's; or 0."""
        return 0 if self.parent is None else int(self.parent["frame"])

    @property
    def starts(self) -> list[Mapping[str, Any]]:
        """What was noted (commit, command, machine) when it was begun, and each time it went on."""
        return [self.meta, *(self.meta.get("resumes") or ())]

    def setting(self, path: str) -> Any:
        """Return a setting by its dotted path ("replay.alpha"); None if there is none.

        One word is a choice: "env", "agent", "replay", "scale", or the seed.
        """
        value: Any = self.config
        for part in _parts(path):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def has(self, path: str) -> bool:
        """Return whether there is such a setting; its value may be None."""
        value: Any = self.config
        for part in _parts(path):
            if not isinstance(value, Mapping) or part not in value:
                return False
            value = value[part]
        return True

    @cached_property
    def metrics(self) -> Columns:
        """metrics.jsonl: a line for each interval of training."""
        return read_columns(self.folder / METRICS)

    @cached_property
    def episodes(self) -> Columns:
        """episodes.jsonl: a line for each episode, of training and evaluation."""
        return read_columns(self.folder / EPISODES)

    @cached_property
    def speed(self) -> Columns:
        """speed.jsonl: whatever depends on the clock, a line for each interval of training."""
        return read_columns(self.folder / SPEED)

    @cached_property
    def probes(self) -> Columns:
        """probe.jsonl: how well the world model predicts test scenes (see model_error.py)."""
        return read_columns(self.folder / PROBE)

    def frame(self, table: str = "metrics") -> "pd.DataFrame":
        """Return one of its `TABLES` as a pandas DataFrame, one row for each line of the file.

        In front of what the lines have are the run's folder, env, agent, replay, scale and seed, so
        that frames of several runs can be put together.
        """
        require("frame()", "pandas")
        import pandas as pd  # noqa: PLC0415 (optional)

        if table not in TABLES:
            raise ValueError(f"table must be one of {', '.join(TABLES)}, got {table!r}")
        columns: Columns = getattr(self, table)
        chosen = {each: self.setting(each) for each in ("env", "agent", "replay", "scale")}
        told = {"run": str(self.folder), **chosen, "seed": self.seed}
        rows = pd.RangeIndex(columns.rows)
        return pd.DataFrame({**told, **{name: columns[name] for name in columns}}, index=rows)

    def played(self, mode: str = "train") -> Columns:
        """Return the episodes of one mode; those without a mode are of training."""
        if "mode" not in self.episodes:
            return (
                self.episodes
                if mode == "train"
                else self.episodes.where(np.zeros(self.episodes.rows, bool))
            )
        modes = self.episodes["mode"]
        wanted = modes == mode
        return self.episodes.where(wanted | (modes == "") if mode == "train" else wanted)

    @property
    def checkpoints(self) -> list[Path]:
        """Finished checkpoints, newest first."""
        folder = self.folder / CHECKPOINTS
        found = (
            [p for p in folder.iterdir() if CHECKPOINT.fullmatch(p.name) and not p.is_symlink()]
            if folder.is_dir() and not folder.is_symlink()
            else []
        )
        return sorted(found, key=lambda p: int(p.name.split("-")[0]), reverse=True)

    @cached_property
    def steps_done(self) -> int:
        """How far the run is known to have come, in steps."""
        last = self._last("step")
        saved = [int(path.name.rpartition("-")[2]) for path in self.checkpoints[:1]]
        return max([*last, *saved], default=0)

    @property
    def frames_done(self) -> int:
        """The last frame that the run recorded."""
        return max(self._last("frame"), default=0)

    def _last(self, counter: str) -> list[int]:
        """Return what the last lines say of a counter, where they say it."""
        found = [read_last(self.folder / name).get(counter) for name in (METRICS, EPISODES)]
        return [int(n) for n in found if isinstance(n, int | float) and 0 <= n < MOST]

    @property
    def finished(self) -> bool:
        """Whether it took all the steps it was to take."""
        wanted = self.setting("train.steps")
        return isinstance(wanted, int | float) and self.steps_done >= wanted

    @property
    def complete(self) -> bool:
        """Whether it was saved after all its steps: its tables will not change any more."""
        wanted = self.setting("train.steps")
        saved = self.checkpoints[:1]
        done = int(saved[0].name.rpartition("-")[2]) if saved else 0
        return isinstance(wanted, int | float) and done >= wanted

    @cached_property
    def hours(self) -> float:
        """Hours that it computed, also for what was lost to a kill; 0 if it left no speed.

        Those of its parent, up to a fork, are not its own.
        """
        if not self.speed.rows:
            return 0.0
        step, session = self.speed["step"], self.speed["session"]
        begin = 0 if self.parent is None else int(self.parent["step"])
        same = session[1:] == session[:-1]
        steps = np.concatenate([step[:1] - begin, np.where(same, step[1:] - step[:-1], 0)])
        speed = self.speed["steps_per_second"]
        timed = speed > 0  # a run that was stopped before its first step has none
        return float((steps[timed] / speed[timed]).sum() / 3600)

    @cached_property
    def changes(self) -> tuple[tuple[int, str], ...]:
        """Frames and the phases that begin there, the first at frame 0.

        From meta.json ("schedule", what the environment really followed), else from the settings,
        else from the phases of episodes: then a change is known to have come after the frame given,
        within an episode.
        """
        written = self.meta.get("schedule") or self.setting("env.schedule")
        if written:
            return tuple((int(frame), str(phase)) for frame, phase in written)
        played = self.played()
        if played.rows and "phase" in played:
            return _changes(played["frame"], played["phase"])
        return ()

    @property
    def first_change(self) -> int:
        """The frame of the first change; 0 if there is none."""
        return self.changes[1][0] if len(self.changes) > 1 else 0

    @property
    def undone(self) -> tuple[int, int] | None:
        """Frames of the first change that is undone, and of its undoing; None if none is."""
        changes = self.changes
        for (_, before), (frame, _), (back, phase) in zip(
            changes, changes[1:], changes[2:], strict=False
        ):
            if phase == before:
                return frame, back
        return None


@dataclass(frozen=True)
class Runs:
    """Runs that could be read, and why others could not."""

    runs: list[Run]
    broken: dict[Path, str]


def load_run(folder: Path) -> Run:
    """Read the settings of one run; ValueError says what is wrong with the folder."""
    folder = Path(folder)
    config = read_object(folder / CONFIG)
    meta = read_object(folder / META) if (folder / META).exists() else {}
    run = Run(folder, config, meta)
    check(meta.get("resumes"), ([dict], None), f"{folder / 'meta.json'}, resumes")
    _check_parent(meta.get("parent"), f"{folder / 'meta.json'}, parent")
    for path, kind in USED.items():
        value = run.setting(path)
        check(value, kind, f"{folder / 'config.json'}, {path}")
        if isinstance(value, int | float) and not -MOST < value < MOST:
            raise UnreadableError(f"{folder / 'config.json'}, {path} cannot be {value}")
    for path, schedule in ((CONFIG, run.setting("env.schedule")),
                           (META, meta.get("schedule"))):  # fmt: skip
        check(schedule, ([list], None), f"{folder / path}, schedule")
        for entry in schedule or ():
            frame, phase = entry if len(entry) == 2 else (None, None)
            if not (isinstance(frame, int) and isinstance(phase, str) and 0 <= frame < MOST):
                raise UnreadableError(f"{folder / path}, schedule must be frames and their phases")
    return run


def _check_parent(parent: Any, name: str) -> None:
    """Refuse what does not name the parent of a fork; None: it is none."""
    check(parent, (dict, None), name)
    if parent is not None:
        for each, kind in PARENT.items():
            check(parent.get(each), kind, f"{name}, {each}")
        for each in ("step", "frame"):
            if not 0 <= parent[each] < MOST:
                raise UnreadableError(f"{name}, {each} cannot be {parent[each]}")
        _check_parent(parent.get("parent"), f"{name}, parent")


def load_runs(places: Iterable[Path]) -> Runs:
    """Return all runs in or below some folders, in order.

    What cannot be read is warned of and named. A run that lies in several of them is one run.
    """
    runs: list[Run] = []
    broken: dict[Path, str] = {}
    seen: set[Path] = set()
    for place in map(Path, places):
        folders = find_runs(place)
        if not folders:
            broken[place] = "holds no run: there is no config.json in it or below"
        for folder in folders:
            if folder.resolve() in seen:
                continue
            seen.add(folder.resolve())
            try:
                runs.append(load_run(folder))
            except (ValueError, OSError) as error:
                broken[folder] = str(error)
    for folder, reason in broken.items():
        warnings.warn(f"{folder}: {reason}", stacklevel=2)
    return Runs(runs, broken)


def find_runs(place: Path) -> list[Path]:
    """Return run folders in or below a folder, by name; runs do not lie inside runs.

    What begins with a dot is none: it is left of a fork that was killed while it was made.
    """
    if (place / CONFIG).exists():
        return [place]
    if not place.is_dir():
        return []
    inside = (path for path in place.iterdir() if path.is_dir() and not path.is_symlink())
    shown = sorted(path for path in inside if not path.name.startswith("."))
    return [run for path in shown for run in find_runs(path)]


def group(
    runs: Iterable[Run], by: Sequence[str] = ("env", "agent", "replay")
) -> dict[tuple[str, ...], list[Run]]:
    """Return runs that share settings (see `Run.setting`), in order of their seeds."""
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in sorted(runs, key=lambda run: (run.seed, str(run.folder))):
        groups.setdefault(tuple(str(run.setting(path)) for path in by), []).append(run)
    return dict(sorted(groups.items()))


def _parts(path: str) -> list[str]:
    """Return the names on the way to a setting."""
    return (path if "." in path or path == "seed" else f"choice.{path}").split(".")


def _changes(frames: Array, phases: Array) -> tuple[tuple[int, str], ...]:
    new = np.flatnonzero(phases[1:] != phases[:-1]) + 1
    later = [(int(frames[i - 1]), str(phases[i])) for i in new]
    return tuple([(0, str(phases[0])), *later] if len(phases) else [])
