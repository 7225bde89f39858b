"""How much of replay goes to new steps, and a word to whoever did not mean that much.

In c·β^v + s, s being the loss term of an old step, a new step is drawn like an old one after

    v* = ln(c / s) / ln(1 / β)

visits. The train ratio is how many visits each step can have. Where v* is more than that, the count
term takes all draws: old steps are not replayed again.
"""

import math
from collections.abc import Mapping
from typing import TypeGuard

from curious_replay.replay import Balanced, Count, Mixture, Rule
from curious_replay.run.settings.config import Config

MOSTLY = 0.9
"""A share of novelty above this leaves next to nothing for old steps."""
REMEDY = (
    "--replay balanced draws a fixed share by count; a smaller --replay.beta or --replay.c, or a "
    "larger --train.ratio, leaves more to old steps"
)


def visits_wanted(c: float, beta: float, surprise: float) -> float:
    """Return v*, the visits until a step counts no more than one whose loss term is `surprise`."""
    if c <= surprise:
        return 0.0
    if surprise <= 0 or beta >= 1:
        return math.inf
    return math.log(c / surprise) / math.log(1 / beta) if beta > 0 else 1.0


def forecast(config: Config) -> list[str]:
    """Say, before the first frame, how much novelty the rule will ask for."""
    rule, ratio = config.replay.rule(), config.train.ratio
    if isinstance(rule, Balanced):
        return [f"novelty: {rule.fraction:.0%} of each batch is drawn by count, at any loss"]
    if not _weighs(rule):
        return []
    visits = " / ".join(f"{visits_wanted(rule.c, rule.beta, s):.0f}" for s in (1, 10, 100))
    return [
        f"novelty: each new step is asked for {visits} visits while the loss term of old ones is "
        f"1 / 10 / 100; the train ratio gives {ratio:g} to a step"
    ]


class Novelty:
    """Looks at the numbers of replay, interval by interval, and speaks up once."""

    def __init__(self, config: Config) -> None:
        rule, self._ratio = config.replay.rule(), config.train.ratio
        self._rule = rule if _weighs(rule) else None  # None: there is nothing to say
        self._before = 0.0  # share of novelty when the last interval ended

    def see(self, stats: Mapping[str, float]) -> str | None:
        """Return what is to be said about replay, if anything; `stats` are those of the buffer."""
        rule = self._rule
        if rule is None or not stats["updated"] or "surprise_mean" not in stats:
            return None
        share, surprise = stats["novelty_share"], stats["surprise_mean"]
        wanted = visits_wanted(rule.c, rule.beta, surprise)
        mostly = min(share, self._before) > MOSTLY
        self._before = share
        if wanted <= self._ratio and not mostly:
            return None
        self._rule = None
        return (
            f"old steps are no longer replayed: {share:.0%} of the draws go to new ones. The rule "
            f"asks for {wanted:.0f} visits of each (c {rule.c:g}, beta {rule.beta:g}, "
            f"a loss term of {surprise:.3g} of the others), and the train ratio gives "
            f"{self._ratio:g}. {REMEDY}"
        )


def _weighs(rule: Rule | Mixture) -> TypeGuard[Count]:
    """Return whether a count term competes with another one for the draws."""
    return isinstance(rule, Count) and bool(rule.signals) and rule.c > 0
