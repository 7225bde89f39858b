"""Statistics against published values and ones worked by hand."""

import math

import numpy as np
import pytest

from curious_replay.analysis import stats

# Student (1908): hours of sleep gained under two drugs; R prints t = -1.8608, p = 0.07919 for the
# independent test with equal variances.
SLEEP = (
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)
# Benjamini and Hochberg (1995), section 4: at 0.05 the first four of these fifteen are discoveries.
INFARCTION = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000,
]  # fmt: skip


def test_summary_by_hand():
    found = stats.summary([2, 4, 4, 4, 5, 5, 7, 9])  # squares around the mean 5 add up to 32
    assert (found.mean, found.n, found.population_sd) == (5, 8, 2)
    assert found.sd == pytest.approx(math.sqrt(32 / 7))
    assert found.sem == pytest.approx(math.sqrt(32 / 7 / 8))


def test_runs_without_an_answer_are_left_out():
    found = stats.summary([1, np.nan, 3, np.inf])
    assert (found.mean, found.n) == (2, 2)
    assert stats.summary([]).n == 0
    assert math.isnan(stats.summary([np.nan]).mean)
    assert stats.summary([0.1, 0.3 - 0.2]).sd == 0  # they differ by rounding only
    one = stats.summary([7])
    assert (one.mean, one.n, one.population_sd) == (7, 1, 0)
    assert math.isnan(one.sd)
    assert math.isnan(one.sem)


def test_students_sleep_data():
    t, p = stats.t_test(*SLEEP)
    assert t == pytest.approx(-1.8608, abs=5e-5)
    assert p == pytest.approx(0.07919, abs=5e-6)


@pytest.mark.parametrize(
    "groups",
    [
        ([1], [2, 3]),
        ([], []),
        ([1, 1], [1, 1]),
        ([np.nan, 1], [1, 2]),
        ([0.1, 0.1, 0.3 - 0.2], [0.1] * 3),
    ],
)
def test_no_test_without_two_runs_and_some_spread(groups):
    assert all(math.isnan(value) for value in stats.t_test(*groups))


def test_one_group_without_spread_can_be_compared():
    t, p = stats.t_test([1.0, 1.0, 1.0], [2.0, 3.0, 4.0])
    assert t == pytest.approx(-2 / math.sqrt(1 / 2 * 2 / 3))  # pooled variance 1/2, 1/3 + 1/3
    assert 0 < p < 0.05


def test_benjamini_and_hochbergs_example():
    adjusted = stats.benjamini_hochberg(INFARCTION)
    assert (adjusted <= 0.05).tolist() == [True] * 4 + [False] * 11
    assert adjusted[0] == pytest.approx(0.0001 * 15)
    assert adjusted[3] == pytest.approx(0.0095 * 15 / 4)
    with_gap = stats.benjamini_hochberg([*INFARCTION[:2], np.nan, *INFARCTION[2:]])
    assert math.isnan(with_gap[2])
    np.testing.assert_allclose(np.delete(with_gap, 2), adjusted)
    assert stats.benjamini_hochberg([]).size == 0


def test_comparisons_are_corrected_together():
    groups = {"a": SLEEP[0], "b": SLEEP[1], "one": [1.0]}
    found = {(c.first, c.second): c for c in stats.compare(groups)}
    assert set(found) == {("a", "b"), ("a", "one"), ("b", "one")}
    assert found["a", "b"].corrected == pytest.approx(0.07919, abs=5e-6)  # the only test there is
    assert found["a", "b"].difference == pytest.approx(0.75 - 2.33)
    assert math.isnan(found["a", "one"].p)
    twice = stats.compare(groups, [("a", "b"), ("a", "b")])
    assert [c.corrected for c in twice] == pytest.approx([0.07919] * 2, abs=5e-6)
    low = stats.compare({"x": [1, 2, 3], "y": [11, 12, 13], "z": [1, 2, 3.5]})
    smallest, second, _ = sorted(c.p for c in low)
    assert low[0].p == smallest
    assert low[0].corrected == pytest.approx(min(3 * smallest, 3 / 2 * second))


def test_runs_that_never_got_there_count_in_ranks():
    from scipy.stats import mannwhitneyu  # noqa: PLC0415

    fast, slow = [1.0, 2.0, 3.0, 4.0], [5.0, np.nan, np.nan, np.nan]
    (left_out,) = stats.compare({"fast": fast, "slow": slow})
    assert np.isnan(left_out.p)  # one run is no group
    (ranked,) = stats.compare({"fast": fast, "slow": slow}, never=np.inf)
    assert np.isnan(ranked.t)
    assert ranked.p == mannwhitneyu(fast, [5, 6, 6, 6]).pvalue < 0.05
    (worst,) = stats.compare({"fast": fast, "slow": slow}, never=-np.inf)
    assert worst.p == mannwhitneyu(fast, [5, 0, 0, 0]).pvalue > 0.2
    (all_there,) = stats.compare({"fast": fast, "slow": [5, 6, 7, 8]}, never=np.inf)
    assert all_there.p == stats.t_test(fast, [5, 6, 7, 8])[1]
    assert np.isnan(stats.group_test([np.nan] * 3, [np.nan] * 3, np.inf)[1])


