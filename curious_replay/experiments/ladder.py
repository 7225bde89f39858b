"""Rungs of sanity: what must hold of agent, world and measure before methods are compared.

A rung is a number for each seed and a bound for their median. The agent learns its world, the
explorer covers it, its model has settled before the change, and the measure tells an oracle from
chance. Where a rung fails, a comparison of methods says nothing, whatever it says.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from curious_replay.analysis.load import Run
from curious_replay.errors import UsageError
from curious_replay.run.settings.config import Config


class Footing(NamedTuple):
    """What a ladder stands on."""

    config: Config
    """Settings of a run that is compared."""
    runs: Sequence[Run]
    """The trunks or, where there are none, the runs of the baseline."""


@dataclass(frozen=True)
class Rung:
    """A number that must lie within bounds."""

    name: str
    values: Callable[[Footing], list[float]]
    """One number for each seed; NaN: never, which is more than any number."""
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if self.at_least is None and self.at_most is None:
            raise UsageError(f"the rung {self.name!r} has no bound: say at_least or at_most")

    @property
    def bound(self) -> str:
        """Return the bounds in words."""
        said = []
        if self.at_least is not None:
            said.append(f"at least {self.at_least:,g}")
        if self.at_most is not None:
            said.append(f"at most {self.at_most:,g}")
        return " and ".join(said)


@dataclass(frozen=True)
class RungResult:
    """How one rung fared."""

    name: str
    bound: str
    values: list[float | None] = field(default_factory=list)
    """One for each seed (or as many for each), in their order; None: never."""
    median: float | None = None
    """None: never."""
    held: bool = False
    seeds: list[int] = field(default_factory=list)
    """Whose the values are; empty in results that were kept before this was written down."""


def climb(ladder: Sequence[Rung], footing: Footing) -> list[RungResult]:
    """Measure all rungs; none are there without runs to stand on."""
    seeds = [run.seed for run in footing.runs]
    return [_result(rung, rung.values(footing), seeds) for rung in ladder] if seeds else []


def pooled(
    ladder: Sequence[Rung], old: Sequence[RungResult], new: Sequence[RungResult]
) -> list[RungResult]:
    """Return both together: every seed of either, its numbers from `new` where both have it."""
    known = {each.name: each for each in old}
    both = []
    for found in new or old:
        rung = next((each for each in ladder if each.name == found.name), None)
        before = known.get(found.name)
        if rung is None or before is None or not (found.seeds and before.seeds):
            both.append(found)
            continue
        numbers = _by_seed(before) | _by_seed(found)
        seeds = sorted(numbers)
        both.append(_result(rung, [value for seed in seeds for value in numbers[seed]], seeds))
    return both


def _by_seed(found: RungResult) -> dict[int, list[float]]:
    values = [math.inf if value is None else value for value in found.values]
    each = len(values) // len(found.seeds)
    return {seed: values[i * each : (i + 1) * each] for i, seed in enumerate(found.seeds)}


def _result(rung: Rung, values: Sequence[float], seeds: Sequence[int]) -> RungResult:
    reached = [math.inf if math.isnan(value) else float(value) for value in values]
    median = float(np.median(reached)) if reached else math.inf
    low = -math.inf if rung.at_least is None else rung.at_least
    high = math.inf if rung.at_most is None else rung.at_most
    held = low <= median <= high and not (rung.at_most is not None and math.isinf(median))
    told = [*map(_known, reached)]
    return RungResult(rung.name, rung.bound, told, _known(median), held, [*seeds])


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
