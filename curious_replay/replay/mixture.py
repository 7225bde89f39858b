"""Two rules that share the draws of a batch, and the mixture that does without c."""

from dataclasses import dataclass
from typing import Any

from curious_replay.replay.priority import Adversarial, Count
from curious_replay.replay.rule import Dialect, Rule


@dataclass(frozen=True)
class Mixture:
    """`fraction` of a batch drawn by the `second` rule, the rest by the `first`.

    Both rules keep priorities of their own and learn from every batch, whichever drew it.
    """

    first: Rule
    second: Rule
    fraction: float

    def __post_init__(self) -> None:
        for rule in (self.first, self.second):
            if not isinstance(rule, Rule):
                raise TypeError(f"a Mixture is made of two rules, got {rule!r}")
        if not 0 <= self.fraction <= 1:
            raise ValueError(f"fraction must be between 0 and 1, got {self.fraction}")
        object.__setattr__(self, "fraction", float(self.fraction))

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals that either rule reads."""
        return tuple(sorted({*self.first.signals, *self.second.signals}))


class Balanced(Mixture):
    """Curiosity without c: a share `novelty` of a batch by count, the rest by loss.

    In the sum c·β^v + (|L| + ε)^α the scale of the losses and the train ratio decide which term
    rules. Here each is normalised on its own, so that the share of novelty is what it is said to
    be, whatever the losses are.
    """

    def __init__(
        self,
        novelty: float = 0.3,
        *,
        alpha: float = 0.7,
        beta: float = 0.7,
        eps: float = 0.01,
        p_max: float = 1e5,
        signal: str = "model",
        dialect: Dialect = "paper",
    ) -> None:
        if not 0 <= novelty <= 1:
            raise ValueError(f"novelty must be between 0 and 1, got {novelty!r}")
        both: dict[str, Any] = {"p_max": p_max, "dialect": dialect}
        surprise = Adversarial(alpha=alpha, eps=eps, signal=signal, **both)
        super().__init__(surprise, Count(beta=beta, **both), novelty)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"Balanced({settings})"

    def settings(self) -> dict[str, Any]:
        """Return what it was made with."""
        surprise, count = self.first, self.second
        assert isinstance(surprise, Adversarial)
        assert isinstance(count, Count)
        return {
            "novelty": self.fraction, "alpha": surprise.alpha, "beta": count.beta,
            "eps": surprise.eps, "p_max": surprise.p_max, "signal": surprise.signal,
            "dialect": surprise.dialect,
        }  # fmt: skip
