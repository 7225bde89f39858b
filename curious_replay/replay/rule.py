"""What every rule is: a function from what is stored of steps to their priorities."""

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

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

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals the rule reads; a rule of several sets them as a class attribute."""
        return (self.signal,) if self.signal else ()

    def prepare(self, signals: Signals, memory: MutableMapping[str, float]) -> Signals:
        """Turn signals [N] as they were told into those the rule is called with.

        `memory` holds numbers of the whole run. It is saved with the buffer.
        """
        return signals

    def terms(self, visits: Visits, signals: Signals) -> dict[str, Floats]:
        """Name what the priority is the sum of, [N] each; empty if it is no such sum."""
        return {}

    def __call__(self, visits: Visits, signals: Signals) -> Floats:
        """Return the priorities [N] of steps with so many visits before [N], and signals [N]."""
        terms = self.terms(visits, signals)
        return reduce(np.add, terms.values()) if terms else np.full(len(visits), self.p_max)
