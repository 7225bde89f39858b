"""A rule of your own: Curious Replay that does not stare at noise.

What cannot be predicted keeps its loss for ever, and with it its priority. Here the loss of a step
counts up to `cap` only. In a training loop of your own the class is all you need:

    buffer = ReplayBuffer(capacity=1_000_000, length=64, rule=Capped(cap=2.0))

Registered, its fields are options of `--replay`, wherever this file is imported:

    curious train --import examples/own_rule.py --env toy/mirror --replay capped --replay.cap 2
"""

from dataclasses import dataclass

import numpy as np

import curious_replay as cr
from curious_replay.replay.rule import Floats, Signals, Visits


@dataclass(frozen=True, kw_only=True)
class Capped(cr.Curious):
    """p = c·β^v + (min(|L|, cap) + ε)^α."""

    cap: float = 1.0
    """Largest loss that counts."""

    def terms(self, visits: Visits, signals: Signals) -> dict[str, Floats]:
        """Visits [N] and signals {name: [N]} of trained steps in, terms of the priority [N] out."""
        loss = np.minimum(np.abs(signals[self.signal]), self.cap)
        return super().terms(visits, {self.signal: loss})


cr.register_rule("capped", Capped)
