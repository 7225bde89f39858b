"""Settings of replay: one class for each rule, so that an option exists where it has an effect."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from itertools import pairwise
from typing import Annotated, Literal, TypeVar, get_type_hints

from tyro.conf import arg

from curious_replay.bounds import Share, Within
from curious_replay.errors import UsageError
from curious_replay.replay import (
    Adversarial,
    Balanced,
    Count,
    Curious,
    Mixture,
    Rule,
    TemporalDifference,
    Uniform,
)
from curious_replay.replay.rule import Dialect
from curious_replay.run.settings.config_io import Whole, option, within

Signal = Literal["model", "likelihood", "kl"]
Made = TypeVar("Made", Rule, Mixture)


def _named(group: str, rule: Callable[..., Made], **values: object) -> Made:
    """Make a rule; what it refuses is said with the name of the option."""
    try:
        return rule(**values)
    except ValueError as error:
        name, _, rest = str(error).partition(" ")
        raise UsageError(f"{option(f'{group}.{name}')} {rest}") from None


@dataclass(frozen=True, kw_only=True)
class ReplayConfig:
    """Uniform replay, and what all kinds of replay share."""

    capacity: Annotated[Whole, Within(2)] = 1_000_000
    """Steps that are kept, over all environments; the oldest make room."""
    storage: Literal["memory", "disk"] = "memory"
    """Keep steps in memory, or in memory-mapped files in the run folder."""
    window: Literal["last", "first"] = "last"
    """Place of the drawn step in its window. last: its last step (DreamerV3); first: its second
    (DreamerV2), or a later one near the end of an episode."""
    cross_episodes: bool = True
    """Whether a window may reach over the end of an episode."""
    repeats: bool = True
    """Whether the windows of a batch may share steps. If not, they are drawn one after the other,
    each from the steps whose windows touch none of those before."""
    clear_at_change: Annotated[Whole, Within(0)] = 0
    """Empty the buffer at the first (1), second (2), ... change of phase; 0: never. The paper's
    control: what forgetting looks like."""

    def __post_init__(self) -> None:
        within("replay", self)
        self.rule()

    def rule(self) -> Rule | Mixture:
        """Return the rule that makes the priorities."""
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
        """Return the rule p = c·β^v."""
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
        """Return the rule p = (|L| + ε)^α."""
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
        """Return the rule p = c·β^v + (|L| + ε)^α."""
        return _named(
            "replay", Curious, c=self.c, beta=self.beta, alpha=self.alpha, eps=self.eps,
            p_max=self.p_max, signal=self.signal, dialect=self.dialect,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BalancedReplay(AdversarialReplay):
    """Curious Replay without c: a fixed share by count, the rest by loss."""

    novelty: float = 0.3
    """Share of a batch that is drawn by count, whatever the losses are."""
    beta: float = 0.7
    """What a visit leaves of the count's priority."""

    def rule(self) -> Rule | Mixture:
        """Return the rule that draws a share by c·β^v, the rest by (|L| + ε)^α."""
        return _named(
            "replay", Balanced, novelty=self.novelty, alpha=self.alpha, beta=self.beta,
            eps=self.eps, p_max=self.p_max, signal=self.signal, dialect=self.dialect,
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
        """Return the rule p = (|δ| + ε)^α."""
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

    fraction: Share = 0.5
    """Part of a batch that is drawn by temporal difference."""
    td: TDPart = field(default_factory=TDPart)
    adversarial: AdversarialPart = field(default_factory=AdversarialPart)

    def rule(self) -> Rule | Mixture:
        """Return the paper's TD + adversarial."""
        return Mixture(
            first=_named("replay.adversarial", Adversarial, **vars(self.adversarial)),
            second=_named("replay.td", TemporalDifference, **vars(self.td)),
            fraction=self.fraction,
        )


def register_rule(name: str, rule: type[Rule]) -> None:
    """Make a rule known as `--replay name`; each field of the dataclass `rule` is an option."""
    if name in REPLAYS and getattr(REPLAYS[name], "made_of", None) is not rule:
        raise UsageError(f"there is a rule {name!r} already: choose another name")

    def make(settings: ReplayConfig) -> Rule:
        return _named("replay", rule, **{f.name: getattr(settings, f.name) for f in fields(rule)})

    hints, help_texts = get_type_hints(rule), _help_of(rule)
    REPLAYS[name] = make_dataclass(
        f"{rule.__name__}Replay",
        [
            (f.name, Annotated[hints[f.name], arg(help=help_texts.get(f.name))], f.default)
            for f in fields(rule)
        ],
        bases=(ReplayConfig,),
        namespace={"rule": make, "made_of": rule, "__doc__": rule.__doc__},
        frozen=True,
        kw_only=True,
    )


def _help_of(kind: type) -> dict[str, str]:
    """Return what stands below the fields of a dataclass and of those it is derived from."""
    found: dict[str, str] = {}
    for each in reversed([base for base in kind.__mro__ if is_dataclass(base)]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        for one, after in pairwise(getattr(body, "body", [])):
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                text = getattr(getattr(after, "value", None), "value", None)
                if isinstance(after, ast.Expr) and isinstance(text, str):
                    found[one.target.id] = " ".join(text.split())
    return found


REPLAYS: dict[str, type[ReplayConfig]] = {
    "uniform": ReplayConfig,
    "curious": CuriousReplay,
    "balanced": BalancedReplay,
    "count": CountReplay,
    "adversarial": AdversarialReplay,
    "td": TDReplay,
    "td+adversarial": MixedReplay,
}
