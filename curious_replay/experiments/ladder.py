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
    """One for each seed, in their order; None: never."""
    median: float | None = None
    """None: never."""
    held: bool = False


def climb(ladder: Sequence[Rung], footing: Footing) -> list[RungResult]:
    """Measure all rungs; none are there without runs to stand on."""
    return [_result(rung, rung.values(footing)) for rung in ladder] if footing.runs else []


def _result(rung: Rung, values: Sequence[float]) -> RungResult:
    reached = [math.inf if math.isnan(value) else float(value) for value in values]
    median = float(np.median(reached)) if reached else math.inf
    low = -math.inf if rung.at_least is None else rung.at_least
    high = math.inf if rung.at_most is None else rung.at_most
    held = low <= median <= high and not (rung.at_most is not None and math.isinf(median))
    return RungResult(rung.name, rung.bound, [*map(_known, reached)], _known(median), held)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
