"""What an experiment is: tasks and methods, seeds, what is measured, and what the paper claims.

An experiment is a grid of runs. Runs are named by what they are (environment, agent, replay,
changed settings, seed) and not by the experiment, so that experiments share them: the baseline of
five tables is trained once.
"""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from curious_replay.analysis.load import Run
from curious_replay.experiments.standard import Settings, changed, standard
from curious_replay.run.config import SCALES, Choice, Config, differences
from curious_replay.run.env_config import family
from curious_replay.run.settings import option

Key = tuple[str, str]
"""A task and the name of a method."""

OVERALL, MEDIAN = "mean over tasks", "median over tasks"
"""Stand for the task of a number that the paper gives for all tasks together."""
LONGEST = 200
"""Characters of a run's name; file systems allow 255, and .log or the like is added to it."""


class Reported(NamedTuple):
    """A number of the paper: mean, what is behind ±, and how many runs it is from.

    A mean of NaN stands for "never".
    """

    mean: float
    spread: float | None = None
    kind: Literal["s.e.m.", "s.d."] = "s.e.m."
    n: int | None = None

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "never"
        return f"{self.mean:g}" + ("" if self.spread is None else f" ± {self.spread:g}")


@dataclass(frozen=True)
class Method:
    """One row of a table: an agent with a kind of replay, and changed settings."""

    name: str
    agent: str
    replay: str
    settings: Settings = field(default_factory=dict)
    tasks: tuple[str, ...] = ()
    """The only tasks it is run on; by default all."""


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
    differs: str = ""
    """What is not as in the paper, besides the scale."""
    debug_tasks: int = 2
    """How many of the tasks are run at debug scale, which tries the machinery only."""
    debug_methods: tuple[str, ...] = ()
    """Which of the methods are run at debug scale; by default all."""

    def __post_init__(self) -> None:
        names = [method.name for method in self.methods]
        if len({*names}) < len(names):
            raise ValueError(f"{self.name}: two methods have the same name among {names}")
        if not self.measures:
            raise ValueError(f"{self.name}: an experiment needs a measure")
        numbers = [key for measure in self.measures for key in measure.paper]
        for what, known, found in (
            (
                "the claim speaks of the method",
                names,
                [x for pair in self.claim.pairs for x in pair],
            ),
            ("at debug scale is to be run the method", names, self.debug_methods),
            ("the paper's numbers name the method", names, [name for _, name in numbers]),
            (
                "the paper's numbers name the task",
                (*self.tasks, OVERALL, MEDIAN),
                [x for x, _ in numbers],
            ),
            ("a method is for the task", self.tasks, [x for m in self.methods for x in m.tasks]),
        ):
            for each in found:
                if each not in known:
                    raise ValueError(f"{self.name}: {what} {each!r}; there are {[*known]}")

    def cells(self, scale: str) -> list[tuple[str, Method]]:
        """All pairs of task and method that are run at a scale."""
        tasks, methods = self.tasks, self.methods
        if scale == "debug":
            tasks = tasks[: self.debug_tasks]
            wanted = self.debug_methods or [method.name for method in methods]
            methods = tuple(method for method in methods if method.name in wanted)
        return [
            (task, method)
            for task in tasks
            for method in methods
            if not method.tasks or task in method.tasks
        ]


@dataclass(frozen=True)
class Job:
    """One run of an experiment."""

    task: str
    method: Method
    config: Config

    @property
    def name(self) -> str:
        """Name of its folder: what it is, not what it is for; equal settings have equal names.

        The number of threads is left out: it may differ from machine to machine. Of a name that is
        too long for a folder, a hash stands for the end of the settings.
        """
        choice, seed = self.config.choice, self.config.seed
        changes = differences(standard(choice, seed), self.config)
        parts = [choice.env, choice.agent, choice.replay]
        parts += [
            f"{path.removeprefix('--')}={value}"
            for path, (_, value) in sorted(changes.items())
            if path != option("train.threads")
        ]
        parts.append(f"seed={seed}")
        name = "-".join(re.sub(r"[^A-Za-z0-9.=_+]+", "-", part) for part in parts)
        if len(name) <= LONGEST:
            return name
        end = f"-{hashlib.sha256(name.encode()).hexdigest()[:10]}-seed={seed}"
        return name[: LONGEST - len(end)] + end

    def folder(self, runs: Path) -> Path:
        """Its folder below that of all runs."""
        return runs / self.config.choice.scale / self.name

    @property
    def updates(self) -> int:
        """How often its agent learns."""
        train, (ratio, batch) = self.config.train, self.config.updates_per_step
        return train.pretrain + int(max(train.steps - train.prefill, 0) * ratio / batch)


def jobs(
    experiment: Experiment,
    scale: str,
    seeds: int | None = None,
    threads: int = 1,
    first_seed: int = 0,
    backgrounds: Settings | None = None,
) -> list[Job]:
    """All runs, those of a seed together; `seeds` of each task and method, or as in the paper.

    `backgrounds` are settings of tasks in front of pictures only.
    """
    if scale not in SCALES:
        raise ValueError(f"--scale must be one of {', '.join(SCALES)}, got {scale!r}")
    count = (1 if scale == "debug" else experiment.seeds) if seeds is None else seeds
    if count < 1:
        raise ValueError(f"--seeds must be at least 1, got {count}")
    if first_seed < 0:
        raise ValueError(f"--first-seed must be at least 0, got {first_seed}")
    cells = experiment.cells(scale)
    if backgrounds and not any(family(task) == "background" for task, _ in cells):
        raise ValueError(f"--images and --clips: no task of {experiment.name} has backgrounds")
    return [
        Job(task, method, _config(experiment, task, method, scale, seed, threads, backgrounds))
        for seed in range(first_seed, first_seed + count)
        for task, method in cells
    ]


def _config(
    experiment: Experiment,
    task: str,
    method: Method,
    scale: str,
    seed: int,
    threads: int,
    backgrounds: Settings | None,
) -> Config:
    choice = Choice(env=task, agent=method.agent, replay=method.replay, scale=scale)
    settings = {**experiment.settings.get(scale, {}), **method.settings, "train.threads": threads}
    if backgrounds and family(task) == "background":
        settings |= backgrounds
    return changed(standard(choice, seed), settings)


def each(value: Callable[[Run], float]) -> Callable[[Sequence[Run]], list[float]]:
    """A measure of one number for each run."""
    return lambda runs: [float(value(run)) for run in runs]
