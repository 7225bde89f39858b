"""What the buffer promises, one promise a test."""

import contextlib
import sys
import threading
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from helpers.streams import fill, step
from scipy.stats import chisquare

from curious_replay.replay import (
    Adversarial,
    Curious,
    Mixture,
    ReplayBuffer,
    Rule,
    TemporalDifference,
    Uniform,
)


def test_batch_has_the_fields_of_the_steps():
    buffer = ReplayBuffer(100, 4, num_envs=2)
    for t in range(10):
        extra = {"observation": {"image": np.zeros((2, 8, 8, 3), np.uint8), "log_id": np.ones(2)}}
        extra["log_all"] = {"of": {"this": np.full(2, t)}}
        buffer.add(step(t, 2) | extra)
    batch = buffer.sample(3)
    assert batch["observation"]["image"].shape == (3, 4, 8, 8, 3)
    assert batch["observation"]["image"].dtype == np.uint8
    assert list(batch["observation"]) == ["image"]  # log_* fields stay outside
    assert not {"log_phase", "log_all"} & set(batch)
    assert (buffer.read(batch.ids, "log_all/of/this") == batch["number"]).all()
    assert buffer.read(batch.ids, "observation/log_id").shape == (3, 4)
    assert batch.ids.dtype == np.int64
    assert batch.ids.shape == (3, 4)
    assert batch.probabilities.shape == (3,)
    batch["number"][:] = -1  # a batch is the caller's own
    assert (buffer.read(batch.ids, "number") >= 0).all()


def test_frequencies_match_priorities():
    buffer = ReplayBuffer(60, 3, rule=Adversarial(alpha=1.0, eps=0.0), seed=3)
    ids = fill(buffer, 60).ravel()
    losses = np.random.default_rng(0).exponential(size=60)
    buffer.update(ids, {"model": losses})
    batches = [buffer.sample(100) for _ in range(400)]
    drawn = np.bincount(np.concatenate([b.ids[:, -1] for b in batches]), minlength=60)
    assert (drawn[:2] == 0).all()  # no window ends here
    expected = losses[2:] / losses[2:].sum()
    assert chisquare(drawn[2:], expected * drawn.sum()).pvalue > 1e-3
    chances = np.concatenate([b.probabilities for b in batches])
    last = np.concatenate([b.ids[:, -1] for b in batches])
    np.testing.assert_allclose(chances, expected[last - 2], rtol=1e-12)


def test_same_seed_same_batches():
    one, same, other = (ReplayBuffer(100, 4, seed=seed) for seed in (1, 1, 2))
    for buffer in (one, same, other):
        fill(buffer, 100)
    batches = [[buffer.sample(8).ids for _ in range(5)] for buffer in (one, same, other)]
    assert np.array_equal(batches[0], batches[1])
    assert not np.array_equal(batches[0], batches[2])


def test_new_steps_can_be_sampled_as_soon_as_their_window_is_whole():
    buffer = ReplayBuffer(100, 5)
    for count in range(1, 10):
        new = fill(buffer, 1, start=count - 1)
        assert buffer.ready == (count >= 5)
        assert (buffer.priorities(new) == (1e5 if count >= 5 else 0)).all()


@pytest.mark.parametrize("window", ["last", "first"])
def test_the_end_of_an_episode_is_replayed(window):
    buffer = ReplayBuffer(100, 4, window=window, cross_episodes=False)
    fill(buffer, 30, episode=10)
    batch = buffer.sample(500)
    assert batch["is_terminal"].any()
    ends = set(batch["number"][batch["is_terminal"]])
    assert ends == {9, 19, 29}


def test_forward_windows_begin_before_the_drawn_step_and_end_with_the_episode():
    """Episode of 12 steps, windows of 5: steps 1 to 8 open their own, 9 to 11 share the last."""
    buffer = ReplayBuffer(100, 5, window="first", cross_episodes=False, rule=Uniform())
    fill(buffer, 12, episode=12)
    drawable = np.flatnonzero(buffer.priorities(np.arange(12)) > 0)
    slots, _, _, _ = buffer.windows.find(np.arange(12), buffer.sampler.history.visits)
    assert drawable.tolist() == list(range(1, 12))
    _, starts, _ = buffer.windows.around(slots[1:], 5)
    assert starts.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7]
    _, starts, _ = buffer.windows.around(slots[1:], 3)  # shorter windows end with the episode too
    assert starts.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9]
    _, starts, _ = buffer.windows.around(slots[1:], 1)
    assert starts.tolist() == list(range(1, 12))


