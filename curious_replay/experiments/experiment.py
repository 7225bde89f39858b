"""What an experiment is: tasks and methods, seeds, what is measured, and what the paper claims.

An experiment is a grid of runs. Runs are named by what they are (environment, agent, replay,
changed settings, seed) and not by the experiment, so that experiments share them: the baseline of
ten tables is trained once.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from curious_replay.analysis.load import Run
from curious_replay.run.config import SCALES, Choice, Config
from curious_replay.run.env_config import family
from curious_replay.run.presets import preset
from curious_replay.run.settings import option

Settings = Mapping[str, Any]
"""{"replay.alpha": 0.5}: what differs from the preset, by the name of the option."""
Key = tuple[str, str]
"""A task and the name of a method."""

RECORDING: Mapping[str, Mapping[str, Settings]] = {
    "assay": {
        "paper": {"record.probe_every": 10_000},
        "mini": {"record.probe_every": 2_000},
        "debug": {"record.probe_every": 100},
    },
}
"""By family of environments and scale: what all experiments on it need to have recorded."""


class Times(NamedTuple):
    """A setting that is so many times what the preset has."""

    factor: float


class Reported(NamedTuple):
    """A number of the paper: mean, what is behind ±, and how many runs it is from."""

    mean: float
    spread: float | None = None
    kind: Literal["s.e.m.", "s.d."] = "s.e.m."
    n: int | None = None

    def __str__(self) -> str:
        return f"{self.mean:g}" + ("" if self.spread is None else f" ± {self.spread:g}")


@dataclass(frozen=True)
class Method:
    """One row of a table: an agent with a kind of replay, and changed settings."""

    name: str
    agent: str
    replay: str
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Measure:
    """What is measured: numbers of the runs of one task and method."""

    name: str
    values: Callable[[Sequence[Run]], list[float]]
    """One number for each run, or one for all of them together; NaN: no result."""
    lower_is_better: bool = False
    never: bool = False
    """Whether NaN means that a run never got there, which is worse than all that did."""
    paper: Mapping[Key, Reported] = field(default_factory=dict)
    """The paper's numbers in the same unit, at its own scale."""


@dataclass(frozen=True)
class Claim:
    """What the paper says of the first measure: which methods do better, or no worse, than others.

    "similar" means no worse by more than `margin`, a part of the other's mean.
    """

    text: str
    pairs: Sequence[tuple[str, str]]
    """(the one that does better, the other), by name."""
    kind: Literal["better", "similar"] = "better"
    margin: float = 0.1


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    where: str
    """In the paper: "Figure 2", "Table 1"."""
    title: str
    tasks: tuple[str, ...]
    """Names of environments."""
    methods: tuple[Method, ...]
    measures: tuple[Measure, ...]
    claim: Claim
    seeds: int
    """Runs of each task and method in the paper."""
    settings: Mapping[str, Settings] = field(default_factory=dict)
    """By scale: what all runs change."""
    debug_tasks: int = 2
    """How many of the tasks are run at debug scale, which tries the machinery only."""
    debug_methods: tuple[str, ...] = ()
    """Which of the methods are run at debug scale; by default all."""

    def __post_init__(self) -> None:
        names = [method.name for method in self.methods]
        for one in {name for pair in self.claim.pairs for name in pair} | {*self.debug_methods}:
            if one not in names:
                raise ValueError(f"{self.name}: the claim speaks of {one!r}, there are {names}")
        if not self.measures:
            raise ValueError(f"{self.name}: an experiment needs a measure")

    def cells(self, scale: str) -> list[tuple[str, Method]]:
        """All pairs of task and method that are run at a scale."""
        if scale != "debug":
            return [(task, method) for task in self.tasks for method in self.methods]
        wanted = self.debug_methods or [method.name for method in self.methods]
        methods = [method for method in self.methods if method.name in wanted]
        return [(task, method) for task in self.tasks[: self.debug_tasks] for method in methods]


@dataclass(frozen=True)
class Job:
    """One run of an experiment."""

    task: str
    method: Method
    config: Config

    @property
    def name(self) -> str:
        """Name of its folder: what it is, not what it is for."""
        choice = self.config.choice
        parts = [choice.env, choice.agent, choice.replay]
        parts += [f"{path}={_text(value)}" for path, value in sorted(self.method.settings.items())]
        parts.append(f"seed={self.config.seed}")
        return "-".join(re.sub(r"[^A-Za-z0-9.=_+]+", "-", part) for part in parts)

    def folder(self, runs: Path) -> Path:
        """Its folder below that of all runs."""
        return runs / self.config.choice.scale / self.name

    @property
    def updates(self) -> int:
        """How often its agent learns."""
        train, (ratio, batch) = self.config.train, self.config.updates_per_step
        return train.pretrain + int(max(train.steps - train.prefill, 0) * ratio / batch)


def jobs(
    experiment: Experiment, scale: str, seeds: int | None = None, threads: int = 1
) -> list[Job]:
    """All runs, those of a seed together; `seeds` of each task and method, or as in the paper."""
    if scale not in SCALES:
        raise ValueError(f"--scale must be one of {', '.join(SCALES)}, got {scale!r}")
    count = (1 if scale == "debug" else experiment.seeds) if seeds is None else seeds
    if count < 1:
        raise ValueError(f"--seeds must be at least 1, got {count}")
    cells = experiment.cells(scale)
    return [
        Job(task, method, _config(experiment, task, method, scale, seed, threads))
        for seed in range(count)
        for task, method in cells
    ]


def _config(
    experiment: Experiment, task: str, method: Method, scale: str, seed: int, threads: int
) -> Config:
    choice = Choice(env=task, agent=method.agent, replay=method.replay, scale=scale)
    recording = RECORDING.get(family(task), {}).get(scale, {})
    wanted = {**recording, **experiment.settings.get(scale, {}), **method.settings}
    return changed(preset(choice, seed), {**wanted, "train.threads": threads})


def changed(config: Config, settings: Settings) -> Config:
    """A config with other settings, by their dotted names; those within are checked as always."""
    groups: dict[str, Any] = {}
    for path, value in settings.items():
        group, *inside = path.split(".")
        if group not in ("env", "agent", "replay", "train", "eval", "record") or not inside:
            raise ValueError(f"{option(path)} is no setting that an experiment can change")
        groups[group] = _put(groups.get(group, getattr(config, group)), inside, value, path)
    return replace(config, **groups)


def _put(settings: Any, path: Sequence[str], value: Any, whole: str) -> Any:
    name, *inside = path
    if not hasattr(settings, name):
        known = ", ".join(settings.__dataclass_fields__)
        raise ValueError(f"there is no setting {option(whole)}; {name!r} is not one of {known}")
    if inside:
        value = _put(getattr(settings, name), inside, value, whole)
    elif isinstance(value, Times):
        value = value.factor * getattr(settings, name)
    return replace(settings, **{name: value})


def _text(value: Any) -> str:
    return f"x{value.factor:g}" if isinstance(value, Times) else str(value)


def each(value: Callable[[Run], float]) -> Callable[[Sequence[Run]], list[float]]:
    """A measure of one number for each run."""
    return lambda runs: [float(value(run)) for run in runs]
