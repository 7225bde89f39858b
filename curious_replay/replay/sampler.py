"""Which steps are drawn: by the priorities of one rule, or of two rules mixed."""

from typing import NamedTuple

import numpy as np

from curious_replay.replay.judging import History, Priorities
from curious_replay.replay.mixture import Mixture
from curious_replay.replay.rule import Floats, Rule, Signals, Visits
from curious_replay.replay.sumtree import Ints
from curious_replay.replay.windows import DrawableChange, Windows
from curious_replay.replay.without_repeats import NOTHING, draw_apart


class Judgement(NamedTuple):
    """Slots [N] of trained steps, their visits so far [N], and new priorities [N] by each rule."""

    slots: Ints
    visits: Visits
    priorities: list[Floats]


class Sampler:
    """Draws slots by one rule or by a mixture, and passes feedback on to each rule."""

    def __init__(self, rule: Rule | Mixture, slots: int) -> None:
        self.history = History(slots)
        self._set(rule, [Priorities(part, slots) for part in _rules(rule)])

    def _set(self, rule: Rule | Mixture, parts: list[Priorities]) -> None:
        self.rule, self.parts = rule, parts
        self.signals = sorted({name for part in parts for name in part.rule.signals})

    @property
    def fraction(self) -> float:
        """Which part of a batch the second rule draws."""
        return self.rule.fraction if isinstance(self.rule, Mixture) else 0.0

    @property
    def shares(self) -> list[float]:
        """Which part of a batch each rule draws."""
        return [1 - self.fraction, self.fraction][: len(self.parts)]

    def put_on(self, rule: Rule | Mixture, slots: Ints, *, cold: bool = False) -> None:
        """Let another rule go on with the steps in `slots` [N], all that are stored.

        With `cold` it may read signals that were never told: all steps then have its `p_max`.
        """
        old, history = self.parts, self.history
        if not cold and np.any(history.judged[slots]):
            _check_told(rule, history)
        drawable = slots[old[0].tree.leaves[slots] > 0]
        new = [Priorities(part, len(history.visits)) for part in _rules(rule)]
        for part in new:
            for before in old:
                part.memory.update(before.memory)
            part.judge_all(slots, drawable, history)
        self._set(rule, new)

    def add(self, change: DrawableChange) -> None:
        """Enter new steps, then the changes in what can be drawn."""
        self.history.begin(change.slots)
        for part in self.parts:
            part.add(change)

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Draw slots [count], with the probability [count] that one draw had for each."""
        first = self.parts[0].tree
        if len(self.parts) == 1:
            slots = first.sample(count, rng)
            return slots, first.get(slots) / first.total
        second = self.parts[1].tree
        seconds = self._seconds(count, rng)
        slots = np.concatenate([first.sample(count - seconds, rng), second.sample(seconds, rng)])
        chances = [tree.get(slots) / tree.total for tree in (first, second)]
        return slots, (1 - self.fraction) * chances[0] + self.fraction * chances[1]

    def draw_apart(
        self,
        count: int,
        length: int,
        windows: Windows,
        rng: np.random.Generator,
        taken: tuple[Ints, Ints] = NOTHING,
    ) -> tuple[Ints, Floats]:
        """Draw as `draw` does, but only steps whose windows share no step with those before.

        Before them are those that are `taken`, by environments [M] and first times [M].
        """
        seconds = self._seconds(count, rng) if len(self.parts) > 1 else 0
        trees = [part.tree for part in self.parts]
        return draw_apart(
            trees, self.fraction, count - seconds, rng.random(count), length, windows, taken
        )

    def _seconds(self, count: int, rng: np.random.Generator) -> int:
        """Return how many of `count` draws are the second rule's.

        Rounded up or down by chance, so that the fraction holds on average for any batch size.
        """
        return min(count, int(self.fraction * count + rng.random()))

    def judge(self, slots: Ints, visits: Ints, signals: Signals) -> Judgement:
        """Find out what trained steps [N] are to become, without changing anything yet."""
        return Judgement(slots, visits, [part.judge(visits, signals) for part in self.parts])

    def update(self, judgement: Judgement, signals: Signals) -> int:
        """Count a visit of each step, store its priorities and all signals that were told, [N].

        Returns how many priorities were refused.
        """
        slots, visits, priorities = judgement
        told = self.history.in_rows(signals, len(slots))
        refused = 0
        for part, new in zip(self.parts, priorities, strict=True):
            refused += part.update(slots, visits, new, told, self.history)
        return refused

    def stats(self, slots: Ints) -> dict[str, float]:
        """Return numbers for a log about the steps in slots [N], all that are stored."""
        visits = self.history.visits[slots]
        numbers: dict[str, float] = {
            "visits_mean": float(visits.mean()) if len(slots) else 0.0,
            "visits_max": int(visits.max(initial=0)),
            "never_visited": int(np.count_nonzero(visits == 0)),
        }
        for part, prefix in zip(self.parts, ("", "second_"), strict=False):
            leaves = part.tree.leaves[slots]
            drawable = leaves[leaves > 0]
            numbers[f"{prefix}drawable"] = len(drawable)
            numbers[f"{prefix}priority_mean"] = float(drawable.mean()) if len(drawable) else 0.0
            numbers[f"{prefix}priority_max"] = float(drawable.max(initial=0.0))
            numbers |= {f"{prefix}{name}": value for name, value in part.memory.items()}
        return numbers | self._terms(slots)

    def _terms(self, slots: Ints) -> dict[str, float]:
        """Weigh the terms of the rules in slots [N]; nothing where a rule does not name them.

        novelty_share   the count term's share of what draws go by; 0 of a rule without a count
        surprise_mean   the mean surprise of what was trained on, under the first rule that has one
        """
        numbers = {"novelty_share": 0.0}
        for part, weight in zip(self.parts, self.shares, strict=True):
            drawable = slots[part.tree.leaves[slots] > 0]
            terms = part.terms(drawable, self.history)
            if terms is None:
                return {}
            if "count" in terms and part.tree.total > 0:
                numbers["novelty_share"] += weight * float(terms["count"].sum()) / part.tree.total
            if "surprise" in terms and "surprise_mean" not in numbers:
                known = self.history.judged[drawable] > 0
                found = terms["surprise"][known]
                numbers["surprise_mean"] = float(found.mean()) if len(found) else 0.0
        return numbers


def _rules(rule: Rule | Mixture) -> list[Rule]:
    if isinstance(rule, Mixture):
        return [rule.first, rule.second]
    if isinstance(rule, Rule):
        return [rule]
    raise TypeError(f"rule must be a Rule or a Mixture, for instance Curious(), got {rule!r}")


def _check_told(rule: Rule | Mixture, history: History) -> None:
    """Refuse a rule that reads what was never told of steps that were trained on."""
    for part in _rules(rule):
        for name in part.signals:
            if name not in history.names:
                told = ", ".join(map(repr, sorted(history.names))) or "none"
                raise ValueError(
                    f"{rule} reads the signal {name!r}, which this buffer was never told; "
                    f"the signals that it knows: {told}"
                )