@pytest.mark.parametrize("window", ["last", "first"])
def test_shorter_windows_hold_the_drawn_step_where_the_long_ones_do(window):
    buffer = ReplayBuffer(100, 6, window=window, rule=TemporalDifference())
    fill(buffer, 40, episode=100)
    wanted = 20  # all priority on one step
    buffer.update(np.arange(40), {"td": np.where(np.arange(40) == wanted, 1e9, 0.0)})
    for length in (1, 2, 5, 6):
        batch = buffer.sample(50, length)
        assert batch["number"].shape == batch.ids.shape == (50, length)
        position = length - 1 if window == "last" else min(1, length - 1)
        assert (batch["number"][:, position] == wanted).all()
        assert (np.diff(batch["number"], axis=1) == 1).all()
        assert np.array_equal(buffer.read(batch.ids, "number"), batch["number"])
        assert batch["is_first"][:, 0].all()
    assert buffer.sample(3)["number"].shape == (3, 6)
    for length in (0, 7):
        with pytest.raises(ValueError, match=f"length must be from 1 to 6, got {length}"):
            buffer.sample(3, length)


def test_short_episodes_are_never_windows():
    buffer = ReplayBuffer(100, 6, cross_episodes=False)
    fill(buffer, 50, episode=5)
    assert not buffer.ready
    with pytest.raises(ValueError, match="no environment has 6 successive steps inside one epi"):
        buffer.sample(1)


def test_ids_are_never_used_again():
    buffer = ReplayBuffer(10, 2, num_envs=2)
    seen = fill(buffer, 40).ravel().tolist()
    buffer.clear()
    assert len(buffer) == 0
    seen += fill(buffer, 40, start=40).ravel().tolist()
    assert len(set(seen)) == len(seen) == 160


def test_feedback_for_steps_that_are_gone_is_counted_and_ignored():
    buffer = ReplayBuffer(10, 2)
    fill(buffer, 10)
    batch = buffer.sample(4)
    fill(buffer, 10, start=10)
    before = buffer.priorities(buffer.ids())
    buffer.update(batch.ids, {"model": np.ones((4, 2))})
    assert buffer.stats()["stale"] == 8
    assert buffer.stats()["updated"] == 0
    assert np.array_equal(buffer.priorities(buffer.ids()), before)
    assert (buffer.visits(buffer.ids()) == 0).all()
    assert (buffer.priorities(batch.ids) == 0).all()
    assert (buffer.visits(batch.ids) == 0).all()
    assert not buffer.stored(batch.ids).any()
    assert buffer.stored(buffer.ids()).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_a_signal_that_is_not_finite_leaves_the_old_priority(bad, alpha):
    buffer = ReplayBuffer(4, 1, rule=Curious(alpha=alpha))
    ids = fill(buffer, 4).ravel()
    buffer.update(ids, {"model": [1.0, 2.0, 3.0, 4.0]})
    before = buffer.priorities(ids)
    buffer.update(ids, {"model": [bad, 2.0, bad, 4.0]})
    after = buffer.priorities(ids)
    assert (after[[0, 2]] == before[[0, 2]]).all()
    assert (after[[1, 3]] < before[[1, 3]]).all()
    assert buffer.visits(ids).tolist() == [2, 2, 2, 2]  # they were trained on all the same
    assert buffer.stats()["refused"] == 2


def test_a_priority_too_large_to_sum_is_refused():
    buffer = ReplayBuffer(2, 1, rule=Adversarial(alpha=1.0))
    ids = fill(buffer, 2).ravel()
    buffer.update(ids, {"model": [1e308, 1.0]})
    assert buffer.priorities(ids[0]) == 1e5
    assert buffer.stats()["refused"] == 1


@dataclass(frozen=True, kw_only=True)
class Given(Rule):
    """Returns what it was given."""

    signal: str = "model"
    values: tuple[float, ...] = ()

    def __call__(self, visits, signals):
        return np.array(self.values)


