"""The replay buffer written as slowly and as plainly as possible, to compare the real one with.

Everything is recomputed from the list of steps each time it is asked for.
"""

import math
from dataclasses import dataclass, field

from curious_replay.replay import Adversarial, Count, Curious, Mixture, Rule, Uniform


@dataclass
class Step:
    time: int
    is_first: bool
    is_last: bool
    visits: int = 0
    priorities: list[float] = field(default_factory=list)


def formula(rule: Rule, visits: int, loss: float) -> float:
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
        self.rules = [rule.first, rule.second] if isinstance(rule, Mixture) else [rule]
        self.minima = [math.inf for _ in self.rules]
        self.window = window
        self.cross = cross_episodes
        self.steps = [[] for _ in range(num_envs)]
        self.added = [0] * num_envs

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
            losses = [signals[rule.signal][p] if rule.signal else 0.0 for _, p in alive]
            if rule.dialect == "dv2" and rule.signal == "model":
                self.minima[k] = min([self.minima[k], *(x for x in losses if math.isfinite(x))])
                losses = [x - self.minima[k] for x in losses]
            for (step, _), loss in zip(alive, losses, strict=True):
                if math.isfinite(loss):
                    step.priorities[k] = formula(rule, before[id(step)], loss)
                else:
                    refused += 1
        for step, _ in alive:
            step.visits = before[id(step)] + 1
        return len(pairs) - len(alive), refused

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
