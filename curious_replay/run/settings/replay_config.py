"""Settings of replay: one class for each rule, so that an option exists where it has an effect.

The classes are made from the rules themselves, which have the defaults and check the values.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, is_dataclass, make_dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

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
from curious_replay.run.settings.config_io import Whole, option, within

Signal = Literal["model", "likelihood", "kl"]
Made = TypeVar("Made", bound=Rule | Mixture)
LOSS = ("alpha", "eps", "p_max", "signal", "dialect")
"""What can be chosen of a rule that goes by a loss of the world model."""
ERROR = ("alpha", "eps", "p_max")
"""And by the critic's temporal-difference error."""
HELP = {
    "alpha": "Exponent of the loss or error.",
    "eps": "Added to the loss or error.",
    "c": "Weight of the count term.",
    "beta": "What a visit leaves of the count term.",
    "novelty": "Share of a batch that is drawn by count, whatever the losses are.",
    "p_max": "Priority of a step that was never trained on.",
    "signal": "Which loss: all of the world model's, its likelihoods only, or its KL.",
    "dialect": "Whose reading of the rule: the paper's, or that of released code.",
}


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


def register_rule(name: str, rule: type[Rule]) -> None:
    """Make a rule known as `--replay name`; each field of the dataclass `rule` is an option."""
    if name in REPLAYS and getattr(REPLAYS[name], "made_of", None) is not rule:
        raise UsageError(f"there is a rule {name!r} already: choose another name")
    REPLAYS[name] = _replay_by(rule)


def _replay_by(
    rule: Callable[..., Rule | Mixture], names: Sequence[str] = (), **types: Any
) -> type[ReplayConfig]:
    """Make the settings of replay by one rule: see `_options`."""
    options = _options(rule, names, types)

    def make(settings: ReplayConfig) -> Rule | Mixture:
        return _named("replay", rule, **{name: getattr(settings, name) for name, *_ in options})

    return make_dataclass(
        f"{rule.__name__}Replay",
        options,
        bases=(ReplayConfig,),
        namespace={"rule": make, "made_of": rule, "__doc__": rule.__doc__},
        frozen=True,
        kw_only=True,
    )


def _part_of(rule: type[Rule], names: Sequence[str], **types: Any) -> Any:
    """Make the settings of a rule that is part of a mixture: see `_options`."""
    return make_dataclass(
        f"{rule.__name__}Part",
        _options(rule, names, types),
        namespace={"__doc__": rule.__doc__},
        frozen=True,
        kw_only=True,
    )


def _options(
    rule: Callable[..., Rule | Mixture], names: Sequence[str], types: dict[str, Any]
) -> list[tuple[str, Any, Any]]:
    """Return name, type and default of what a rule is made with: all of it, or what is in `names`.

    Types are the rule's own, but for those in `types`.
    """
    hints = {**get_type_hints(rule.__init__), **types}
    texts = HELP if names else {**HELP, **_help_of(rule)}  # to read the source takes its time
    given = inspect.signature(rule).parameters
    return [
        (name, Annotated[hints[name], arg(help=texts.get(name))], given[name].default)
        for name in names or given
    ]


def _help_of(rule: Any) -> dict[str, str]:
    """Return what stands below the fields of a dataclass and of those it is derived from."""
    found: dict[str, str] = {}
    bases: list[Any] = [base for base in rule.__mro__ if is_dataclass(base)]
    for each in reversed(bases):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        for one, after in pairwise(getattr(body, "body", [])):
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                text = getattr(getattr(after, "value", None), "value", None)
                if isinstance(after, ast.Expr) and isinstance(text, str):
                    found[one.target.id] = " ".join(text.split())
    return found


TDPart = _part_of(TemporalDifference, ERROR)
AdversarialPart = _part_of(Adversarial, LOSS, signal=Signal)


@dataclass(frozen=True, kw_only=True)
class MixedReplay(ReplayConfig):
    """Part of each batch by temporal difference, the rest by loss."""

    fraction: Share = 0.5
    """Part of a batch that is drawn by temporal difference."""
    td: TDPart = field(default_factory=TDPart)  # type: ignore[valid-type]  # it is made above
    adversarial: AdversarialPart = field(default_factory=AdversarialPart)  # type: ignore[valid-type]

    def rule(self) -> Rule | Mixture:
        """Return the paper's TD + adversarial."""
        return Mixture(
            first=_named("replay.adversarial", Adversarial, **vars(self.adversarial)),
            second=_named("replay.td", TemporalDifference, **vars(self.td)),
            fraction=self.fraction,
        )


REPLAYS: dict[str, type[ReplayConfig]] = {
    "uniform": ReplayConfig,
    "curious": _replay_by(Curious, (*LOSS, "c", "beta"), signal=Signal),
    "balanced": _replay_by(Balanced, (*LOSS, "novelty", "beta"), signal=Signal),
    "count": _replay_by(Count, ("c", "beta", "p_max", "dialect")),
    "adversarial": _replay_by(Adversarial, LOSS, signal=Signal),
    "td": _replay_by(TemporalDifference, ERROR),
    "td+adversarial": MixedReplay,
}