def test_what_a_rule_of_ones_own_returns_is_checked():
    buffer = ReplayBuffer(3, 1, rule=Given(values=(1.0, 2.0)))
    ids = fill(buffer, 3).ravel()
    with pytest.raises(ValueError, match=r"one priority for each of 3 steps, got shape \[2\]"):
        buffer.update(ids, {"model": np.zeros(3)})
    assert buffer.visits(ids).tolist() == [0, 0, 0]
    buffer = ReplayBuffer(3, 1, rule=Given(values=(1.0, -2.0, np.inf)))
    ids = fill(buffer, 3).ravel()
    buffer.update(ids, {"model": np.zeros(3)})
    assert buffer.priorities(ids).tolist() == [1.0, 1e5, 1e5]
    assert buffer.stats()["refused"] == 2


class Interruption(BaseException):
    """What Ctrl-C and signals do: an exception between any two lines."""


def run_until_line(number, work):
    """Do `work`, but raise before the given line that is run in the package."""
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        if "curious_replay" not in frame.f_code.co_filename:
            return None
        lines += event == "line"
        if lines == number:
            raise Interruption
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)


@pytest.mark.parametrize("num_envs", [1, 3])
def test_an_interrupted_buffer_is_right_or_refuses_to_go_on(num_envs):
    right = refused = 0
    for number in range(1, 4000, 11):
        buffer = ReplayBuffer(30 * num_envs, 4, num_envs=num_envs)
        fill(buffer, 40)

        def add(count=45, buffer=buffer):
            for _ in range(count):
                ids = buffer.windows.next_ids
                buffer.add(step(1, num_envs) | {"number": ids})
            batch = buffer.sample(2)
            buffer.update(batch.ids, {"model": np.ones((2, 4))})

        with contextlib.suppress(Interruption):
            run_until_line(number, add)
        try:
            add(31)  # now every step in it was added after the interruption
        except RuntimeError as error:
            assert "interrupted" in str(error)
            refused += 1
            continue
        ids = buffer.ids()
        assert (buffer.read(ids, "number") == ids).all()
        assert buffer.stats()["drawable"] == 27 * num_envs
        assert buffer.visits(ids).sum() in (8, 7, 6, 5, 4)  # of two windows, which may overlap
        right += 1
    assert right > 200
    assert refused > 2


def test_an_interrupted_add_leaves_the_oldest_step_as_it_was():
    """Also where the steps of a full buffer fill whole chunks, of 64 rows."""
    looked = 0
    for number in range(1, 60):
        buffer = ReplayBuffer(64, 4)
        for time in range(70):
            buffer.add(step(1, 1) | {"number": np.array([time])})
        buffer.sample(1)
        newest = step(1, 1) | {"number": np.array([70])}
        with contextlib.suppress(Interruption):
            run_until_line(number, partial(buffer.add, newest))
        with contextlib.suppress(RuntimeError):  # it refuses to say anything
            ids = buffer.ids()
            assert (buffer.read(ids, "number") == ids).all()
            looked += 1
    assert looked > 20


def test_mixture_draws_its_fraction_from_the_second_rule():
    """Two rules that want different halves of the buffer."""
    rule = Mixture(Adversarial(alpha=1.0, eps=0.0), TemporalDifference(alpha=1.0, eps=0.0), 0.3)
    buffer = ReplayBuffer(40, 1, rule=rule)
    ids = fill(buffer, 40).ravel()
    low = np.where(ids < 20, 1.0, 1e-100)
    buffer.update(ids, {"model": low, "td": low[::-1]})
    for size, least, most in ((10, 3, 3), (16, 4, 5), (1, 0, 1)):
        counts = [np.count_nonzero(buffer.sample(size).ids >= 20) for _ in range(500)]
        assert (min(counts), max(counts)) == (least, most)
        assert np.mean(counts) / size == pytest.approx(0.3, abs=0.07)
    batch = buffer.sample(100)
    second = batch.ids[:, 0] >= 20
    np.testing.assert_allclose(batch.probabilities, np.where(second, 0.3 / 20, 0.7 / 20))
    assert {"drawable", "second_drawable"} <= set(buffer.stats())


def test_mixture_is_ready_when_both_rules_have_something_to_draw():
    rule = Mixture(Adversarial(alpha=1.0, eps=0.0), TemporalDifference(alpha=1.0, eps=0.0), 0.3)
    buffer = ReplayBuffer(40, 1, rule=rule)
    fill(buffer, 40)
    assert buffer.ready
    buffer.sampler.parts[1].tree.set(np.arange(40), np.zeros(40))  # as a changed save may have it
    assert not buffer.ready
    with pytest.raises(ValueError, match="or all priorities are 0; 40 steps are stored"):
        buffer.sample(1)


