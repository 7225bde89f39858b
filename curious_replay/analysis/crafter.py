"""Crafter: success rates, score, ability spectrum, and what Curious Replay replays there.

Training episodes only, as the benchmark asks. `unlocked` is bool [episodes, achievements], in the
order of `SPECTRUM`; `lengths` are the steps of each episode.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from curious_replay.analysis.lines import Array
from curious_replay.analysis.load import Run

SPECTRUM = (
    "wake_up", "collect_wood", "collect_drink", "defeat_zombie", "eat_cow", "defeat_skeleton",
    "collect_sapling", "place_table", "place_plant", "make_wood_pickaxe", "make_wood_sword",
    "eat_plant", "collect_stone", "place_stone", "collect_coal", "place_furnace",
    "make_stone_sword", "make_stone_pickaxe", "collect_iron", "make_iron_pickaxe",
    "make_iron_sword", "collect_diamond",
)  # fmt: skip
"""The 22 achievements by number of prerequisites, as in the paper's Figure 4."""
HARD = SPECTRUM[SPECTRUM.index("make_wood_pickaxe") :]
"""Those the paper highlights: they need at least four others first."""
PROGRESSION = (
    "collect_wood", "place_table", "make_wood_pickaxe", "collect_stone", "make_stone_pickaxe",
    "collect_iron",
)  # fmt: skip
"""The chain of the paper's Table 9."""
ITEMS = (
    "health", "food", "drink", "energy", "sapling", "wood", "stone", "coal", "iron", "diamond",
    "wood_pickaxe", "stone_pickaxe", "iron_pickaxe", "wood_sword", "stone_sword", "iron_sword",
)  # fmt: skip
"""What the entries of `log_inventory` are."""
BUDGET = 1_000_000
"""Steps of the benchmark."""


def episodes_of(run: Run) -> tuple[Array, Array]:
    """Return lengths [episodes] and unlocked achievements [episodes, 22] of a run's training."""
    played = run.played()
    counts = [np.nan_to_num(played[f"achievement/{name}"]) for name in SPECTRUM]
    return np.nan_to_num(played["length"]).astype(np.int64), np.stack(counts, axis=1) > 0


def budget_of(runs: Iterable[Run]) -> int:
    """Return the benchmark's budget, or what the shortest run did if that is less, in steps.

    Runs that have nothing do not count.
    """
    return min([BUDGET, *(run.steps_done for run in runs if run.steps_done > 0)])


def within_budget(lengths: npt.ArrayLike, budget: int = BUDGET) -> int:
    """Return how many episodes fit: all before the first that would end after `budget` steps."""
    return int(np.count_nonzero(np.cumsum(np.asarray(lengths, np.int64)) <= budget))


def success_rates(lengths: npt.ArrayLike, unlocked: npt.ArrayLike, budget: int = BUDGET) -> Array:
    """Return the per cent of the episodes within the budget that unlocked each achievement, [22].

    NaN if there is no episode.
    """
    kept = np.asarray(unlocked, bool)[: within_budget(lengths, budget)]
    return 100 * kept.mean(0) if len(kept) else np.full(kept.shape[1], np.nan)


def score(rates: npt.ArrayLike) -> float:
    """Return the benchmark's score of one run: exp(mean ln(1 + rate)) - 1, rates in per cent.

    Rates of 100, 50, 0 and 1 % give 9.0746597. Scores of runs are averaged, with the standard
    deviation (paper: Table 1, n = 10, `Summary.population_sd`).
    """
    return float(np.expm1(np.log1p(np.asarray(rates, np.float64)).mean()))


def score_of(run: Run, budget: int = BUDGET) -> float:
    """Return the score of a run's training episodes; NaN if it has none within the budget."""
    return score(success_rates(*episodes_of(run), budget))


def success_over_time(
    lengths: npt.ArrayLike, unlocked: npt.ArrayLike, grid: npt.ArrayLike, window: int = 20_000
) -> Array:
    """Return success in a moving average, in per cent, [grid, achievements].

    It is that of the episodes that ended in the last `window` steps; NaN where none ended.
    """
    ends, points = np.cumsum(np.asarray(lengths, np.int64)), np.asarray(grid)
    low = np.searchsorted(ends, points - window, side="right")
    high = np.searchsorted(ends, points, side="right")
    total = np.asarray(unlocked, np.float64).cumsum(0)
    total = np.concatenate([np.zeros((1, total.shape[1])), total])
    count = (high - low)[:, None]
    sums = total[high] - total[low]
    means: Array = np.full(sums.shape, np.nan)
    np.divide(100 * sums, count, out=means, where=count > 0)
    return means


def steps_to_success(
    runs: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    percent: float = 1.0,
    window: int = 20_000,
    every: int = 500,
    budget: int = BUDGET,
) -> Array:
    """Return the steps until the average agent succeeds in 1 % of episodes, [22] (paper: Table 9).

    `success_over_time` of each run (lengths, unlocked), at multiples of `every` steps; the mean
    over the runs that had an episode in the window; the first point that reaches `percent`. NaN
    stands for never.
    """
    grid = np.arange(every, budget + 1, every)
    sums = np.zeros((len(grid), len(SPECTRUM)))
    counts = np.zeros_like(sums)
    for lengths, unlocked in runs:
        success = success_over_time(lengths, unlocked, grid, window)
        over = grid[:, None] > np.sum(lengths)  # a run tells nothing of what comes after its end
        known = np.isfinite(success) & ~over
        sums += np.where(known, success, 0)
        counts += known
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    reached = np.concatenate([means >= percent, np.zeros((1, len(SPECTRUM)), bool)])
    return np.where(reached.any(0), np.append(grid, 0)[reached.argmax(0)], np.nan)


def held(inventory: npt.ArrayLike, resource: str) -> Array:
    """Return at which steps a resource is held, bool [N], from `log_inventory` [N, 16]."""
    return np.asarray(inventory)[:, ITEMS.index(resource)] > 0


def relative_sampling(chance: npt.ArrayLike, holding: npt.ArrayLike) -> float:
    """Return the chance to be drawn where a resource is held, relative to uniform (paper: Table 7).

    The median over these steps of `chance`, p · N / Σp (`replay_probe.relative`). Steps that cannot
    be drawn (0) do not take part. The paper takes the next checkpoint at a multiple of 100 K steps
    after `steps_to_success` (`checkpoint_after`).
    """
    relative, holds = np.asarray(chance, np.float64), np.asarray(holding, bool)
    kept = relative[holds & (relative > 0)]
    return float(np.median(kept)) if len(kept) else float("nan")


def relative_training(
    visits: npt.ArrayLike, expected: npt.ArrayLike, holding: npt.ArrayLike
) -> float:
    """Return how often steps with a resource were trained on, relative to uniform (paper: Table 8).

    The mean over these steps of visits divided by those that uniform replay would have given a
    step of that position (`replay_probe.uniform_visits`). The paper takes the next checkpoint at a
    multiple of 10 K steps after the resource was first held.
    """
    ratio = np.asarray(visits, np.float64) / np.maximum(np.asarray(expected, np.float64), 1e-300)
    kept = ratio[np.asarray(holding, bool) & (np.asarray(expected) > 0)]
    return float(kept.mean()) if len(kept) else float("nan")


def checkpoint_after(step: float, every: int) -> float:
    """Return the next multiple of `every` after `step`, or `step` if it is one; NaN stays NaN."""
    return float(np.ceil(step / every) * every)
