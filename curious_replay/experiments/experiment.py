"""What an experiment is: tasks and methods, seeds, what is measured, and what is claimed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, NamedTuple

from curious_replay.analysis.load import Run
from curious_replay.analysis.paired import Side, least_p
from curious_replay.errors import UsageError
from curious_replay.experiments.ladder import Rung
from curious_replay.run.settings.config import SCALES
from curious_replay.run.settings.presets import Settings

Key = tuple[str, str]
"""A task and the name of a method."""

OVERALL, MEDIAN = "mean over tasks", "median over tasks"
"""Stand for the task of a number that the paper gives for all tasks together."""


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
    ratio: bool | None = None
    """Whether pairs of runs are compared by their ratio, not their difference; None: if it is a
    time, which is when less is better and a run may never get there."""
    paper: Mapping[Key, Reported] = field(default_factory=dict)
    """The paper's numbers in the same unit, at its own scale."""

    @property
    def by_ratio(self) -> bool:
        """Whether pairs are compared by their ratio."""
        return self.lower_is_better and self.never if self.ratio is None else self.ratio


@dataclass(frozen=True)
class Claim:
    """What is said of a measure: which methods do better than others, no worse, or alike.

    "no worse" means not worse by `margin` or more, "similar" neither worse nor better by that.
    """

    text: str
    pairs: Sequence[tuple[str, str]]
    """(the one that does better, the other), by name."""
    kind: Literal["better", "no worse", "similar"] = "better"
    margin: float | None = None
    """Of groups of runs a part of the other's mean; of pairs a part (0.1: up to 1.1 times as much)
    where they are compared by ratio, or else in the unit of the measure."""
    measure: str = ""
    """Name of the measure; by default the first."""

    def __post_init__(self) -> None:
        if self.kind == "better" and self.margin is not None:
            raise UsageError(f"the claim {self.text!r} is of kind better, which has no margin")
        if self.kind != "better" and not (self.margin or 0) > 0:
            raise UsageError(
                f"the claim {self.text!r} is of kind {self.kind}: it must state a margin above 0, "
                f"got {self.margin}"
            )


@dataclass(frozen=True)
class Trunk:
    """How all runs of a seed begin: as one run, from which each method branches off."""

    replay: str = "uniform"
    until: int | Mapping[str, int] | Literal["change"] = "change"
    """The step at which they part, or such a step for each scale; "change": when the world first
    changes, by the schedule in the settings."""
    settings: Settings = field(default_factory=dict)
    """What only the trunk changes."""


@dataclass(frozen=True)
class Registration:
    """What was fixed before anybody had seen the runs that decide.

    Settings were chosen on the seeds `tuned`; the verdict is that of the experiment's number of
    seeds from `first_seed` on, when all of them are complete.
    """

    on: str
    """The day: 2026-01-31."""
    scale: str = "mini"
    first_seed: int = 100
    tuned: tuple[int, ...] = (0, 1, 2)
    significant: float = 0.05
    """Corrected p below which a claim holds."""

    def __post_init__(self) -> None:
        date.fromisoformat(self.on)
        if not 0 < self.significant < 1:
            raise UsageError(f"significant must be between 0 and 1, got {self.significant}")


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or an experiment of one's own."""

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
    trunk: Trunk | None = None
    """How all methods begin; None: each runs from its first step on its own."""
    test: Literal["groups", "pairs"] | None = None
    """Whether the runs of methods are compared as groups, as in the paper, or seed by seed; None:
    seed by seed if they have a trunk."""
    also: tuple[Claim, ...] = ()
    """Further claims."""
    registered: Registration | None = None
    ladder: tuple[Rung, ...] = ()
    """What must hold before methods are compared, measured on the trunks or, where there are none,
    on the runs of the baseline, the second of the claim's first pair."""
    scales: tuple[str, ...] = SCALES
    """Those it can be run at."""

    def __post_init__(self) -> None:
        self._check_names()
        if self.trunk is not None and self.test == "groups":
            raise UsageError(f"{self.name}: branches of a trunk are pairs, not groups")
        self._check_registration()

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All claims, the main one first."""
        return (self.claim, *self.also)

    @property
    def paired(self) -> bool:
        """Whether methods are compared seed by seed."""
        return self.trunk is not None or self.test == "pairs"

    def measure_of(self, claim: Claim) -> Measure:
        """Return the measure that a claim is about."""
        wanted = claim.measure or self.measures[0].name
        return next(measure for measure in self.measures if measure.name == wanted)

    def registered_at(self, scale: str) -> Registration | None:
        """Return what was registered, if it was for this scale; else None."""
        found = self.registered
        return found if found is not None and found.scale == scale else None

    @property
    def judged(self) -> range:
        """Seeds that are run unless others are asked for; the verdict is theirs if registered."""
        first = 0 if self.registered is None else self.registered.first_seed
        return range(first, first + self.seeds)

    def _check_registration(self) -> None:
        if self.registered is None:
            return
        seen = [seed for seed in self.registered.tuned if seed in self.judged]
        if seen:
            raise UsageError(f"{self.name}: settings were chosen on the seeds {seen}, which judge")
        side: Side = "both" if any(claim.kind == "better" for claim in self.claims) else "greater"
        least = least_p(self.seeds, side) if self.paired else 0.0
        if least >= self.registered.significant:
            raise UsageError(
                f"{self.name}: {self.seeds} pairs can at best have p = {least:.2g}, and p < "
                f"{self.registered.significant} is asked for: more seeds are needed"
            )

    def _check_names(self) -> None:
        names = [method.name for method in self.methods]
        if len({*names}) < len(names):
            raise UsageError(f"{self.name}: two methods have the same name among {names}")
        if not self.measures:
            raise UsageError(f"{self.name}: an experiment needs a measure")
        measured = [measure.name for measure in self.measures]
        numbers = [key for measure in self.measures for key in measure.paper]
        for what, known, found in (
            (
                "the claim speaks of the method",
                names,
                [x for claim in self.claims for pair in claim.pairs for x in pair],
            ),
            (
                "the claim is about the measure",
                measured,
                [claim.measure for claim in self.claims if claim.measure],
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
                    raise UsageError(f"{self.name}: {what} {each!r}; there are {[*known]}")

    def cells(self, scale: str) -> list[tuple[str, Method]]:
        """Return all pairs of task and method that are run at a scale."""
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


def each(value: Callable[[Run], float]) -> Callable[[Sequence[Run]], list[float]]:
    """Return a measure of one number for each run."""
    return lambda runs: [float(value(run)) for run in runs]
