"""The paper's five questions, and what the miniatures say to each."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

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
            ("mini-rooms", 0), ("mini-rooms", 1), ("mini-rooms-parts", 0),
            ("mini-mirror", 0), ("mini-mirror", 1), ("mini-mirror", 2), ("mini-mirror", 3),
            ("mini-mirror-first", 0), ("mini-mirror-first", 1),
        ),
    ),
    Question(
        "Q3",
        "What do loss and count contribute?",
        (
            ("mini-rooms-parts", 1),
            ("mini-mirror-parts", 0), ("mini-mirror-parts", 1), ("mini-mirror-parts", 2),
        ),
    ),
    Question(
        "Q4",
        "What does it cost where nothing changes, or where there is noise?",
        (
            ("mini-mirror-same", 0), ("mini-mirror-same", 1),
            ("mini-mirror-costs", 0), ("mini-mirror-costs", 1), ("mini-mirror-costs", 2),
            ("mini-mirror-noise", 0), ("mini-mirror-noise", 1), ("mini-mirror-noise", 2),
        ),
    ),
    Question(
        "Q5",
        "Does it retain what it has not seen for long?",
        (("mini-mirror-back", 0), ("mini-mirror-back", 1)),
    ),
)  # fmt: skip
CAPTION = (
    "Each claim, how it fared, and the comparisons behind it, seed by seed. Effect: typical ratio "
    "of times, or difference, first against second, with its 95 % interval. p: Wilcoxon's "
    "signed-rank test, exact, corrected for all comparisons of the experiment."
)
COLUMNS = ("question", "claim", "verdict", "compared", "effect, 95 % interval", "better in", "p")


def claims(found: Mapping[str, Results]) -> Iterator[tuple[Question, ClaimResult]]:
    """Yield each question with each claim that answers it, of experiments that have results."""
    for question in QUESTIONS:
        for name, index in question.claims:
            judged = found[name].claims if name in found else []
            for claim in judged[index : index + 1]:
                yield question, claim


def table(found: Mapping[str, Results]) -> Table:
    """Answer what can be answered from these results, by the name of the experiment."""
    rows: list[list[Cell]] = []
    for question, claim in claims(found):
        first: list[Cell] = [f"{question.name}: {question.text}", claim.text, claim.word]
        for one in claim.compared:
            pair = f"{one.first} against {one.second}"
            wins = f"{one.better} of {one.pairs}"
            rows.append([*first, pair, _effect(one), wins, _p(one)])
        if not claim.compared:
            rows.append([*first, "", "", "", ""])
    return Table("answers", CAPTION, COLUMNS, rows)


def sentence(one: Compared) -> str:
    """Say what came out of a comparison."""
    return (
        f"{one.first} against {one.second}: {_effect(one)}, better in {one.better} of {one.pairs}, "
        f"p = {_p(one)}"
    )


def _effect(one: Compared) -> str:
    return f"{_number(one.effect)} ({_number(one.low)} to {_number(one.high)})"


def _p(one: Compared) -> str:
    return _number(None if one.corrected is None else float(f"{one.corrected:.2g}"))


def _number(value: float | None) -> str:
    return number(math.nan if value is None else value)
