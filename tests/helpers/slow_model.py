"""The replay buffer written as slowly and as plainly as possible, to compare the real one with.

Everything is recomputed from the list of steps each time it is asked for.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from curious_replay.replay import Adversarial, Count, Curious, Mixture, Rule, Uniform


@dataclass
class Step:
    time: int
    is_first: bool
    is_last: bool
    visits: int = 0
    judged: int = 0  # visits with the last one, when it last got a priority
    told: dict[str, float] = field(default_factory=dict)
    priorities: list[float] = field(default_factory=list)
    memo: tuple[float, float] = (0.0, 0.0)  # a field that is written again


@dataclass(frozen=True, kw_only=True)
class Both(Rule):
    """A rule of two signals: p = |model| + 10·|td|, and more for steps seen less."""

    signals = ("model", "td")

    def __call__(self, visits, signals):
        return np.abs(signals["model"]) + 10 * np.abs(signals["td"]) + 1 / (1 + visits)


def formula(rule: Rule, visits: int, losses: dict[str, float]) -> float:
    if isinstance(rule, Both):
        return abs(losses["model"]) + 10 * abs(losses["td"]) + 1 / (1 + visits)
    loss = losses.get(rule.signal, 0.0)
    v = visits + 1 if rule.dialect == "dv3" else visits
    if isinstance(rule, Curious):
        return rule.c * rule.beta**v + (abs(loss) + rule.eps) ** rule.alpha
    if isinstance(rule, Count):
        return rule.c * rule.beta**v
    if isinstance(rule, Adversarial):  # and TemporalDifference
        return (abs(loss) + rule.eps) ** rule.alpha
    assert isinstance(rule, Uniform)
    return rule.p_max


class SlowBuffer:
    def __init__(self, capacity, length, num_envs, rule, window, cross_episodes):
        self.stripe = capacity // num_envs
        self.length = length
        self.num_envs = num_envs
        self.rule = rule
        self.rules = [rule.first, rule.second] if isinstance(rule, Mixture) else [rule]
        self.minima = [math.inf for _ in self.rules]
        self.window = window
        self.cross = cross_episodes
        self.steps = [[] for _ in range(num_envs)]
        self.added = [0] * num_envs
        self.waiting = [0] * num_envs  # the time of the first step that was not replayed online

    def add(self, env, is_first, is_last):
        steps = self.steps[env]
        if len(steps) == self.stripe:
            steps.pop(0)
        steps.append(
            Step(self.added[env], is_first, is_last, priorities=[r.p_max for r in self.rules])
        )
        self.added[env] += 1

    def clear(self):
        self.steps = [[] for _ in range(self.num_envs)]

    def find(self, step_id):
        time, env = divmod(step_id, self.num_envs)
        return next((s for s in self.steps[env] if s.time == time), None)

    def update(self, ids, signals):
        """`ids` and each signal are flat lists. Returns how many were stale and refused."""
        pairs = [(self.find(i), position) for position, i in enumerate(ids)]
        alive = [(step, position) for step, position in pairs if step is not None]
        before = {id(step): step.visits for step, _ in alive}
        refused = 0
        for k, rule in enumerate(self.rules):
            self.see_minimum(k, [signals[name][p] for name in rule.signals for _, p in alive])
            for step, position in alive:
                losses = {name: signals[name][position] for name in rule.signals}
                if all(map(math.isfinite, losses.values())):
                    step.priorities[k] = self.priority(k, before[id(step)], losses)
                    step.judged = before[id(step)] + 1
                else:
                    refused += 1
        for step, position in alive:
            step.visits = before[id(step)] + 1
            for name, values in signals.items():
                if math.isfinite(values[position]):
                    step.told[name] = float(np.float32(values[position]))
        return len(pairs) - len(alive), refused

    def write(self, ids, memos):
        """Flat lists. Returns how many of the steps were gone."""
        steps = [self.find(i) for i in ids]
        for step, memo in zip(steps, memos, strict=True):
            if step is not None:
                step.memo = memo
        return sum(step is None for step in steps)

    def online(self, count, length):
        """Take windows of new steps, as (environment, times), at most `count`."""
        taken, resting = [], set()
        while len(taken) < count:
            for env, steps in enumerate(self.steps):
                oldest = steps[0].time if steps else self.added[env]
                self.waiting[env] = max(self.waiting[env], oldest)
            left = [
                (self.added[env] - self.waiting[env], -env)
                for env in range(self.num_envs)
                if env not in resting
            ]
            if not left or max(left)[0] == 0:
                break
            env = -max(left)[1]
            steps = self.steps[env]
            index = self.waiting[env] - steps[0].time
            begin, end, ended = (
                (0, len(steps), False) if self.cross else self.episode_of(env, index)
            )
            if index + length <= end:
                window = range(index, index + length)
            elif not ended:
                resting.add(env)  # more steps are to come
                continue
            elif end - length < begin:
                self.waiting[env] += end - index  # never replayed: its episode is too short
                continue
            elif any(env == each for each, _ in taken):
                resting.add(env)  # shares steps with a window of this batch
                continue
            else:
                window = range(end - length, end)
            taken.append((env, [steps[i].time for i in window]))
            self.waiting[env] = steps[window[-1]].time + 1
        return taken

    def see_minimum(self, k, losses):
        rule = self.rules[k]
        if rule.dialect == "dv2" and rule.signal == "model":
            self.minima[k] = min([self.minima[k], *filter(math.isfinite, losses)])

    def priority(self, k, visits, losses):
        rule = self.rules[k]
        if rule.dialect == "dv2" and rule.signal == "model":
            losses = {"model": losses["model"] - self.minima[k]}
        return formula(rule, visits, losses)

    def put_on(self, rule):
        """Judge all steps anew, by what is known of each."""
        if rule == self.rule:
            return
        least = min(self.minima)  # of one signal here: of the whole run, if any rule has kept it
        self.rule = rule
        self.rules = [rule.first, rule.second] if isinstance(rule, Mixture) else [rule]
        self.minima = [least for _ in self.rules]
        every = [step for steps in self.steps for step in steps]
        for k, each in enumerate(self.rules):
            judged = [step for step in every if step.judged]
            for name in each.signals:
                self.see_minimum(k, [step.told[name] for step in judged if name in step.told])
            for step in every:
                step.priorities[k:] = [each.p_max]
                if step.judged and all(name in step.told for name in each.signals):
                    told = {name: step.told[name] for name in each.signals}
                    step.priorities[k] = self.priority(k, step.judged - 1, told)

    def novelty_share(self):
        """The count term's share of the priorities of what can be drawn."""
        fraction = self.rule.fraction if isinstance(self.rule, Mixture) else 0.0
        share = 0.0
        for k, rule in enumerate(self.rules):
            tree, count = self.tree(k), 0.0
            if isinstance(rule, Count):
                for step_id, priority in tree.items():
                    step = self.find(step_id)
                    known = step.judged and all(name in step.told for name in rule.signals)
                    v = step.judged - (rule.dialect != "dv3")
                    count += rule.c * rule.beta**v if known else priority
            if tree:
                share += (fraction if k else 1 - fraction) * count / sum(tree.values())
        return share

    def episode_of(self, env, index):
        """Positions [begin, end) of the stored part of the episode, and whether it has ended."""
        steps = self.steps[env]

        def boundary(i):  # between positions i - 1 and i
            return steps[i].is_first or steps[i - 1].is_last

        begin = index
        while begin > 0 and not boundary(begin):
            begin -= 1
        end = index + 1
        while end < len(steps) and not boundary(end):
            end += 1
        return begin, end, end < len(steps) or steps[end - 1].is_last

    def window_of(self, env, index):
        """Positions of the window that belongs to a drawn step, or None if it is not whole."""
        steps = self.steps[env]
        begin, end, ended = (0, len(steps), False) if self.cross else self.episode_of(env, index)
        if self.window == "last":
            start = index - self.length + 1
        else:
            start = index - 1
            if ended:
                start = min(start, end - self.length)
        # A step that opens its episode has no step before it that belongs to its window.
        if start < begin or start + self.length > end:
            return None
        return range(start, start + self.length)

    def tree(self, k):
        """{id: priority} of every step that can be drawn."""
        return {
            step.time * self.num_envs + env: step.priorities[k]
            for env, steps in enumerate(self.steps)
            for index, step in enumerate(steps)
            if self.window_of(env, index) is not None
        }
