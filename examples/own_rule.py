"""A rule of your own: Curious Replay that does not stare at noise.

What cannot be predicted keeps its loss for ever, and with it its priority. Here the loss of a step
counts up to `cap` only. In a training loop of your own the class is all you need:

    buffer = ReplayBuffer(capacity=1_000_000, length=64, rule=Capped(cap=2.0))

With its settings entered among those of `--replay`, this file is `curious` with one rule more:

    python examples/own_rule.py train --env toy/mirror --replay capped --replay.cap 2 --scale debug
"""

import sys
from dataclasses import dataclass

import numpy as np

from curious_replay import cli
from curious_replay.replay import Curious
from curious_replay.replay.priority import Floats, Signals, Visits
from curious_replay.run.replay_config import REPLAYS, CuriousReplay


@dataclass(frozen=True, kw_only=True)
class Capped(Curious):
    """p = c·β^v + (min(|L|, cap) + ε)^α."""

    cap: float = 1.0

    def __call__(self, visits: Visits, signals: Signals) -> Floats:
        """Visits [N] and signals {name: [N]} of trained steps in, priorities [N] out."""
        loss = np.minimum(np.abs(signals[self.signal]), self.cap)
        return super().__call__(visits, {self.signal: loss})


@dataclass(frozen=True, kw_only=True)
class CappedReplay(CuriousReplay):
    """Curious Replay up to a loss."""

    cap: float = 1.0
    """Largest loss that counts."""

    def rule(self) -> Capped:
        """The rule that these settings stand for."""
        return Capped(
            c=self.c, beta=self.beta, alpha=self.alpha, eps=self.eps, p_max=self.p_max,
            signal=self.signal, dialect=self.dialect, cap=self.cap,
        )  # fmt: skip


REPLAYS["capped"] = CappedReplay

if __name__ == "__main__":
    sys.exit(cli.main())
