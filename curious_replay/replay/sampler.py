"""Which steps are drawn: by the priorities of one rule, or of two rules mixed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import priority
from .compiled import compiled
from .priority import Floats, Rule, Visits
from .sumtree import Ints, SumTree, node_of, renew_sums, set_leaves
from .windows import Change, Flags

# However often a step was visited it can be drawn again: c·β^v would reach 0 after 2,100 visits.
LEAST = 1e-200
MOST = 1e200  # a priority beyond this is refused like one that is not finite


@dataclass(frozen=True)
class Mixture:
    """`fraction` of a batch drawn by the `second` rule, the rest by the `first`.

    Both rules keep priorities of their own and learn from every batch, whichever drew it.
    """

    first: Rule
    second: Rule
    fraction: float

    def __post_init__(self) -> None:
        for rule in (self.first, self.second):
            if not isinstance(rule, Rule):
                raise TypeError(f"a Mixture is made of two rules, got {rule!r}")
        if not 0 <= self.fraction <= 1:
            raise ValueError(f"fraction must be between 0 and 1, got {self.fraction}")
        object.__setattr__(self, "fraction", float(self.fraction))


class Priorities:
    """The priorities of all slots under one rule, and the tree of those that can be drawn."""

    def __init__(self, rule: Rule, slots: int) -> None:
        self.rule = rule
        self.tree = SumTree(slots)
        self.values: Floats = np.zeros(slots)  # also of steps whose window is not yet whole
        self.minimum = np.inf  # of the signal, over the whole run (dialect dv2)

    def add(self, change: Change, visits: Visits) -> None:
        """Enter new steps, then the changes in what can be drawn."""
        tree = self.tree
        _enter(
            self.values, visits, self.rule.p_max, change.slots, change.changed, change.opened,
            tree.table, tree.capacity,
        )  # fmt: skip

    @np.errstate(over="ignore", invalid="ignore")
    def judge(self, visits: Visits, signals: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """Return the new priorities [N] of trained steps, and the signal [N] they come from."""
        name = self.rule.signal
        if self.rule.dialect == "dv2" and name not in ("", "td"):
            signals = {**signals, name: self._above_minimum(signals[name])}
        new = np.asarray(self.rule(visits, signals), np.float64)
        if new.shape != visits.shape:
            raise ValueError(
                f"{self.rule} must return one priority for each of {len(visits)} steps, "
                f"got shape {list(new.shape)}"
            )
        return new, signals[name] if name else new

    def update(
        self, slots: Ints, new: Floats, signal: Floats, all_visits: Visits, visits: Visits
    ) -> int:
        """Give steps [N] the priorities that `judge` returned; returns how many were refused.

        In `all_visits` [slots] the steps, which had `visits` [N], get one more.

        A priority that is negative, too large or not finite, or whose signal is not finite, leaves
        the old one as it is.
        """
        tree = self.tree
        return _store(
            self.values, all_visits, slots, visits, new, signal,
            tree.leaves, tree.table, tree.capacity,
        )  # fmt: skip

    def _above_minimum(self, signal: Floats) -> Floats:
        finite = np.isfinite(signal)
        self.minimum = min(self.minimum, float(np.min(signal, where=finite, initial=np.inf)))
        return signal - self.minimum

    def restore(self, values: Floats, opened: Ints, minimum: float) -> None:
        """Continue from saved values [slots]; `opened` [N] are the slots that can be drawn."""
        self.values[:] = values
        self.minimum = minimum
        self.tree.set(opened, self.values[opened])


class Sampler:
    """Draws slots by one rule or by a mixture, and passes feedback on to each rule."""

    def __init__(self, rule: Rule | Mixture, slots: int) -> None:
        if isinstance(rule, Mixture):
            rules, self._fraction = [rule.first, rule.second], rule.fraction
        elif isinstance(rule, Rule):
            rules, self._fraction = [rule], 0.0
        else:
            raise TypeError(
                f"rule must be a Rule or a Mixture, for instance Curious(), got {rule!r}"
            )
        self.rule = rule
        self.parts = [Priorities(part, slots) for part in rules]
        self.visits: npt.NDArray[np.int32] = np.zeros(slots, np.int32)
        self.signals = sorted({part.signal for part in rules} - {""})

    def add(self, change: Change) -> None:
        """Enter new steps, then the changes in what can be drawn."""
        for part in self.parts:
            part.add(change, self.visits)

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Draw slots [count], with the probability [count] that one draw had for each."""
        first = self.parts[0].tree
        if len(self.parts) == 1:
            slots = first.sample(count, rng)
            return slots, first.get(slots) / first.total
        second = self.parts[1].tree
        # Rounded up or down by chance, so that the fraction holds on average for any batch size.
        seconds = min(count, int(self._fraction * count + rng.random()))
        slots = np.concatenate([first.sample(count - seconds, rng), second.sample(seconds, rng)])
        chances = [tree.get(slots) / tree.total for tree in (first, second)]
        return slots, (1 - self._fraction) * chances[0] + self._fraction * chances[1]

    def judge(self, slots: Ints, visits: Ints, signals: Mapping[str, Floats]) -> "Judgement":
        """Find out what trained steps [N] are to become, without changing anything yet."""
        return Judgement(slots, visits, [part.judge(visits, signals) for part in self.parts])

    def update(self, judgement: "Judgement") -> int:
        """Count a visit of each step and store its priorities; returns how many were refused."""
        slots, visits, priorities = judgement
        refused = 0
        for part, (new, signal) in zip(self.parts, priorities, strict=True):
            refused += part.update(slots, new, signal, self.visits, visits)
        return refused


