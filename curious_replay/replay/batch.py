"""What a buffer gives out, and what it counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from curious_replay.replay.rule import Floats
from curious_replay.replay.sumtree import Ints


class Batch(dict[str, Any]):
    """Windows of steps: a dict of arrays [B, T, ...], nested as the steps were.

    ids            int64 [B, T]    names of the steps, for `ReplayBuffer.update`
    probabilities  float64 [B]     with which one draw chose the drawn step of each window
    distinct       float           share of distinct steps; the others are copies of these
    """

    def __init__(
        self,
        fields: Mapping[str, Any],
        ids: Ints,
        probabilities: Floats,
        distinct: float = float("nan"),
    ) -> None:
        super().__init__(fields)
        self.ids = ids
        self.probabilities = probabilities
        self.distinct = distinct


@dataclass
class Counts:
    """What happened to a buffer since it was made, over all saves and loads."""

    added: int = 0  # steps
    sampled: int = 0  # windows
    drawn: int = 0  # steps in these windows
    copies: int = 0  # of these, steps that their batch had already
    updated: int = 0  # steps that received feedback
    stale: int = 0  # feedback for steps that were gone by then, ignored
    refused: int = 0  # priorities not taken because they, or their signal, were not finite
