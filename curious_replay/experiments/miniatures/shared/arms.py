"""The kinds of replay that the miniatures compare, in the order of their tables."""

from curious_replay.experiments.experiment import Method
from curious_replay.run.settings.presets import Settings

UNIFORM, TD, MIXED, COUNT, ADVERSARIAL, CURIOUS, BALANCED = (
    "uniform", "TD", "TD + adversarial", "count", "adversarial", "curious", "balanced",
)  # fmt: skip
DISTINCT = "curious, no repeats"
CLEARED = "uniform, cleared"
_REPLAYS: dict[str, tuple[str, Settings]] = {
    UNIFORM: ("uniform", {}),
    TD: ("td", {}),
    MIXED: ("td+adversarial", {}),
    COUNT: ("count", {}),
    ADVERSARIAL: ("adversarial", {}),
    CURIOUS: ("curious", {}),
    BALANCED: ("balanced", {}),
    DISTINCT: ("curious", {"replay.repeats": False}),
}
"""By name: the kind of replay, with the paper's c, beta and alpha, and what else is set."""
ALL = tuple(_REPLAYS)


def arm(agent: str, name: str) -> Method:
    """Return an agent with one of these kinds of replay."""
    replay, settings = _REPLAYS[name]
    return Method(name, agent, replay, settings)


def arms(agent: str, *names: str) -> tuple[Method, ...]:
    """Return an agent with several of them, by default with all."""
    return tuple(arm(agent, name) for name in names or ALL)


def cleared(agent: str, change: int) -> Method:
    """Return uniform replay from a buffer that is emptied at the n-th change: what forgets."""
    return Method(CLEARED, agent, "uniform", {"replay.clear_at_change": change})
