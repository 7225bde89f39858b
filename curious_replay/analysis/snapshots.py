"""What a run's replay held at earlier moments: its snapshots.

`curious train` leaves `snapshots/<step>.npz` behind (--record.snapshot-every); they stay when
checkpoints go. What is in them is said in run/record/snapshots.py, which writes them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from curious_replay.analysis.lines import Array
from curious_replay.analysis.load import MOST, Run
from curious_replay.run_folder import SNAPSHOTS
from curious_replay.untrusted import UnreadableError, read_arrays

NUMBERS = ("step", "frame", "num_envs", "drawable", "fraction")
NO_TERMS = {"terms": np.zeros((0, 0)), "term_names": np.zeros(0, np.str_)}
"""As in snapshots from before rules named their terms."""
ARRAYS = ("ids", "visits", "priorities", "totals", "phase", "phases")


@dataclass(frozen=True)
class Snapshot:
    """Visits and priorities of stored steps, all of them or some that are evenly spread."""

    step: int
    frame: int
    ids: Array
    visits: Array
    priorities: Array
    """[rules, N], 0 where a step cannot be drawn."""
    totals: Array
    """[rules]: sum over the whole buffer."""
    drawable: int
    """Steps of the whole buffer that can be drawn."""
    fraction: float = 0.0
    """Part of a batch that is drawn by the second rule."""
    num_envs: int = 1
    phase: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    phases: Array = field(default_factory=lambda: np.zeros(0, np.str_))
    logs: Mapping[str, Array] = field(default_factory=dict)
    terms: Mapping[str, Array] = field(default_factory=dict)
    """What the priorities are the sum of, [N] each, as rules name it; none in older snapshots."""

    @cached_property
    def chance(self) -> Array:
        """How likely each step is drawn, relative to uniform: p · N / Σp of the whole buffer, [N].

        In a mixture, that of both rules by their parts of a batch.
        """
        return self._chance(self.priorities)

    @cached_property
    def chance_by_count(self) -> Array:
        """Which part of `chance` is the count term's, [N]."""
        none = np.zeros(len(self.ids))
        counts = [self.terms.get(name, none) for name in ("count", "second/count")]
        return self._chance(np.where(self.priorities > 0, counts[: len(self.priorities)], 0.0))

    def _chance(self, priorities: Array) -> Array:
        parts = (1 - self.fraction, self.fraction)
        sums = np.maximum(self.totals, 1e-300)
        each = priorities * self.drawable / sums[:, None]
        return np.asarray(sum(part * row for part, row in zip(parts, each, strict=False)))

    @property
    def time(self) -> Array:
        """Number of each step in its environment, from 0, [N]."""
        return self.ids // self.num_envs

    @property
    def age(self) -> Array:
        """Steps of an environment since each was stored, [N]."""
        time = self.time
        return np.asarray(time.max(initial=0) - time)


def paths(run: Run) -> list[Path]:
    """Return the files of a run's snapshots, oldest first."""
    folder = run.folder / SNAPSHOTS
    found = () if folder.is_symlink() else folder.glob("*.npz")
    return sorted((p for p in found if re.fullmatch(r"\d{9,}", p.stem)), key=lambda p: int(p.stem))


def snapshots(run: Run) -> list[Snapshot]:
    """Return the snapshots of a run, oldest first; those that cannot be read are left out."""
    return [found for found in map(read, paths(run)) if found is not None]


def newest(run: Run) -> Snapshot | None:
    """Return the last snapshot that can be read."""
    return next((found for found in map(read, reversed(paths(run))) if found is not None), None)


def first_from(run: Run, step: float) -> Snapshot | None:
    """Return the first snapshot from a step on; None for no step (NaN) or no such snapshot."""
    later = (path for path in paths(run) if int(path.stem) >= step)
    return next((found for found in map(read, later) if found is not None), None)


def read(path: Path) -> Snapshot | None:
    """Return one snapshot; None if the file is damaged."""
    try:
        arrays = {**NO_TERMS, **read_arrays(path)}
        _check(arrays, path)
    except UnreadableError:
        return None
    values: dict[str, Any] = {name: arrays[name].item() for name in NUMBERS}
    values |= {name: arrays[name] for name in ARRAYS}
    return Snapshot(
        **values,
        logs={name: array for name, array in arrays.items() if name.startswith("log_")},
        terms=dict(zip(arrays["term_names"].tolist(), arrays["terms"], strict=True)),
    )


def _check(arrays: Mapping[str, Array], path: Path) -> None:
    """Refuse arrays whose kinds and lengths do not fit together, or whose numbers cannot be."""
    if missing := {*NUMBERS, *ARRAYS} - arrays.keys():
        raise UnreadableError(f"{path} has no array {min(missing)!r}")
    count, rules, names = (arrays[n].size for n in ("ids", "totals", "phases"))
    wanted = {
        **dict.fromkeys(NUMBERS, ("iuf", ())),
        "ids": ("i", (count,)),
        "visits": ("i", (count,)),
        "priorities": ("f", (rules, count)),
        "totals": ("f", (rules,)),
        "phase": ("i", (count,)),
        "phases": ("U", (names,)),
    }
    for name, (kinds, shape) in wanted.items():
        if arrays[name].dtype.kind not in kinds or arrays[name].shape != shape:
            raise UnreadableError(f"{path}: {name} must be of shape {list(shape)}")
    _check_terms(arrays["terms"], arrays["term_names"], count, path)
    for name, array in arrays.items():
        if name.startswith("log_") and array.shape[:1] != (count,):
            raise UnreadableError(f"{path}: {name} must have a row for each of {count} steps")
    least = [arrays[name].min(initial=0) for name in ("ids", "visits", "phase", "priorities")]
    known = arrays["phase"].max(initial=-1) < names
    finite = np.isfinite(arrays["priorities"]).all() and np.isfinite(arrays["totals"]).all()
    counted = all(0 <= arrays[name] < MOST for name in NUMBERS)
    if min(least) < 0 or not (known and finite and counted and arrays["num_envs"] >= 1):
        raise UnreadableError(f"{path} has numbers that no snapshot can have")


def _check_terms(terms: Array, names: Array, count: int, path: Path) -> None:
    """Refuse terms that are not numbers [K, N], one row for each of `names` [K]."""
    many = len(names) if names.ndim == 1 and names.dtype.kind == "U" else -1
    fit = terms.dtype.kind == "f" and terms.shape in ((many, count), (0, 0))
    if not fit or len(terms) != many or not np.isfinite(terms).all():
        raise UnreadableError(
            f"{path}: terms must be numbers for each of {count} steps, with names"
        )
