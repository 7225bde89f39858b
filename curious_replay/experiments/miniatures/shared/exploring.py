"""What experiments on explorers share: measures of an object that appears, and their ladder."""

from typing import NamedTuple

import numpy as np

from curious_replay.analysis import interaction, stored
from curious_replay.analysis.load import Run
from curious_replay.experiments.experiment import Measure, each
from curious_replay.experiments.ladder import Footing, Rung
from curious_replay.experiments.miniatures.shared.policies import Policy, play
from curious_replay.experiments.miniatures.shared.settled import SETTLED

STAY_WINDOW = 2_000
"""Steps that an explorer must not spend in a corner."""
Cell = tuple[int, ...]


class World(NamedTuple):
    """A world without reward in which an object appears."""

    empty: str
    """The phase before it appears."""
    shown: str
    """The phase in which it is there."""
    budget: int
    """Steps from its appearance to the end."""
    warm: int
    """Steps of chance before it appears, so that chance may be anywhere by then."""
    chance: Policy
    oracle: Policy
    contact: int = 5
    """The contact that chance does not come to within the budget, counted from 1."""
    walks: int = 4
    """How often chance is tried for each seed."""
    cell: float = 1.0
    """Side of the cells that coverage is counted in, in units of positions."""

    def cells(self, positions: np.ndarray) -> list[Cell]:
        """Return the cell of each of positions [steps, 2 or more]."""
        return [tuple(cell) for cell in np.floor(positions[:, :2] / self.cell).astype(int).tolist()]


def contacts() -> Measure:
    """Return the measure: contacts with the object since it appeared."""

    def count(run: Run) -> float:
        frames, counts = interaction.counts_of(run, "contacts", stored.newest(run))
        return float(counts[frames > run.first_change].sum())

    return Measure("contacts", each(count))


def in_view(until: int | None = None) -> Measure:
    """Return the measure: share of the steps since it appeared that show the object.

    `until` is the frame at which it is gone.
    """

    def share(run: Run) -> float:
        found = stored.newest(run)
        name = None if found is None else interaction.object_name(found)
        if found is None or name is None:
            return float("nan")
        there = found.frame > run.first_change
        if until is not None:
            there &= found.frame <= until
        return float((found.field(f"log_{name}_pixels")[there] > 0).mean())

    return Measure("share of steps with the object in view", each(share))


def ladder(world: World, coverage: float) -> tuple[Rung, ...]:
    """Return the rungs of an explorer's world.

    The explorer covers at least `coverage` of the cells that chance covers in as many steps.
    """
    return (
        Rung(
            "cells of the explorer / of a random policy",
            lambda footing: _coverage(footing, world),
            at_least=coverage,
        ),
        Rung(
            f"fewest cells in {STAY_WINDOW:,} steps / all",
            lambda footing: _stays(footing, world),
            at_least=0.05,
        ),
        SETTLED,
        *far_from_chance(world),
    )


def far_from_chance(world: World) -> tuple[Rung, Rung]:
    """Return the rungs of the measure: an oracle is soon there, chance is not."""
    return (
        Rung(
            f"steps of an oracle to contact {world.contact}",
            lambda footing: _to_contact(footing, world, world.oracle, walks=1, warm=0),
            at_most=world.budget / 5,
        ),
        Rung(
            f"steps of a random policy to contact {world.contact}",
            lambda footing: _to_contact(footing, world, world.chance, world.walks, world.warm),
            at_least=world.budget,
        ),
    )


def _visited(run: Run, world: World) -> list[Cell]:
    """Return the cell of the agent at each step that a run has stored."""
    found = stored.newest(run)
    places = None if found is None else interaction.position_of(found, "agent")
    return [] if places is None else world.cells(places)


def _coverage(footing: Footing, world: World) -> list[float]:
    """Return the cells that the explorer was in, by those of chance in as many steps."""
    found = []
    for run in footing.runs:
        own = _visited(run, world)
        rows = play(footing.config, world.chance, world.empty, max(len(own), 1), run.seed)
        found.append(len({*own}) / len({*world.cells(rows["log_agent_position"])}))
    return found


def _stays(footing: Footing, world: World) -> list[float]:
    """Return the fewest cells of any `STAY_WINDOW` steps, of all cells that the explorer was in."""
    found = []
    for run in footing.runs:
        own = _visited(run, world)
        starts = range(0, max(len(own) - STAY_WINDOW, 0) + 1, STAY_WINDOW // 10)
        fewest = min(len({*own[start : start + STAY_WINDOW]}) for start in starts)
        found.append(fewest / max(len({*own}), 1))
    return found


def _to_contact(
    footing: Footing, world: World, policy: Policy, walks: int, warm: int
) -> list[float]:
    """Return a policy's steps from the appearance of the object to the n-th contact with it."""
    found = []
    for seed in (world.walks * run.seed + walk for run in footing.runs for walk in range(walks)):
        before = (world.empty, warm)
        rows = play(footing.config, policy, world.shown, world.budget, seed, before)
        steps = np.arange(1, 1 + world.budget)
        found.append(interaction.frames_to_nth(steps, rows["log_contacts"], world.contact))
    return found