@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_mixture_of_nothing_and_all(fraction):
    rule = Mixture(
        Adversarial(alpha=1.0, eps=0.0), TemporalDifference(alpha=1.0, eps=0.0), fraction
    )
    buffer = ReplayBuffer(40, 1, rule=rule)
    ids = fill(buffer, 40).ravel()
    low = np.where(ids < 20, 1.0, 1e-100)
    buffer.update(ids, {"model": low, "td": low[::-1]})
    assert ((buffer.sample(200).ids >= 20) == bool(fraction)).all()


def test_environments_may_add_on_their_own():
    buffer = ReplayBuffer(40, 3, num_envs=2)
    one = {name: value[0] for name, value in step(0).items()}
    ids = [int(buffer.add(one | {"number": np.int64(t)}, env=1)) for t in range(3)]
    assert ids == [1, 3, 5]
    assert buffer.sample(1).ids.tolist() == [[1, 3, 5]]
    buffer.add(step(9, 2))
    assert buffer.ids().tolist() == [0, 1, 3, 5, 7]


def test_what_follows_an_end_begins_an_episode():
    buffer = ReplayBuffer(10, 2)
    flags = {"is_first": np.array([False]), "is_terminal": np.array([False])}
    for last in (False, True, False, False):
        buffer.add(flags | {"is_last": np.array([last])})
    assert buffer.read(buffer.ids(), "is_first").tolist() == [True, False, True, False]


def test_python_numbers_and_lists():
    buffer = ReplayBuffer(10, 2)
    for t in range(3):
        buffer.add({"x": [t], "is_first": [int(t == 0)], "is_last": [0], "is_terminal": [False]})
    assert buffer.sample(1)["is_first"].dtype == np.int64
    assert buffer.sample(1)["is_first"][0, 0] == 1


@pytest.mark.parametrize("flag", ["is_first", "is_last", "is_terminal"])
def test_float_flags_are_refused(flag):
    buffer = ReplayBuffer(10, 2)
    with pytest.raises(ValueError, match=rf"'{flag}': a flag is a boolean.*got float32.*astype"):
        buffer.add(step(0) | {flag: np.zeros(1, np.float32)})
    buffer.add(step(0))  # nothing was taken of the first
    assert buffer.ids().tolist() == [0]


def test_a_true_end_that_is_not_the_last_step_is_refused():
    buffer = ReplayBuffer(20, 2, num_envs=2)
    terminal = {"is_terminal": np.array([False, True])}
    for more in ({"is_last": np.array([True, False])}, {}):
        with pytest.raises(
            ValueError, match=r"is_terminal without is_last in environment 1: .*both"
        ):
            buffer.add(step(0, 2) | {"x": np.zeros(2)} | terminal | more)
    one = {name: value[0] for name, value in step(0).items()}
    with pytest.raises(ValueError, match="is_terminal without is_last: "):
        buffer.add(one | {"is_terminal": np.bool_(True)}, env=1)
    buffer.add(step(0, 2) | terminal | {"is_last": np.array([True, True])})  # and without "x"
    assert buffer.ids().tolist() == [0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": np.zeros(2)}, "'reward': expected float32 of shape .*got float64 of shape"),
        ({"number": np.zeros((2, 3), np.int64)}, r"'number': expected int64 .*\[\], got .*\[3\]"),
        ({"number": np.zeros(3, np.int64)}, r"'number': expected the leading axes \[2\].*\[3\]"),
        ({"more": np.zeros(2)}, r"unknown fields \['more'\]"),
        ({"reward": None}, "field 'reward' is missing: expected float32 of shape"),
    ],
)
def test_a_step_of_another_kind_is_refused(change, message):
    buffer = ReplayBuffer(20, 2, num_envs=2)
    fill(buffer, 3)
    wrong = {k: v for k, v in (step(3, 2) | change).items() if v is not None}
    with pytest.raises(ValueError, match=message):
        buffer.add(wrong)
    assert len(buffer) == 6
    fill(buffer, 1, start=3)  # goes on as if nothing had happened
    assert buffer.read(buffer.ids(), "number").tolist() == [0, 1, 2, 3] * 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"is_last": None}, "needs the field 'is_last'"),
        ({"name": np.array(["a"])}, "'name': cannot store <U1"),
        ({"a": {"b/c": np.zeros(1)}}, "'a/b/c': names must not contain '/'"),
        ({"is_first": np.zeros((1, 2), bool)}, "'is_first': expected one flag a step"),
        (
            {"x": np.float64(1)},
            r"'x': expected the leading axes \[1\] .*, got shape \[\]",
        ),
    ],
)
def test_a_first_step_must_be_storable(wrong, message):
    first = {k: v for k, v in (step(0) | wrong).items() if v is not None}
    with pytest.raises(ValueError, match=message):
        ReplayBuffer(20, 2).add(first)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": 100, "length": 64, "num_envs": 2}, "needs capacity 128"),
        ({"capacity": 100, "length": 0}, "length must be at least 1"),
        ({"capacity": 100, "length": 1, "window": "first"}, "length must be at least 2"),
        ({"capacity": 100, "length": 4, "window": "middle"}, '"last" or "first", got .middle'),
        ({"capacity": 100, "length": 4, "num_envs": 0}, "num_envs must be at least 1, got 0"),
    ],
)
def test_wrong_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        ReplayBuffer(**options)


