"""The paper's five questions, and what the miniatures say to each."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from curious_replay.experiments.results import ClaimResult, Results
from curious_replay.experiments.verdict import Compared
from curious_replay.report.tables import Cell, Table, number


class Question(NamedTuple):
    """A question of the paper, and the claims of miniatures that answer it."""

    name: str
    text: str
    claims: Sequence[tuple[str, int]]
    """(name of the experiment, which of its claims)."""


QUESTIONS = (
    Question(
        "Q1",
        "Does it adapt sooner when the world changes?",
        (
            ("mini-appears", 0), ("mini-appears", 1), ("mini-appears", 2), ("mini-appears", 3),
            ("mini-appears-again", 0), ("mini-appears-again", 1),
            ("mini-object", 0), ("mini-object", 1), ("mini-object", 2), ("mini-object", 3),
            ("mini-object-same", 0), ("mini-appears-same", 0),
            ("mini-assay", 0), ("mini-assay", 1),
            ("mini-mirror", 0), ("mini-mirror", 1), ("mini-mirror", 2), ("mini-mirror", 3),
            ("mini-mirror-first", 0), ("mini-mirror-first", 1),
            ("mini-mirror-v2", 0), ("mini-mirror-v2", 1), ("mini-mirror-v2", 2),
            ("mini-lava", 0), ("mini-lava", 1), ("mini-lava", 2), ("mini-lava", 3),
        ),
    ),
    Question(
        "Q2",
        "Does it help where the agent itself comes upon what is new?",
        (("mini-crafter", 0), ("mini-crafter", 1), ("mini-crafter", 2)),
    ),
    Question(
        "Q3",
        "What do loss and count contribute?",
        (
            ("mini-appears-parts", 0), ("mini-appears-parts", 1),
            ("mini-object-parts", 0), ("mini-object-parts", 1),
            ("mini-mirror-parts", 0), ("mini-mirror-parts", 1), ("mini-mirror-parts", 2),
            ("mini-mirror-settings", 0), ("mini-mirror-settings", 1),
        ),
    ),
    Question(
        "Q4",
        "What does it cost where nothing changes, or where there is noise?",
        (
            ("mini-mirror-same", 0), ("mini-mirror-same", 1),
            ("mini-mirror-costs", 0), ("mini-mirror-costs", 1), ("mini-mirror-costs", 2),
            ("mini-doorkey", 0), ("mini-doorkey", 1), ("mini-doorkey", 2),
            ("mini-mirror-noise", 0), ("mini-mirror-noise", 1), ("mini-mirror-noise", 2),
            ("mini-appears-television", 0), ("mini-appears-television", 1),
        ),
    ),
    Question(
        "Q5",
        "Does it retain what it has not seen for long?",
        (
            ("mini-mirror-back", 0), ("mini-mirror-back", 1),
            ("mini-appears-gone", 0), ("mini-appears-gone", 1), ("mini-appears-gone", 2),
            ("mini-object-gone", 0), ("mini-object-gone", 1),
        ),
    ),
)  # fmt: skip
LEADING = frozenset({
    ("mini-appears", 0), ("mini-appears", 1), ("mini-appears", 2), ("mini-appears", 3),
    ("mini-appears-again", 0), ("mini-appears-again", 1),
    ("mini-appears-parts", 0), ("mini-appears-gone", 0), ("mini-appears-gone", 2),
    ("mini-object", 0), ("mini-object-same", 0), ("mini-appears-same", 0),
    ("mini-assay", 0), ("mini-assay", 1),
    ("mini-mirror", 0), ("mini-mirror", 1), ("mini-mirror", 2), ("mini-mirror-first", 0),
    ("mini-mirror-v2", 0), ("mini-mirror-v2", 2), ("mini-lava", 0), ("mini-lava", 1),
    ("mini-crafter", 0), ("mini-crafter", 1),
    ("mini-mirror-parts", 0), ("mini-mirror-parts", 1),
    ("mini-mirror-same", 0), ("mini-mirror-same", 1), ("mini-mirror-costs", 2),
    ("mini-doorkey", 0), ("mini-doorkey", 1),
    ("mini-mirror-noise", 0), ("mini-appears-television", 0),
    ("mini-mirror-back", 0), ("mini-mirror-back", 1),
})  # fmt: skip
"""Those for who reads no further, with what was not shown or contradicted among them."""
CAPTION = (
    "Each claim, how it fared, and the comparisons behind it, seed by seed. Effect: typical ratio "
    "of times, or difference, first against second, with its 95 % interval. p: Wilcoxon's "
    "signed-rank test, exact, corrected for all comparisons of the experiment."
)
COLUMNS = ("question", "claim", "verdict", "compared", "effect, 95 % interval", "better in", "p")


class Answer(NamedTuple):
    """A claim that answers a question, as it was judged."""

    question: Question
    results: Results
    which: int
    """Its place among the claims of the experiment."""

    @property
    def claim(self) -> ClaimResult:
        """The claim."""
        return self.results.claims[self.which]

    @property
    def leading(self) -> bool:
        """Whether it is for who reads no further."""
        return (self.results.experiment, self.which) in LEADING

    def medians(self, one: Compared) -> str:
        """Say what is typical of the two that are compared: medians of seeds, never counted."""
        rows = {
            row.method: row.values
            for measure in self.results.measures
            if measure.name == self.claim.measure
            for row in measure.rows
            if row.task == one.task
        }
        return ", ".join(f"{name} {_median(rows[name])}" for name in (one.first, one.second))


def judged(found: Mapping[str, Results]) -> Iterator[Answer]:
    """Yield each answer to each question, of experiments that have results."""
    for question in QUESTIONS:
        for name, index in question.claims:
            if name in found and index < len(found[name].claims):
                yield Answer(question, found[name], index)


def table(found: Mapping[str, Results]) -> Table:
    """Answer what can be answered from these results, by the name of the experiment."""
    rows: list[list[Cell]] = []
    for answer in judged(found):
        question, claim = answer.question, answer.claim
        first: list[Cell] = [f"{question.name}: {question.text}", claim.text, claim.word]
        for one in claim.compared:
            pair = f"{one.first} against {one.second}"
            wins = f"{one.better} of {one.pairs}"
            rows.append([*first, pair, _effect(one), wins, p_value(one)])
        if not claim.compared:
            rows.append([*first, "", "", "", ""])
    return Table("answers", CAPTION, COLUMNS, rows)


def p_value(one: Compared) -> str:
    """Say how likely so large a difference is by chance, corrected for the whole experiment."""
    return _number(None if one.corrected is None else float(f"{one.corrected:.2g}"))


def _effect(one: Compared) -> str:
    return f"{_number(one.effect)} ({_number(one.low)} to {_number(one.high)})"


def _median(values: Sequence[float | None]) -> str:
    """Return the median, of which "never" is more than any number."""
    found = float(np.median([math.inf if value is None else value for value in values]))
    return "never" if math.isinf(found) else number(found)


def _number(value: float | None) -> str:
    return number(math.nan if value is None else value)
