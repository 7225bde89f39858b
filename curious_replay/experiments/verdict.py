"""Did a claim hold in our runs? A word and a sentence, whatever the answer is.

Here methods are groups of runs, compared as in the paper; paired_verdict.py goes seed by seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from curious_replay.analysis import stats
from curious_replay.experiments.experiment import Claim, Key, Measure
from curious_replay.report import measures
from curious_replay.report.tables import number

Values = Mapping[Key, Sequence[float]]
"""One number for each run, by task and method."""
Word = Literal["held", "held in part", "not shown", "contradicted", "not tested"]
SIGNIFICANT = 0.05
LISTED = 4
"""Comparisons that are named one by one; of more, it is said how many went which way."""
SAMPLES, SEED = 2000, 0


@dataclass(frozen=True)
class Compared:
    """Two methods on a task, seed by seed."""

    task: str
    first: str
    second: str
    pairs: int
    better: int
    """Pairs in which the first did better."""
    ties: int
    effect: float | None
    """Typical ratio, first by second, or difference, first minus second; None: beyond all numbers,
    as that of one who never got there."""
    low: float | None
    """Its 95 % interval; None: without an end, or beyond all numbers."""
    high: float | None
    p: float | None
    """None: no test."""
    corrected: float | None
    """p after correction for all comparisons of the experiment."""
    outcome: Literal["for", "against", "open", "no test"]
    """What it says of the claim."""


@dataclass(frozen=True)
class Verdict:
    """How a claim fared."""

    word: Word
    sentence: str
    compared: tuple[Compared, ...] = ()
    """Each comparison, where runs are pairs."""


@dataclass(frozen=True)
class _Pair:
    """One comparison: two methods on a task."""

    text: str
    better: float
    """How likely a run of the first beats one of the second; NaN if there are no runs."""
    p: float


def judge(
    claim: Claim, measure: Measure, values: Values, scale: str, significant: float = SIGNIFICANT
) -> Verdict:
    """Test the claim on the values of its measure."""
    tasks = list(dict.fromkeys(task for task, _ in values))
    compared = [
        (task, first, second)
        for task in tasks
        for first, second in claim.pairs
        if (task, first) in values and (task, second) in values
    ]
    word, said = (
        _better(measure, values, compared, significant)
        if claim.kind == "better"
        else _alike(claim, measure, values, compared)
    )
    return Verdict(word, f"{claim.text}: {word} at {scale} scale ({measure.name}). {said}")


def _better(
    measure: Measure,
    values: Values,
    compared: Sequence[tuple[str, str, str]],
    significant: float,
) -> tuple[Word, str]:
    pairs = _tests(measure, values, compared)
    known = [pair for pair in pairs if np.isfinite(pair.p)]
    right = sum(pair.better > 0.5 and pair.p < significant for pair in known)
    wrong = sum(pair.better < 0.5 and pair.p < significant for pair in known)
    word = overall(right, wrong, len(known), len(pairs))
    if len(pairs) <= LISTED:
        return word, "; ".join(pair.text for pair in pairs) + "."
    ahead = sum(pair.better > 0.5 for pair in pairs)
    return word, (
        f"Of {len(pairs)} comparisons {ahead} went the way of the claim, {right} of them with "
        f"p < {significant}; {wrong} went the other way with p < {significant}."
    )


def overall(right: int, wrong: int, tested: int, every: int) -> Word:
    """Return the word for so many comparisons that showed the claim, or its opposite."""
    if not tested:
        return "not tested"
    if wrong > right:
        return "contradicted"
    if right == every:
        return "held"
    return "held in part" if right else "not shown"


def _tests(
    measure: Measure, values: Values, compared: Sequence[tuple[str, str, str]]
) -> list[_Pair]:
    """Return all comparisons, their p-values corrected together (Benjamini and Hochberg)."""
    tested = []
    for task, first, second in compared:
        numbers = {name: [*values[task, name]] for name in (first, second)}
        found = measures.Measured(
            measure.name, numbers, measure.lower_is_better, never=measure.never
        )
        a, b = (stats.finite(found.ranked(name)) for name in (first, second))
        _, p = stats.group_test(numbers[first], numbers[second], found.worst)
        tested.append((a, b, p))
    corrected = stats.benjamini_hochberg([p for *_, p in tested])
    pairs = []
    for (task, first, second), (a, b, _), p in zip(compared, tested, corrected, strict=True):
        wins = (a[:, None] > b[None]) + 0.5 * (a[:, None] == b[None])
        better = float(wins.mean()) if wins.size else np.nan
        odds = f"P(better) = {better:.2f}" if wins.size else "no runs to compare"
        test = f", p = {p:.2g}" if np.isfinite(p) else ", too few runs for a test"
        names = f"{first} {_mean(values[task, first])} against {second} "
        text = f"{task}: {names}{_mean(values[task, second])} ({odds}{test})"
        pairs.append(_Pair(text, better, float(p)))
    return pairs


def _alike(
    claim: Claim, measure: Measure, values: Values, compared: Sequence[tuple[str, str, str]]
) -> tuple[Word, str]:
    """Return the word and a sentence on no worse, or neither worse nor better.

    It is over all tasks where both have runs together.
    """
    said: list[str] = []
    words: list[Word] = []
    margin = claim.margin or 0.0
    most = margin if claim.kind == "similar" else np.inf
    either = "worse or better" if claim.kind == "similar" else "worse"
    for first, second in claim.pairs:
        tasks = [
            task
            for task, *pair in compared
            if pair == [first, second]
            and all(len(stats.finite(values[task, name])) >= 2 for name in pair)
        ]
        if not tasks:
            words.append("not tested")
            said.append(f"{first} against {second}: too few runs")
            continue
        low, mid, high = _difference(measure, values, tasks, first, second)
        words.append(
            "held"
            if -margin < low and high < most
            else "contradicted"
            if high < -margin or low > most
            else "not shown"
        )
        worse = "worse" if mid < 0 else "better"
        said.append(
            f"{first} against {second}: {abs(mid):.0%} {worse} over {len(tasks)} tasks (95 % "
            f"interval {low:+.0%} to {high:+.0%}; at most {margin:.0%} {either} is asked for)"
        )
    worst: tuple[Word, ...] = ("contradicted", "not shown", "held")
    word: Word = next((word for word in worst if word in words), "not tested")
    if word == "held" and "not tested" in words:
        word = "held in part"
    return word, "; ".join(said) + "."


def _difference(
    measure: Measure, values: Values, tasks: Sequence[str], first: str, second: str
) -> tuple[float, float, float]:
    """Return how much better the first is, as a part of the second's mean.

    That is the lower end of the interval, the estimate, and the upper end.
    """
    rng = np.random.default_rng(SEED)
    sign = -1 if measure.lower_is_better else 1
    means = []
    for method in (first, second):
        samples = [stats.finite(values[task, method]) for task in tasks]
        drawn = [rng.choice(sample, (SAMPLES, len(sample))).mean(1) for sample in samples]
        means.append((np.mean(drawn, 0), np.mean([sample.mean() for sample in samples])))
    (a, a_mean), (b, b_mean) = means
    base = max(abs(float(b_mean)), 1e-12)
    low, high = np.quantile(sign * (a - b) / base, [0.025, 0.975])
    return float(low), float(sign * (a_mean - b_mean) / base), float(high)


def _mean(values: Sequence[float]) -> str:
    whole = stats.summary(values)
    never = len(values) - whole.n
    text = number(whole.mean)
    return f"{text} ({never} of {len(values)} without)" if never else text