def test_interquartile_mean():
    assert stats.iqm([0, 1, 2, 100]) == 1.5
    assert stats.iqm(range(8)) == 3.5  # of 2, 3, 4, 5
    assert stats.iqm([5]) == 5
    assert math.isnan(stats.iqm([np.nan]))


def test_interval_of_two_runs_is_known_exactly():
    # Draws of (0, 1) with replacement have means 0, 1/2, 1 with chances 1/4, 1/2, 1/4.
    scores = np.array([0.0, 1.0])
    for level, expected in ((0.9, (0, 1)), (0.4, (0.5, 0.5))):
        found = stats.interval(scores, stats.mean_of_tasks, seed=0, level=level)
        assert (found.low, found.high) == expected
        assert found.value == 0.5


def test_a_flat_list_is_one_task():
    assert stats.interval([0.0, 1.0], seed=0) == stats.interval(np.array([0.0, 1.0]), seed=0)
    assert stats.interval([0.0, 1.0], stats.mean_of_tasks, seed=0).high == 1
    assert [task.tolist() for task in stats.by_task([[1, 2], [3], []])] == [[1, 2], [3]]
    assert [task.tolist() for task in stats.by_task(np.array([[1, 2], [3, 4]]))] == [[1, 3], [2, 4]]


def test_statistics_of_tasks():
    tasks = [np.array([1.0, 3.0]), np.array([10.0]), np.array([4.0, 8.0])]  # means 2, 10, 6
    assert stats.mean_of_tasks(tasks) == 6
    assert stats.median_of_tasks([*tasks, np.array([100.0])]) == 8
    assert stats.iqm_of_tasks(tasks) == 5  # of 1, 3, 4, 8, 10 without one at each end
    two = [np.array([[1.0, 3.0], [5.0, 5.0]]), np.array([[2.0], [7.0]])]
    assert stats.median_of_tasks(two).tolist() == [2, 6]


def test_interval_is_stratified_and_follows_its_seed():
    constant = np.array([[1.0, 10.0, 100.0]] * 5)  # runs of a task agree: nothing to doubt
    found = stats.interval(constant, stats.mean_of_tasks, seed=0)
    assert (found.low, found.value, found.high) == (37, 37, 37)
    rng = np.random.default_rng(1)
    scores = [rng.normal(size=5), rng.normal(size=9)]
    first, again, other = (stats.interval(scores, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert first.low < first.value < first.high


def test_interval_agrees_with_the_normal_approximation():
    rng = np.random.default_rng(2)
    scores = rng.normal(3, 2, 400)
    found = stats.interval(scores, stats.mean_of_tasks, seed=0, samples=4000)
    half = 1.96 * scores.std(ddof=1) / 20
    assert found.low == pytest.approx(scores.mean() - half, abs=0.03)
    assert found.high == pytest.approx(scores.mean() + half, abs=0.03)


def test_probability_of_improvement_of_tortoise_and_hare():
    # T H H H H H T T T T T H: the usual example of Mann and Whitney's test; hares win 25 of 36.
    order = "THHHHHTTTTTH"
    places = {animal: [12 - i for i, c in enumerate(order) if c == animal] for animal in "TH"}
    found = stats.probability_of_improvement([places["H"]], [places["T"]], seed=0)
    assert found.value == pytest.approx(25 / 36)
    assert found.low < found.value < found.high
    assert stats.probability_of_improvement([[1, 2]], [[1, 2]], seed=0).value == 0.5
    two = stats.probability_of_improvement([[1], [5]], [[0], [9]], seed=0)
    assert (two.low, two.value, two.high) == (0.5, 0.5, 0.5)
    gap = stats.probability_of_improvement([[1], [5], []], [[np.nan], [4], [9]], seed=0)
    assert gap.value == 1  # only the second task has runs on both sides
    with pytest.raises(ValueError, match="same tasks"):
        stats.probability_of_improvement([[1], [5]], [[0]], seed=0)


def test_performance_profile():
    values, low, high = stats.performance_profile(
        np.array([[0.0, 1.0], [2.0, 3.0]]), [-1, 0, 1, 2.5, 3], seed=0
    )
    assert values.tolist() == [1, 0.75, 0.5, 0.25, 0]
    assert (low <= values).all()
    assert (values <= high).all()
    assert low[0] == high[0] == 1
    assert low[1] == 0.5  # a task's two draws may both be its lower run


def test_nothing_gives_nothing():
    assert math.isnan(stats.interval([], seed=0).value)
    assert math.isnan(stats.probability_of_improvement([], [], seed=0).value)
    assert np.isnan(stats.performance_profile([[np.nan]], [0, 1], seed=0)[0]).all()
