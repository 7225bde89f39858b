"""The priority rules against published and worked numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

from curious_replay.replay import (
    Adversarial,
    Count,
    Curious,
    Mixture,
    ReplayBuffer,
    TemporalDifference,
    Uniform,
)
from curious_replay.replay.decay_table import scaled_power

GOLDEN = json.loads((Path(__file__).parent / "golden_priorities.json").read_text())["cases"]


def single_steps(count, **options):
    """A buffer of `count` steps, each of them a window of its own, and their ids."""
    buffer = ReplayBuffer(capacity=count, length=1, **options)
    flags = dict.fromkeys(("is_first", "is_last", "is_terminal"), np.zeros(1, bool))
    return buffer, np.concatenate([buffer.add(flags) for _ in range(count)])


@pytest.mark.parametrize("case", GOLDEN, ids=lambda c: f"{c['dialect']}-{c['hyper']}")
def test_golden_numbers(case):
    rule = Curious(dialect=case["dialect"], **case["hyper"])
    buffer, ids = single_steps(case["slots"], rule=rule)
    assert (buffer.priorities(ids) == rule.p_max).all()
    for batch in case["batches"]:
        buffer.update(ids[batch["slots"]], {"model": batch["losses"]})
    np.testing.assert_allclose(buffer.priorities(ids), case["priorities"], rtol=1e-9)
    assert buffer.visits(ids).tolist() == case["visits"]


# c = 1e4, β = α = 0.7, ε = 0.01: rows are visits, columns are losses 0, 1, 10, 100, 1000.
TABLE = {
    0: [10000.0398, 10001.0070, 10005.0154, 10025.1206, 10125.8934],
    1: [7000.0398, 7001.0070, 7005.0154, 7025.1206, 7125.8934],
    5: [1680.7398, 1681.7070, 1685.7154, 1705.8206, 1806.5934],
    10: [282.5151, 283.4822, 287.4906, 307.5959, 408.3687],
    20: [8.0190, 8.9862, 12.9946, 33.0998, 133.8726],
}


@pytest.mark.parametrize("visits", TABLE)
def test_worked_table(visits):
    losses = np.array([0.0, 1.0, 10.0, 100.0, 1000.0])
    before = np.full(5, visits)
    paper = Curious()(before, {"model": losses})
    np.testing.assert_allclose(paper, TABLE[visits], atol=5e-5)
    np.testing.assert_allclose(Curious()(before, {"model": -losses}), paper)
    np.testing.assert_allclose(Curious(dialect="dv3")(before - 1, {"model": losses}), paper)
    count = Count()(before, {})
    adversarial = Adversarial()(before, {"model": losses})
    np.testing.assert_allclose(count + adversarial, paper)
    np.testing.assert_allclose(TemporalDifference()(before, {"td": losses}), adversarial)


def test_counts_alone_and_together_with_a_loss():
    counts = Count()(np.array([5, 10, 15, 20, 25]), {})
    np.testing.assert_allclose(counts, [1680.7, 282.4752, 47.4756, 7.9792, 1.3411], atol=5e-5)
    (both,) = Curious()(np.array([25]), {"model": np.array([100.0])})
    assert both == pytest.approx(26.4617, abs=5e-5)


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("paper", [10015.4646, 7015.4646, 4915.4646, 3445.4646]),
        ("dv3", [7015.4646, 4915.4646, 3445.4646, 2416.4646]),
    ],
)
def test_visits_are_counted_before_or_after(dialect, expected):
    buffer, ids = single_steps(1, rule=Curious(dialect=dialect))
    found = []
    for _ in expected:
        buffer.update(ids, {"model": [50.0]})
        found += buffer.priorities(ids).tolist()
    np.testing.assert_allclose(found, expected, atol=5e-5)


def test_losses_count_from_their_minimum():
    buffer, ids = single_steps(5, rule=Adversarial(dialect="dv2"))
    buffer.update(ids[:3], {"model": [11300.0, 11310.0, 11295.0]})
    np.testing.assert_allclose(
        buffer.priorities(ids[:3]), [3.0894873, 6.6598812, 0.0398107], atol=6e-8
    )
    buffer.update(ids[3:], {"model": [11400.0, 11290.0]})
    np.testing.assert_allclose(buffer.priorities(ids[3:]), [26.8536, 0.0398107], rtol=2e-6)


def test_running_minimum_spans_the_run():
    buffer, ids = single_steps(4, rule=Adversarial(dialect="dv2", alpha=1.0, eps=0.0))
    buffer.update(ids[:2], {"model": [11300.0, 11310.0]})  # minimum 11300
    assert buffer.priorities(ids[:2]).tolist() == [1e-200, 10.0]  # never 0: it can be drawn again
    buffer.update(ids[2:], {"model": [11295.0, 11296.0]})  # minimum 11295, taken first
    assert buffer.priorities(ids).tolist() == [1e-200, 10.0, 1e-200, 1.0]
    buffer.clear()
    flags = dict.fromkeys(("is_first", "is_last", "is_terminal"), np.zeros(1, bool))
    ids = buffer.add(flags)
    buffer.update(ids, {"model": [11305.0]})
    assert buffer.priorities(ids) == 10.0  # 11305 - 11295: forgetting steps is not a new run


def test_td_has_no_running_minimum():
    buffer, ids = single_steps(1, rule=TemporalDifference(dialect="dv2", alpha=1.0, eps=0.0))
    buffer.update(ids, {"td": [3.0]})
    assert buffer.priorities(ids) == 3.0


def test_other_signals_can_be_read():
    buffer, ids = single_steps(2, rule=Adversarial(signal="kl", alpha=1.0, eps=0.0))
    buffer.update(ids, {"model": [9.0, 9.0], "kl": [2.0, 3.0]})
    assert buffer.priorities(ids).tolist() == [2.0, 3.0]


def test_uniform_ignores_feedback():
    buffer, ids = single_steps(3, rule=Uniform())
    buffer.update(ids[:1], {"model": [1e9]})
    assert len(set(buffer.priorities(ids))) == 1
    assert buffer.visits(ids).tolist() == [1, 0, 0]


def test_a_step_visited_very_often_can_still_be_drawn():
    buffer, ids = single_steps(2, rule=Count())
    for _ in range(2200):  # 1e4 * 0.7**2200 is 0 in floating point
        buffer.update(ids, {})
    assert (buffer.priorities(ids) > 0).all()
    assert set(buffer.sample(64).ids.ravel()) == set(ids)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Curious(beta=1.5), "beta must be between 0 and 1, got 1.5"),
        (lambda: Curious(alpha=-1), "alpha must be between 0 and 10, got -1"),
        (lambda: Curious(c=float("nan")), "c must be between 0"),
        (lambda: Curious(p_max=0), "p_max must be between"),
        (lambda: Curious(dialect="dv4"), "dialect must be one of .*'dv3'.*, got 'dv4'"),
        (lambda: Curious(signal=""), "signal must be the name of what Curious reads, got ''"),
        (lambda: Mixture(Uniform(), Curious(), 1.5), "fraction must be between 0 and 1, got 1.5"),
    ],
)
def test_wrong_settings_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_rule_must_be_a_rule():
    with pytest.raises(TypeError, match=r"Curious\(\), got 'curious'"):
        ReplayBuffer(10, 2, rule="curious")
    with pytest.raises(TypeError, match="two rules"):
        Mixture(Uniform(), 3, 0.5)


@pytest.mark.parametrize("beta", [0.0, 0.7, 0.999, 1.0])
@pytest.mark.parametrize("top", [0, 4095, 4096, 100_000])
def test_powers_are_looked_up_or_computed_alike(beta, top):
    visits = np.array([0, 1, 2, 17, top], np.int32)
    expected = 1e4 * beta ** visits.astype(float)
    np.testing.assert_allclose(scaled_power(1e4, beta, visits), expected, rtol=1e-14)


def test_powers_below_the_smallest_normal_number_are_0():
    """Sums with such numbers take several times as long."""
    powers = scaled_power(1.0, 0.7, np.arange(5000))
    expected = 0.7 ** np.arange(5000.0)
    normal = expected >= np.finfo(float).tiny
    np.testing.assert_allclose(powers[normal], expected[normal], rtol=1e-14)
    assert 1900 < normal.sum() < 2100 and not powers[~normal].any()
