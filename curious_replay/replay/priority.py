"""The method: which steps deserve to be replayed.

    p = c·β^v + (|L| + ε)^α

v is how often a step was trained on (visits), L how badly the world model predicts it (its loss).
The first term asks for what was seen least, the second for what is modelled worst. A rule is a
function of what is stored of each step: visits [N] and signals {name: [N]} in, priorities [N] out.

Three readings of the rule are published; `dialect` picks one:

    paper   v counts the visits before this one, L is the loss                 (Algorithm 1)
    dv2     as paper, but L is the loss minus its minimum over the whole run   (released DreamerV2)
    dv3     v already counts this visit                                        (released DreamerV3)
"""

from collections.abc import MutableMapping
from dataclasses import dataclass

import numpy as np

from curious_replay.replay.decay_table import scaled_power
from curious_replay.replay.rule import Floats, Rule, Signals, Visits


class Uniform(Rule):
    """Every step alike: p = p_max, whatever happens to it."""


@dataclass(frozen=True, kw_only=True)
class Count(Rule):
    """Only what was seen least: p = c·β^v."""

    c: float = 1e4
    beta: float = 0.7

    def terms(self, visits: Visits, signals: Signals) -> dict[str, Floats]:
        """Return the count term, c·β^v."""
        v = visits + 1 if self.dialect == "dv3" else visits
        return {"count": scaled_power(self.c, self.beta, v)}


@dataclass(frozen=True, kw_only=True)
class Adversarial(Rule):
    """Only what is modelled worst: p = (|L| + ε)^α."""

    alpha: float = 0.7
    eps: float = 0.01
    signal: str = "model"

    def prepare(self, signals: Signals, memory: MutableMapping[str, float]) -> Signals:
        """Take losses above the least one of the run in dialect dv2, else as they are."""
        if self.dialect != "dv2":
            return signals
        loss, key = signals[self.signal], f"{self.signal}_minimum"
        least = float(np.min(loss, where=np.isfinite(loss), initial=memory.get(key, np.inf)))
        if least < np.inf:
            memory[key] = least
        return {**signals, self.signal: loss - least}

    def terms(self, visits: Visits, signals: Signals) -> dict[str, Floats]:
        """Return the surprise, (|L| + ε)^α."""
        loss = np.abs(signals[self.signal])
        loss += self.eps  # in place, as this is most of the work of an update
        return {"surprise": loss**self.alpha}


@dataclass(frozen=True, kw_only=True)
class TemporalDifference(Adversarial):
    """What the critic predicts worst: p = (|δ| + ε)^α."""

    signal: str = "td"

    def prepare(self, signals: Signals, memory: MutableMapping[str, float]) -> Signals:
        """Take errors as they are in all dialects: they lie around 0, not above a minimum."""
        return signals


@dataclass(frozen=True, kw_only=True)
class Curious(Adversarial, Count):
    """What was seen least and what is modelled worst: p = c·β^v + (|L| + ε)^α."""

    def terms(self, visits: Visits, signals: Signals) -> dict[str, Floats]:
        """Return both terms, count and surprise."""
        return Count.terms(self, visits, signals) | Adversarial.terms(self, visits, signals)
