"""The priorities that one rule gives to all slots, and what is stored to make them from.

A priority is a function of what a step has behind it: its visits when it was last judged, and the
last value of each signal. Both are kept for every step, whatever the rule reads, so that another
rule can take over at any moment.
"""

from collections.abc import Iterable, Mapping, MutableMapping

import numpy as np
import numpy.typing as npt

from curious_replay.replay.compiled import compiled
from curious_replay.replay.rule import Floats, Rule, Signals, Visits
from curious_replay.replay.sumtree import Ints, SumTree, leaves_of, node_of, renew_sums, set_leaves
from curious_replay.replay.windows import DrawableChange, Flags

# However often a step was visited it can be drawn again: c·β^v would reach 0 after 2,100 visits.
LEAST = 1e-200
MOST_SIGNALS = 60  # as many bits has a number
MOST = 1e200  # a priority beyond this is refused like one that is not finite
_HIGHEST = float(np.finfo(np.float32).max)

Ints32 = npt.NDArray[np.int32]
Floats32 = npt.NDArray[np.float32]


class History:
    """What has happened to the steps of all slots.

    visits  int32 [slots]       how often a step was trained on
    judged  int32 [slots]       how many of these visits there had been, with the last of them, when
                                a rule last gave the step a priority; 0: never
    told    float32 [K, slots]  of each signal in `names` [K] the last finite value, NaN if there
                                was none
    """

    def __init__(self, slots: int) -> None:
        self.names: list[str] = []
        self._place(np.zeros((2, slots), np.int32))

    def _place(self, rows: Ints32) -> None:
        """Keep all of it in one array, as each argument of a call takes time."""
        self.rows = rows
        self.visits, self.judged = rows[:2]
        self.told: Floats32 = rows[2:].view(np.float32)

    def restore(self, visits: Ints32, judged: Ints32, names: list[str], told: Floats32) -> None:
        """Continue from saved state."""
        self.names = list(names)
        self._place(np.concatenate([visits[None], judged[None], told.view(np.int32)]))

    def begin(self, slots: Ints) -> None:
        """Forget what was before in slots [N] that new steps come into."""
        self.rows[:2, slots] = 0
        self.told[:, slots] = np.nan

    def in_rows(self, signals: Signals, count: int) -> Floats:
        """Return signals {name: [N]} as [K, N], NaN where one is not told; new ones get a place."""
        if self.names != list(signals):
            for name in signals:
                if name not in self.names:
                    self._add(name)
            missing = np.full(count, np.nan)
            signals = {name: signals.get(name, missing) for name in self.names}
        rows = list(signals.values())
        return rows[0][None] if len(rows) == 1 else np.stack(rows) if rows else np.empty((0, count))

    def _add(self, name: str) -> None:
        if len(self.names) == MOST_SIGNALS:
            raise ValueError(f"a buffer keeps at most {MOST_SIGNALS} signals, got {name!r} too")
        row = np.full((1, len(self.visits)), np.nan, np.float32)
        self._place(np.concatenate([self.rows, row.view(np.int32)]))
        self.names.append(name)

    def bits(self, names: tuple[str, ...]) -> int:
        """Return which rows signals are in, as the bits of a number."""
        bits = 0
        for name in names:
            bits |= 1 << self.names.index(name)
        return bits

    def signals(self, names: Iterable[str], slots: Ints) -> dict[str, Floats]:
        """Return the last value of signals in slots [N], [N] each: NaN where there was none."""
        return {
            name: self.told[self.names.index(name)][slots].astype(np.float64)
            if name in self.names
            else np.full(len(slots), np.nan)
            for name in names
        }


class Priorities:
    """The priorities of all slots under one rule, and the tree of those that can be drawn."""

    def __init__(self, rule: Rule, slots: int) -> None:
        self.rule = rule
        self._reads = rule.signals
        self.tree = SumTree(slots)
        self.values: Floats = np.zeros(slots)  # also of steps whose window is not yet whole
        self.memory: MutableMapping[str, float] = {}  # what the rule knows of the whole run

    def add(self, change: DrawableChange) -> None:
        """Enter new steps, then the changes in what can be drawn."""
        tree = self.tree
        _enter(
            self.values, self.rule.p_max, change.slots, change.changed, change.drawable,
            tree.table, tree.capacity,
        )  # fmt: skip

    @np.errstate(over="ignore", invalid="ignore")
    def judge(self, visits: Visits, signals: Signals) -> Floats:
        """Return new priorities [N] of steps with so many visits [N], and signals {name: [N]}."""
        new = np.asarray(self.rule(visits, self.rule.prepare(signals, self.memory)), np.float64)
        if new.shape != visits.shape:
            raise ValueError(
                f"{self.rule} must return one priority for each of {len(visits)} steps, "
                f"got shape {list(new.shape)}"
            )
        return new

    def update(
        self, slots: Ints, visits: Visits, new: Floats, told: Floats, history: History
    ) -> int:
        """Give steps [N] the priorities that `judge` returned; returns how many were refused.

        In `history` the steps, which had `visits` [N], get one more, and what was `told` [K, N].

        A priority that is negative, too large or not finite leaves the old one as it is, and so
        does one whose signal is not finite.
        """
        tree = self.tree
        return _store(
            self.values, history.rows, slots, visits, new, told,
            tree.table, tree.capacity, history.bits(self._reads),
        )  # fmt: skip

    def judge_all(self, slots: Ints, drawable: Ints, history: History) -> None:
        """Give the steps in `slots` [N] the priorities that they would have under the rule.

        Made of their visits and signals when they were last judged. Steps that never were, or that
        lack a signal, have `p_max`. `drawable` [M] are those of the slots that can be drawn.
        """
        self.values[slots] = self.rule.p_max
        slots = slots[history.judged[slots] > 0]
        told = history.signals(self.rule.signals, slots)
        new = self.judge(history.judged[slots] - 1, told)
        usable = (new >= 0.0) & (new <= MOST)
        for signal in told.values():
            usable &= np.isfinite(signal)
        self.values[slots[usable]] = np.maximum(new[usable], LEAST)
        self.tree.set(drawable, self.values[drawable])

    def terms(self, slots: Ints, history: History) -> dict[str, Floats] | None:
        """Take the priorities of slots [N] apart into the terms of the rule; see `terms_of`."""
        told = history.signals(self.rule.signals, slots)
        return terms_of(self.rule, self.memory, self.values[slots], history.judged[slots], told)

    def restore(self, values: Floats, drawable: Ints, memory: Mapping[str, float]) -> None:
        """Continue from saved values [slots]; `drawable` [N] are the slots that can be drawn."""
        self.values[:] = values
        self.memory = dict(memory)
        self.tree.set(drawable, self.values[drawable])


