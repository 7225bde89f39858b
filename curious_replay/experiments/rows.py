"""Rows of tables: methods by the names that the paper gives them, or would, and its numbers."""

from collections.abc import Mapping
from typing import Literal

from curious_replay.experiments.experiment import Key, Method, Reported
from curious_replay.run.settings.presets import Settings

AGENTS = {
    "dreamerv3": "DreamerV3",
    "dreamerv2": "DreamerV2",
    "plan2explore": "Plan2Explore",
    "plan2explore-v3": "Plan2Explore V3",
    "dreamerpro": "DreamerPro",
    "iris": "IRIS",
}
REPLAYS = {
    "uniform": "",
    "td": " TD",
    "curious": " CR",
    "count": " count",
    "adversarial": " adversarial",
    "td+adversarial": " TD + adversarial",
    "balanced": " balanced",
}
PAINTED = (
    "without `--images`, backgrounds are painted landscapes; the paper's are clips of DAVIS "
    "(`--images DAVIS/JPEGImages/480p --clips boat bmx-bumps`)"
)
"""How experiments in front of pictures differ."""


def row(
    agent: str,
    replay: str,
    name: str = "",
    settings: Settings | None = None,
    tasks: tuple[str, ...] = (),
) -> Method:
    """Return an agent with a kind of replay, named as in the paper unless it has a `name`."""
    return Method(name or AGENTS[agent] + REPLAYS[replay], agent, replay, settings or {}, tasks)


def reported(
    task: str,
    numbers: Mapping[str, float | tuple[float, float]],
    *,
    n: int | None = None,
    kind: Literal["s.e.m.", "s.d."] = "s.e.m.",
) -> dict[Key, Reported]:
    """Return the paper's numbers for a task: by method, a mean or (mean, what is behind ±)."""
    pairs = {k: v if isinstance(v, tuple) else (v, None) for k, v in numbers.items()}
    return {(task, name): Reported(mean, spread, kind, n) for name, (mean, spread) in pairs.items()}
