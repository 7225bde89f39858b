"""Measures of tasks with a goal, on episodes whose answers were worked by hand."""

from types import SimpleNamespace

import numpy as np

from curious_replay.analysis.lines import Columns
from curious_replay.experiments.ladder import Footing, climb
from curious_replay.experiments.miniatures.shared.policies import chooses
from curious_replay.experiments.miniatures.shared.settled import SETTLED_V2
from curious_replay.experiments.miniatures.shared.tasks import (
    GoalTask,
    mean_return,
    reached,
    retained,
)

TASK = GoalTask(within=2.0, oracle=chooses(1), chance=chooses(1))


def run(lengths, returns):
    """A run with nothing but these episodes, one after the other."""
    lengths = np.array(lengths)
    values = {"step": lengths.cumsum(), "length": lengths, "return": np.array(returns, float)}
    played = Columns(values, len(lengths))
    return SimpleNamespace(played=lambda: played)


def test_only_episodes_between_two_steps_count():
    one = run([10, 10, 10, 10], [1, 0.5, 0, 1])  # they end at 10, 20, 30, 40
    assert reached(0, 40).values([one]) == [2.5]
    assert reached(5, 35).values([one]) == [0.5]  # the first began before, the last ended later
    assert mean_return(10, 40).values([one]) == [0.5]


def test_a_return_without_episodes_is_none():
    assert np.isnan(mean_return(100, 200).values([run([10], [1])])[0])


def test_solved_is_a_row_of_short_episodes_that_end_with_reward():
    again = run([5] * 4 + [2] * 25, [0] * 4 + [1] * 25)
    measure = TASK.until_solved(20, 100)
    assert measure.values([again]) == [40]
    assert np.isnan(TASK.until_solved(20, 50).values([again])[0])  # too late
    assert np.isnan(measure.values([run([3] * 60, [1] * 60)])[0])  # too slow
    assert TASK.until_learned(Footing(None, [again])) == [60]


def test_what_is_retained_is_the_return_after_minus_before():
    lengths = [2] * 60
    returns = [1] * 20 + [0] * 20 + [0.25] * 20
    assert retained(40, 80).values([run(lengths, returns)]) == [-0.75]


def test_the_model_of_dreamer_v2_is_judged_by_its_kl():
    frames = 10 * np.arange(1, 9)
    kl = np.array([9, 8, 7, 6, 6, 6, 3, 3], float)
    metrics = {"frame": frames, "model/loss": np.full(8, 708.0), "model/kl": kl}
    falling = SimpleNamespace(seed=0, metrics=metrics, frames_done=80, first_change=0)
    [result] = climb([SETTLED_V2], Footing(None, [falling]))
    assert (result.median, result.held) == (0.5, False)