@np.errstate(over="ignore", invalid="ignore")
def terms_of(
    rule: Rule, memory: Mapping[str, float], priorities: Floats, judged: Visits, told: Signals
) -> dict[str, Floats] | None:
    """Take priorities [N] apart into the terms that the rule names, [N] each; None if it does not.

    `judged` [N] and `told` {name: [N]} are what `History` has of the steps. What was never judged
    by its signals has a priority all the same, `p_max`: it is counted to the first term, which is
    the count where there is one. Of dialect dv2 the minimum is today's.
    """
    if type(rule).__call__ is not Rule.__call__:
        return None  # a rule of one's own that is no sum of terms
    signals = rule.prepare(told, dict(memory))
    terms = rule.terms(np.maximum(judged - 1, 0), signals)
    known = judged > 0
    for name in rule.signals:
        known &= np.isfinite(told[name])
    return {
        name: np.where(known, term, 0.0 if i else priorities)
        for i, (name, term) in enumerate(terms.items())
    }


@compiled
def _enter(
    values: Floats, p_max: float, slots: Ints, changed: Ints, drawable: Flags,
    table: Floats, capacity: int,
) -> None:  # fmt: skip
    for i in range(len(slots)):
        values[slots[i]] = p_max
    into_tree = np.zeros(len(changed))  # 0: cannot be drawn
    for i in range(len(changed)):
        if drawable[i]:
            into_tree[i] = values[changed[i]]
    set_leaves(table, capacity, changed, into_tree)


@compiled
def _store(
    values: Floats, history: Ints32, slots: Ints, visits: Visits, new: Floats, told: Floats,
    table: Floats, capacity: int, needs: int,
) -> int:  # fmt: skip
    """Keep the new priorities [N] that are usable; returns how many were refused."""
    all_told = history[2:].view(np.float32)
    leaves = leaves_of(table, capacity)
    new = _refused(new, told, needs)
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
        _visit(history[0, first:end], visits[start:i])
        unusable = _replace(values[first:end], leaves[first:end], new[start:i])
        if not unusable:
            _visit(history[1, first:end], visits[start:i])
        else:
            refused += unusable
            for j in range(start, i):
                if _usable(new[j]):
                    history[1, first + j - start] = visits[j] + 1
        for k in range(len(told)):
            _keep(all_told[k, first:end], told[k, start:i])
        for node in range(node_of(first), node_of(end - 1) + 1):
            nodes[np.uintp(count)] = node
            count += node != last
            last = node
    renew_sums(table, capacity, nodes, count)
    return refused


@compiled
def _usable(new: float) -> bool:
    return (new >= 0.0) & (new <= MOST)


@compiled
def _refused(new: Floats, told: Floats, needs: int) -> Floats:
    """Return the priorities [N], NaN where one of the signals [K, N] they need is not finite."""
    for k in range(len(told)):
        if needs >> k & 1:
            odd = 0
            for i in range(len(new)):
                odd += not (abs(told[k, i]) < np.inf)
            if odd:
                new = np.where(np.abs(told[k]) < np.inf, new, np.nan)
    return new


@compiled
def _visit(all_visits: Ints32, visits: Visits) -> None:
    for i in range(len(visits)):
        all_visits[i] = visits[i] + 1  # the same for a step that occurs twice, or in two rules


@compiled
def _keep(all_told: Floats32, told: Floats) -> None:
    for i in range(len(told)):
        value = min(max(told[i], -_HIGHEST), _HIGHEST)
        all_told[i] = value if abs(told[i]) < np.inf else all_told[i]


@compiled
def _replace(values: Floats, leaves: Floats, new: Floats) -> int:
    refused = 0
    for i in range(len(new)):
        usable = _usable(new[i])
        refused += not usable
        values[i] = max(new[i], LEAST) if usable else values[i]
        leaves[i] = values[i] if leaves[i] > 0.0 else 0.0  # 0: cannot be drawn
    return refused