def test_wrong_calls_are_named():
    buffer = ReplayBuffer(20, 4)
    with pytest.raises(ValueError, match=r"nothing to sample yet: .* 0 steps"):
        buffer.sample(2)
    ids = fill(buffer, 10)
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        buffer.sample(0)
    with pytest.raises(ValueError, match=r"reads the signal 'model'; .* are \['td'\]"):
        buffer.update(ids, {"td": np.zeros((10, 1))})
    with pytest.raises(ValueError, match=r"shape of the ids \[10, 1\], got \[10\]"):
        buffer.update(ids, {"model": np.zeros(10)})
    for wrong in ([10], [8, 9, 10]):
        with pytest.raises(ValueError, match="id 10 was never given out"):
            buffer.update(wrong, {"model": np.ones(len(wrong))})
    with pytest.raises(TypeError, match="ids are integers, got float64"):
        buffer.update([1.9], {"model": [1.0]})
    with pytest.raises(ValueError, match="env must be from 0 to 0, got 1"):
        buffer.add(step(0), env=1)
    with pytest.raises(KeyError, match=r"no field 'colour'; there are \['env', 'is_first'"):
        buffer.read(ids, "colour")
    fill(buffer, 20, start=10)
    with pytest.raises(KeyError, match=r"cannot be read: ids \[0, 1"):
        buffer.read(ids, "number")


def test_stats():
    buffer = ReplayBuffer(20, 4, rule=Curious(dialect="dv2"))
    assert buffer.stats()["steps"] == 0
    fill(buffer, 10)
    batch = buffer.sample(1)
    buffer.update(batch.ids, {"model": np.full((1, 4), 7.0)})
    stats = buffer.stats()
    assert stats["steps"] == stats["added"] == 10
    assert stats["sampled"] == 1
    assert stats["updated"] == 4
    assert stats["never_visited"] == 6
    assert stats["visits_max"] == 1
    assert stats["visits_mean"] == pytest.approx(0.4)
    assert stats["drawable"] == 7
    assert stats["priority_max"] == 1e5
    assert stats["model_minimum"] == 7.0
    assert stats["bytes"] > 10 * 8


@pytest.mark.parametrize("directory", [False, True])
def test_one_thread_samples_while_another_adds_and_updates(directory, tmp_path):
    place = tmp_path if directory else None
    buffer = ReplayBuffer(500, 16, num_envs=2, cross_episodes=False, directory=place)
    fill(buffer, 50, size=(64,))
    stop, errors, rounds = threading.Event(), [], 0

    def add_and_update():
        try:
            time = 50
            while not stop.is_set():
                ids = fill(buffer, 1, start=time, size=(64,))
                buffer.update(ids, {"model": np.ones_like(ids, float)})
                time += 1
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=add_and_update)
    thread.start()
    try:
        # Until the ring was filled more than once, however the two take turns.
        while (rounds < 1000 or buffer.stats()["added"] <= 600) and not errors:
            batch = buffer.sample(8)
            numbers = batch["number"]
            assert (numbers == numbers[..., :1]).all()  # no step is half written
            assert (np.diff(numbers[..., 0], axis=1) == 1).all()
            buffer.update(batch.ids, {"model": np.ones((8, 16))})
            rounds += 1
    finally:
        stop.set()
        thread.join()
    assert not errors
    assert buffer.stats()["added"] > 600
