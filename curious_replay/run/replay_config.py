"""Settings of replay: one class for each rule, so that an option exists where it has an effect."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from curious_replay.replay import (
    Adversarial,
    Count,
    Curious,
    Mixture,
    Rule,
    TemporalDifference,
    Uniform,
)
from curious_replay.replay.priority import Dialect
from curious_replay.run.settings import Whole, option, within

Signal = Literal["model", "likelihood", "kl"]


def _named(group: str, rule: Callable[..., Rule], **values: object) -> Rule:
    """Make a rule; what it refuses is said with the name of the option."""
    try:
        return rule(**values)
    except ValueError as error:
        name, _, rest = str(error).partition(" ")
        raise ValueError(f"{option(f'{group}.{name}')} {rest}") from None


@dataclass(frozen=True, kw_only=True)
class ReplayConfig:
    """Uniform replay, and what all kinds of replay share."""

    capacity: Whole = 1_000_000
    """Steps that are kept, over all environments; the oldest make room."""
    storage: Literal["memory", "disk"] = "memory"
    """Keep steps in memory, or in memory-mapped files in the run folder."""
    window: Literal["last", "first"] = "last"
    """Place of the drawn step in its window. last: its last step (DreamerV3); first: its second
    (DreamerV2), or a later one near the end of an episode."""
    cross_episodes: bool = True
    """Whether a window may reach over the end of an episode."""
    clear_at_change: Whole = 0
    """Empty the buffer at the first (1), second (2), ... change of phase; 0: never. The paper's
    control: what forgetting looks like."""

    def __post_init__(self) -> None:
        within("replay", self, {"capacity": (2, None), "clear_at_change": (0, None)})
        self.rule()

    def rule(self) -> Rule | Mixture:
        """The rule that makes the priorities."""
        return Uniform()


@dataclass(frozen=True, kw_only=True)
class CountReplay(ReplayConfig):
    """Replay what was seen least."""

    c: float = 1e4
    """Weight of the count term."""
    beta: float = 0.7
    """What a visit leaves of the count term."""
    p_max: float = 1e5
    """Priority of a step that was never trained on."""
    dialect: Dialect = "paper"
    """Whose reading of the rule: the paper's, or that of released code."""

    def rule(self) -> Rule | Mixture:
        """p = c·β^v."""
        return _named(
            "replay", Count, c=self.c, beta=self.beta, p_max=self.p_max, dialect=self.dialect
        )


@dataclass(frozen=True, kw_only=True)
class AdversarialReplay(ReplayConfig):
    """Replay what is modelled worst."""

    alpha: float = 0.7
    """Exponent of the loss."""
    eps: float = 0.01
    """Added to the loss."""
    p_max: float = 1e5
    """Priority of a step that was never trained on."""
    signal: Signal = "model"
    """Which loss: all of the world model's, its likelihoods only, or its KL."""
    dialect: Dialect = "paper"
    """Whose reading of the rule: the paper's, or that of released code."""

    def rule(self) -> Rule | Mixture:
        """p = (|L| + ε)^α."""
        return _named(
            "replay", Adversarial, alpha=self.alpha, eps=self.eps, p_max=self.p_max,
            signal=self.signal, dialect=self.dialect,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CuriousReplay(AdversarialReplay):
    """Curious Replay."""

    c: float = 1e4
    """Weight of the count term."""
    beta: float = 0.7
    """What a visit leaves of the count term."""

    def rule(self) -> Rule | Mixture:
        """p = c·β^v + (|L| + ε)^α."""
        return _named(
            "replay", Curious, c=self.c, beta=self.beta, alpha=self.alpha, eps=self.eps,
            p_max=self.p_max, signal=self.signal, dialect=self.dialect,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TDReplay(ReplayConfig):
    """Replay what the critic predicts worst."""

    alpha: float = 0.7
    """Exponent of the temporal-difference error."""
    eps: float = 0.01
    """Added to the error."""
    p_max: float = 1e5
    """Priority of a step that was never trained on."""

    def rule(self) -> Rule | Mixture:
        """p = (|δ| + ε)^α."""
        return _named(
            "replay", TemporalDifference, alpha=self.alpha, eps=self.eps, p_max=self.p_max
        )


@dataclass(frozen=True, kw_only=True)
class TDPart:
    """The rule by temporal difference in a mixture."""

    alpha: float = 0.7
    """Exponent of the temporal-difference error."""
    eps: float = 0.01
    """Added to the error."""
    p_max: float = 1e5
    """Priority of a step that was never trained on."""


@dataclass(frozen=True, kw_only=True)
class AdversarialPart:
    """The rule by loss in a mixture."""

    alpha: float = 0.7
    """Exponent of the loss."""
    eps: float = 0.01
    """Added to the loss."""
    p_max: float = 1e5
    """Priority of a step that was never trained on."""
    signal: Signal = "model"
    """Which loss: all of the world model's, its likelihoods only, or its KL."""
    dialect: Dialect = "paper"
    """Whose reading of the rule: the paper's, or that of released code."""


@dataclass(frozen=True, kw_only=True)
class MixedReplay(ReplayConfig):
    """Part of each batch by temporal difference, the rest by loss."""

    fraction: float = 0.5
    """Part of a batch that is drawn by temporal difference."""
    td: TDPart = field(default_factory=TDPart)
    adversarial: AdversarialPart = field(default_factory=AdversarialPart)

    def __post_init__(self) -> None:
        within("replay", self, {"fraction": (0, 1)})
        super().__post_init__()

    def rule(self) -> Rule | Mixture:
        """The paper's TD + adversarial."""
        return Mixture(
            first=_named("replay.adversarial", Adversarial, **vars(self.adversarial)),
            second=_named("replay.td", TemporalDifference, **vars(self.td)),
            fraction=self.fraction,
        )


REPLAYS: dict[str, type[ReplayConfig]] = {
    "uniform": ReplayConfig,
    "curious": CuriousReplay,
    "count": CountReplay,
    "adversarial": AdversarialReplay,
    "td": TDReplay,
    "td+adversarial": MixedReplay,
}
