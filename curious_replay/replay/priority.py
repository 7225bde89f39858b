"""The method: which steps deserve to be replayed.

    p = c·β^v + (|L| + ε)^α

v is how often a step was trained on (visits), L how badly the world model predicts it (its loss).
The first term asks for what was seen least, the second for what is modelled worst. A rule is a
pure function: visits [N] and signals {name: [N]} of one batch in, priorities [N] out.

Three readings of the rule are published; `dialect` picks one:

    paper   v counts the visits before this one, L is the loss                 (Algorithm 1)
    dv2     as paper, but L is the loss minus its minimum over the whole run   (released DreamerV2)
    dv3     v already counts this visit                                        (released DreamerV3)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from .powers import scaled_power

Floats = npt.NDArray[np.float64]
Visits = npt.NDArray[Any]  # of integers
Signals = Mapping[str, Floats]
Dialect = Literal["paper", "dv2", "dv3"]
BOUNDS = {
    "p_max": (1e-30, 1e30), "c": (0, 1e30), "beta": (0, 1), "alpha": (0, 10), "eps": (0, 1e30),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What all rules share. Derive from it, as a frozen dataclass, to write your own."""

    p_max: float = 1e5  # the priority of a step that was never trained on
    signal: str = ""  # which signal the rule reads; empty: none
    dialect: Dialect = "paper"

    def __post_init__(self) -> None:
        for name in BOUNDS.keys() & vars(self).keys():
            (low, high), value = BOUNDS[name], getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} must be between {low:g} and {high:g}, got {value!r}")
            object.__setattr__(self, name, float(value))
        if self.dialect not in get_args(Dialect):
            raise ValueError(f"dialect must be one of {get_args(Dialect)}, got {self.dialect!r}")
        if type(self).signal and not self.signal:
            raise ValueError(f"signal must be the name of what {type(self).__name__} reads, got ''")

    def __call__(self, visits: Visits, signals: Signals) -> Floats:
        return np.full(len(visits), self.p_max)


class Uniform(Rule):
    """Every step alike: p = p_max, whatever happens to it."""


@dataclass(frozen=True, kw_only=True)
class Count(Rule):
    """Only what was seen least: p = c·β^v."""

    c: float = 1e4
    beta: float = 0.7

    def __call__(self, visits: Visits, signals: Signals) -> Floats:
        v = visits + 1 if self.dialect == "dv3" else visits
        return scaled_power(self.c, self.beta, v)  # c·β^v


@dataclass(frozen=True, kw_only=True)
class Adversarial(Rule):
    """Only what is modelled worst: p = (|L| + ε)^α."""

    alpha: float = 0.7
    eps: float = 0.01
    signal: str = "model"

    def __call__(self, visits: Visits, signals: Signals) -> Floats:
        return (np.abs(signals[self.signal]) + self.eps) ** self.alpha


@dataclass(frozen=True, kw_only=True)
class TemporalDifference(Adversarial):
    """What the critic predicts worst: p = (|δ| + ε)^α."""

    signal: str = "td"


@dataclass(frozen=True, kw_only=True)
class Curious(Adversarial, Count):
    """Curious Replay: p = c·β^v + (|L| + ε)^α, the sum of the two above."""

    def __call__(self, visits: Visits, signals: Signals) -> Floats:
        return Count.__call__(self, visits, signals) + Adversarial.__call__(self, visits, signals)