class Judgement(NamedTuple):
    """Slots [N] of trained steps, their visits so far [N], and priorities and signal by rule."""

    slots: Ints
    visits: Visits
    priorities: list[tuple[Floats, Floats]]


def rule_to_json(rule: Rule | Mixture) -> dict[str, Any]:
    """Describe a rule as JSON values."""
    kind = type(rule)
    if kind is not Mixture and getattr(priority, kind.__name__, None) is not kind:
        return {"type": f"{kind.__module__}.{kind.__qualname__}", "rule": repr(rule)}
    values = {
        name: rule_to_json(value) if isinstance(value, Rule) else value
        for name, value in vars(rule).items()
    }
    return {"type": kind.__name__, **values}


def rule_from_json(values: Mapping[str, Any]) -> Rule | Mixture:
    """Make a rule of this package from what `rule_to_json` gave."""
    name = values.get("type")
    if isinstance(name, str) and "." in name:
        raise ValueError(f"the rule {name!r} is not one of this package: pass it as load(rule=...)")
    kind: Any = Mixture if name == "Mixture" else getattr(priority, str(name), None)
    if not (isinstance(kind, type) and issubclass(kind, Rule | Mixture)):
        raise ValueError(f"there is no rule {name!r} in this package")
    settings: dict[str, Any] = {
        key: rule_from_json(value) if isinstance(value, Mapping) else value
        for key, value in values.items()
        if key != "type"
    }
    try:
        made: Rule | Mixture = kind(**settings)
    except TypeError as error:
        raise ValueError(f"the rule {name} cannot be made: {error}") from error
    return made


@compiled
def _enter(
    values: Floats, visits: Visits, p_max: float, slots: Ints, changed: Ints, opened: Flags,
    table: Floats, capacity: int,
) -> None:  # fmt: skip
    for i in range(len(slots)):
        values[slots[i]] = p_max
        visits[slots[i]] = 0
    into_tree = np.zeros(len(changed))  # 0: cannot be drawn
    for i in range(len(changed)):
        if opened[i]:
            into_tree[i] = values[changed[i]]
    set_leaves(table, capacity, changed, into_tree)


@compiled
def _store(
    values: Floats, all_visits: Visits, slots: Ints, visits: Visits, new: Floats, signal: Floats,
    leaves: Floats, table: Floats, capacity: int,
) -> int:  # fmt: skip
    """Keep the new priorities [N] that are usable; returns how many were refused."""
    nodes = np.empty(len(slots) + 1, np.int64)  # of the leaves that change, for their sums
    count, last = 0, -1
    refused = 0
    i = 0
    while i < len(slots):
        first, start = slots[i], i
        while i < len(slots) and slots[np.uintp(i)] == first + (i - start):
            i += 1
        # A run of neighbours, as windows are: plain slices are what vector instructions can do.
        end = first + i - start
        _visit(all_visits[first:end], visits[start:i])
        refused += _replace(values[first:end], leaves[first:end], new[start:i], signal[start:i])
        for node in range(node_of(first), node_of(end - 1) + 1):
            nodes[np.uintp(count)] = node
            count += node != last
            last = node
    renew_sums(table, capacity, nodes, count)
    return refused


@compiled
def _visit(all_visits: Visits, visits: Visits) -> None:
    for i in range(len(visits)):
        all_visits[i] = visits[i] + 1  # the same for a step that occurs twice, or in two rules


@compiled
def _replace(values: Floats, leaves: Floats, new: Floats, signal: Floats) -> int:
    refused = 0
    for i in range(len(new)):
        usable = (new[i] >= 0.0) & (new[i] <= MOST) & (abs(signal[i]) < np.inf)
        refused += not usable
        values[i] = max(new[i], LEAST) if usable else values[i]
        leaves[i] = values[i] if leaves[i] > 0.0 else 0.0  # 0: cannot be drawn
    return refused
