"""Pairs of runs: exact tests and intervals for a handful of them.

Branches of one trunk differ in nothing but their method, so their difference is free of what the
seed decides. All here rests on Wilcoxon's signed-rank test: its p-values are exact, its interval is
the one of Hodges and Lehmann, which holds what the test does not reject, and similarity is two of
its one-sided tests (TOST: Schuirmann 1987).

Times are compared by their ratio, that is by differences of logarithms. That is better founded than
a bootstrap of the ratio of medians: the interval belongs to the test, is exact for few pairs and
needs no random numbers, and a median says nothing once half of the runs never got there.

A run that never got there took longer than all that did, by the same unknown time as all others
like it: two of them are a tie, and beside one of them the sooner run is the further ahead.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from curious_replay.analysis.stats import Interval

Array = npt.NDArray[Any]
Side = Literal["both", "greater", "less"]
DIGITS = 12
"""Differences that agree in so many digits differ by rounding only, and are ties."""


@dataclass(frozen=True)
class Pairs:
    """Differences, first minus second, of n pairs."""

    rows: Array
    """[n, 2]: multiples of the time that "never" stands for (-1, 0 or 1), and the rest. The first
    column decides, as that time is beyond all others."""
    ratio: bool
    """Whether the differences are of logarithms."""

    @classmethod
    def of(
        cls,
        first: npt.ArrayLike,
        second: npt.ArrayLike,
        *,
        ratio: bool = False,
        never: float | None = None,
    ) -> "Pairs":
        """Pair two lists [n] of numbers, those at the same place.

        `never` is what a number that is not finite stands for: inf, more than all others, or -inf,
        less than all; None: its pair is left out.
        """
        both = np.stack([np.asarray(each, np.float64).reshape(-1) for each in (first, second)], 1)
        known = np.isfinite(both)
        if never is None:
            both = both[known.all(1)]
            known = np.isfinite(both)
        if ratio and (both[known] <= 0).any():
            raise ValueError(f"ratios need numbers above 0, got {both[known].min():g}")
        found = np.zeros_like(both)
        found[known] = np.log(both[known]) if ratio else both[known]
        beyond = ~known * math.copysign(1.0, never or 1.0)
        rows = np.stack([beyond[:, 0] - beyond[:, 1], found[:, 0] - found[:, 1]], 1)
        return cls(rows, ratio)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def signs(self) -> Array:
        """1 where the first is more, -1 where it is less, 0 where they tie, [n]."""
        return _signs(_rounded(self.rows))

    def test(self, side: Side = "both", against: float | None = None) -> float:
        """Return p of Wilcoxon's signed-rank test that the typical difference is `against`.

        `against` is a difference or a ratio; none at all by default. NaN without pairs.
        """
        none = 1.0 if self.ratio else 0.0
        shift = self._on_scale(none if against is None else against)
        return _signed_rank(self.rows - [0.0, shift], side)

    def similar(self, low: float, high: float) -> float:
        """Return p that the typical difference or ratio is not between `low` and `high`."""
        return max(self.test("greater", low), self.test("less", high))

    def effect(self, level: float = 0.95) -> Interval:
        """Return Hodges and Lehmann's estimate of the typical difference or ratio.

        It comes with its interval, and is the median of the means of all pairs of differences, each
        with itself too. The interval is exact, or wider where there are ties; with too few pairs
        for the level it has no ends.
        """
        n = len(self)
        if not n:
            return Interval(math.nan, math.nan, math.nan)
        first, second = np.triu_indices(n)
        means = (self.rows[first] + self.rows[second]) / 2
        means = means[np.lexsort(means.T[::-1])]
        middle = (means[(len(means) - 1) // 2] + means[len(means) // 2]) / 2
        below = np.cumsum(_distribution(np.arange(1, n + 1)))
        out = int((below <= (1 - level) / 2).sum())
        low, high = (means[out - 1], means[-out]) if out else ([-1.0, 0.0], [1.0, 0.0])
        return Interval(*(self._of_scale(*each) for each in (middle, low, high)))

    def _on_scale(self, value: float) -> float:
        if self.ratio and value <= 0:
            raise ValueError(f"a ratio must be above 0, got {value:g}")
        return math.log(value) if self.ratio else value

    def _of_scale(self, nevers: float, rest: float) -> float:
        value = math.copysign(math.inf, nevers) if nevers else float(rest)
        return float(np.exp(value)) if self.ratio else value


def least_p(pairs: int, side: Side = "both") -> float:
    """Return the smallest p that so many pairs can have, when all of them go one way."""
    return min((2.0 if side == "both" else 1.0) * 0.5**pairs, 1.0)


def _signed_rank(rows: Array, side: Side) -> float:
    """Return the exact p of Wilcoxon's signed-rank test.

    It is from differences [n, 2] in order of their columns. Ties share their mean rank. Pairs
    without a difference are ranked too, and their ranks then left out (Pratt 1959): so evidence
    never grows as the differences shrink, which it can where such pairs are dropped before. SciPy
    has no exact distribution where there are ties, but by going through all 2^n signs; adding one
    rank after the other takes n^3 steps.
    """
    if not len(rows):
        return math.nan
    rows = _rounded(rows)
    signs = _signs(rows)
    _, place = np.unique(rows * signs[:, None], axis=0, return_inverse=True)
    doubled = np.rint(2 * stats.rankdata(place)).astype(np.int64)  # means of ranks are halves
    chances = _distribution(doubled[signs != 0])
    positive = int(doubled[signs > 0].sum())
    greater, less = float(chances[positive:].sum()), float(chances[: positive + 1].sum())
    p = {"greater": greater, "less": less, "both": 2 * min(greater, less)}[side]
    return min(p, 1.0)


def _distribution(ranks: Array) -> Array:
    """Return the chances of the sums 0, 1, ... of those of these ranks that a fair coin picks."""
    chances = np.zeros(int(ranks.sum()) + 1)
    chances[0] = 1.0
    for rank in ranks:
        chances[rank:] = (chances[rank:] + chances[: len(chances) - rank]) / 2
        chances[:rank] /= 2
    return chances


def _signs(rows: Array) -> Array:
    return np.asarray(np.sign(np.where(rows[:, 0], rows[:, 0], rows[:, 1])))


def _rounded(rows: Array) -> Array:
    """Return differences without what rounding leaves of them."""
    size = np.abs(rows[:, 1]).max(initial=0.0)
    if not size:
        return rows
    unit = 10.0 ** (math.floor(math.log10(size)) - DIGITS)
    return np.stack([rows[:, 0], np.round(rows[:, 1] / unit)], 1) * [1.0, unit]
