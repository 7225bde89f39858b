"""Did a claim hold, seed by seed? Each comparison is an exact test of pairs (analysis/paired.py).

The p-values of all comparisons of an experiment, over all its claims, tasks and measures, are
corrected together (Benjamini and Hochberg). A "better" is shown by a two-sided test, a "no worse"
by a one-sided one against the margin, a "similar" by two of these.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from curious_replay.analysis import stats
from curious_replay.analysis.paired import Pairs, Side, least_p
from curious_replay.experiments.experiment import Claim, Key, Measure
from curious_replay.experiments.verdict import LISTED, SIGNIFICANT, Compared, Verdict, overall
from curious_replay.report.tables import number

BySeed = Mapping[Key, Mapping[int, float]]
"""The number of each seed, by task and method."""


@dataclass(frozen=True)
class Asked:
    """A claim, what it is about, and the numbers to judge it by."""

    claim: Claim
    measure: Measure
    values: BySeed

    @property
    def bounds(self) -> tuple[float, float]:
        """The ratios or differences that show it, lowest and highest."""
        margin = self.claim.margin or 0.0
        low, high = (1 / (1 + margin), 1 + margin) if self.measure.by_ratio else (-margin, margin)
        if self.claim.kind == "similar":
            return low, high
        return (-math.inf, high) if self.measure.lower_is_better else (low, math.inf)

    def p(self, pairs: Pairs) -> float:
        """Return p of the test that can show it."""
        low, high = self.bounds
        if self.claim.kind == "better":
            return pairs.test()
        if self.claim.kind == "similar":
            return pairs.similar(low, high)
        return pairs.test("less", high) if math.isfinite(high) else pairs.test("greater", low)


@dataclass(frozen=True)
class _Comparison:
    """Two methods on a task."""

    task: str
    first: str
    second: str
    pairs: Pairs
    p: float
    """NaN: too few pairs for a test, or none that got anywhere."""


def judge_pairs(
    asked: Sequence[Asked], scale: str, significant: float = SIGNIFICANT
) -> list[Verdict]:
    """Test all claims of an experiment together."""
    found = [_comparisons(each, significant) for each in asked]
    corrected = iter(stats.benjamini_hochberg([one.p for each in found for one in each]))
    return [
        _verdict(each, [_decided(each, one, float(next(corrected)), significant) for one in ones],
                 scale, significant)
        for each, ones in zip(asked, found, strict=True)
    ]  # fmt: skip


def _comparisons(asked: Asked, significant: float) -> list[_Comparison]:
    values, measure = asked.values, asked.measure
    never = (math.inf if measure.lower_is_better else -math.inf) if measure.never else None
    side: Side = "both" if asked.claim.kind == "better" else "greater"
    found = []
    for task in dict.fromkeys(task for task, _ in values):
        for first, second in asked.claim.pairs:
            if (task, first) not in values or (task, second) not in values:
                continue
            seeds = sorted({*values[task, first]} & {*values[task, second]})
            a, b = ([values[task, name][seed] for seed in seeds] for name in (first, second))
            pairs = Pairs.of(a, b, ratio=measure.by_ratio, never=never)
            # Where nobody ever got there all are alike, but that says nothing of the methods.
            silent = not np.isfinite([*a, *b]).any()
            testable = not silent and least_p(len(pairs), side) < significant
            p = asked.p(pairs) if testable else math.nan
            found.append(_Comparison(task, first, second, pairs, p))
    return found


def _decided(asked: Asked, one: _Comparison, corrected: float, significant: float) -> Compared:
    better = one.pairs.signs * (-1 if asked.measure.lower_is_better else 1)
    effect = one.pairs.effect()
    none = 1.0 if asked.measure.by_ratio else 0.0
    outcome: Literal["for", "against", "open", "no test"] = "open"
    if math.isnan(one.p):
        outcome = "no test"
    elif asked.claim.kind == "better":
        if corrected < significant:
            ahead = effect.value < none if asked.measure.lower_is_better else effect.value > none
            outcome = "for" if ahead else "against"
    elif corrected < significant:
        outcome = "for"
    elif effect.high < asked.bounds[0] or effect.low > asked.bounds[1]:
        outcome = "against"
    return Compared(
        one.task, one.first, one.second, len(one.pairs), int((better > 0).sum()),
        int((better == 0).sum()), _known(effect.value), _known(effect.low), _known(effect.high),
        _known(one.p), _known(corrected), outcome,
    )  # fmt: skip


def _verdict(asked: Asked, compared: Sequence[Compared], scale: str, significant: float) -> Verdict:
    outcomes = [one.outcome for one in compared]
    right, wrong = outcomes.count("for"), outcomes.count("against")
    word = overall(right, wrong, len(compared) - outcomes.count("no test"), len(compared))
    if len(compared) <= LISTED:
        said = "; ".join(_text(asked, one) for one in compared) + "."
    else:
        said = (
            f"Of {len(compared)} comparisons {right} show it with p < {significant}, {wrong} show "
            "the opposite."
        )
    text = f"{asked.claim.text}: {word} at {scale} scale ({asked.measure.name}). {said}"
    return Verdict(word, text, tuple(compared))


def _text(asked: Asked, one: Compared) -> str:
    what = "ratio" if asked.measure.by_ratio else "difference"
    between = f"{_told(one.low)} to {_told(one.high)}"
    ties = f", equal in {one.ties}" if one.ties else ""
    wins = f"better in {one.better} of {one.pairs} pairs{ties}"
    wanted = ""
    if asked.claim.kind != "better":
        low, high = asked.bounds
        ends = [f"above {_told(low)}"] * math.isfinite(low) + [f"below {_told(high)}"] * (
            math.isfinite(high)
        )
        wanted = f"; {' and '.join(ends)} is asked for"
    test = "no test" if one.corrected is None else f"p = {one.corrected:.2g}"
    return (
        f"{one.task}: {one.first} against {one.second}: {what} {_told(one.effect)} (95 % interval "
        f"{between}{wanted}), {wins}, {test}"
    )


def _told(value: float | None) -> str:
    return number(math.nan if value is None else value)


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
