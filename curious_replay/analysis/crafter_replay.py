"""What is replayed in Crafter once a resource was found (paper: Tables 7 and 8), from snapshots."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from curious_replay.analysis import crafter, replay_probe, snapshots
from curious_replay.analysis.load import Run
from curious_replay.analysis.snapshots import Snapshot

FOUND_BY = {
    "wood": "collect_wood",
    "wood_pickaxe": "make_wood_pickaxe",
    "stone": "collect_stone",
    "stone_pickaxe": "make_stone_pickaxe",
    "iron": "collect_iron",
}
"""The resources of the tables, and the achievement that each is found by."""
PAPER_CHECKPOINTS = 100_000
"""Steps between the checkpoints that Table 7 was made from."""


@dataclass(frozen=True)
class Relative:
    """A number of each run, relative to uniform replay, and the step of the snapshot it is from."""

    values: list[float]
    steps: list[float]


def sampling_by_resource(
    runs: Sequence[Run], budget: int, resources: Iterable[str] = FOUND_BY
) -> dict[str, Relative]:
    """Return the chance to be drawn where a resource is held, relative to uniform (paper: Table 7).

    Of each run, the snapshot after the average agent's success has reached 1 %
    (`crafter.steps_to_success`): at the next multiple of 100 K steps as in the paper, or, where
    `budget` is less than the benchmark's million, the next one there is. NaN: never, or none.
    """
    reached = crafter.steps_to_success(map(crafter.episodes_of, runs), budget=budget)
    every = PAPER_CHECKPOINTS if budget >= crafter.BUDGET else 1
    found = {}
    for resource in resources:
        achievement = crafter.SPECTRUM.index(FOUND_BY[resource])
        step = crafter.checkpoint_after(reached[achievement], every)
        seen = [snapshots.first_from(run, step) for run in runs]
        values = [
            crafter.relative_sampling(each.chance, _held(each, resource)) if each else np.nan
            for each in seen
        ]
        found[resource] = Relative(values, [each.step if each else np.nan for each in seen])
    return found


def training_by_resource(
    runs: Sequence[Run], resources: Iterable[str] = FOUND_BY
) -> dict[str, Relative]:
    """Return visits of steps where a resource is held, relative to uniform replay (paper: Table 8).

    Of each run, the first snapshot in which the resource is held somewhere; the paper's come every
    10 K steps. NaN: never.
    """
    found = {resource: Relative([], []) for resource in resources}
    for run in runs:
        missing = set(found)
        for path in snapshots.paths(run):
            seen = snapshots.read(path) if missing else None
            if seen is None:
                continue
            for resource in sorted(missing):
                holding = _held(seen, resource)
                if holding.any():
                    missing.discard(resource)
                    expected = _uniform(seen, run)
                    value = crafter.relative_training(seen.visits, expected, holding)
                    found[resource].values.append(value)
                    found[resource].steps.append(seen.step)
        for resource in missing:
            found[resource].values.append(np.nan)
            found[resource].steps.append(np.nan)
    return found


def _held(seen: Snapshot, resource: str) -> np.ndarray:
    inventory = seen.logs.get("log_inventory")
    nothing: np.ndarray = np.zeros(len(seen.ids), bool)
    return nothing if inventory is None else crafter.held(inventory, resource)


def _uniform(seen: Snapshot, run: Run) -> np.ndarray:
    """Return the visits that uniform replay would have given each step of a snapshot."""
    capacity = int(run.setting("replay.capacity") or 0) // seen.num_envs or None
    return replay_probe.uniform_visits(
        seen.time,
        int(seen.time.max(initial=-1)) + 1,
        float(seen.visits.sum()),
        first=max(int(run.setting("train.prefill") or 1) // seen.num_envs, 1),
        capacity=capacity,
    )
