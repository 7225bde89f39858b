"""What experiments measure, on run folders whose answers were worked by hand."""

import math

import numpy as np
import pytest
from helpers.folders import counters, write_run, write_snapshot

from curious_replay.analysis import crafter, load
from curious_replay.experiments import catalogue

CHANGE = {"schedule": [[0, "empty"], [100, "ball"]]}
NOTHING = [math.nan]


def measured(name, *folders, at=0):
    """Values of a measure of an experiment on some runs; NaN where there is no result."""
    return catalogue.find(name).measures[at].values([load.load_run(each) for each in folders])


def contacts(folder, *frames, meta=CHANGE):
    """A run with three contacts in each interval of 10 frames that ends at one of `frames`."""
    rows = [{**counters(t), "log/contacts": 3 * (t in frames)} for t in range(10, 210, 10)]
    return write_run(folder, metrics=rows, meta=meta, steps=200)


def test_frames_to_the_fifth_contact(tmp_path):
    early = contacts(tmp_path / "a", 50, 60, 120, 170)  # those before the ball do not count
    never = contacts(tmp_path / "b", 120)
    for name in ("object-interaction", "object-interaction-ablations", "td-adversarial",
                 "assay-hyperparameters", "cleared-buffer"):  # fmt: skip
        assert measured(name, early) == [70]
    np.testing.assert_array_equal(measured("object-interaction", early, never), [70, np.nan])
    np.testing.assert_array_equal(measured("object-interaction", early, at=1), NOTHING)
    unchanging = contacts(tmp_path / "c", 50, 60, meta={"schedule": [[0, "ball"]]})
    assert measured("object-interaction-unchanging", unchanging) == [60]


def probes(folder, errors, schedule):
    rows = [
        {**counters(t), "scene": 1, "ahead": 1, "mse": 9.0, "mse_object": error}
        for t, error in errors.items()
    ]
    metrics = [counters(400)]
    return write_run(folder, probes=rows, metrics=metrics, meta={"schedule": schedule})


def test_model_error_since_the_object_appeared(tmp_path):
    run = probes(tmp_path / "a", {100: 9, 200: 2, 400: 1}, CHANGE["schedule"])
    assert measured("object-interaction", run, at=3) == [1.5]


def test_forgetting_is_the_error_at_the_end_by_that_before_removal(tmp_path):
    removed = [*CHANGE["schedule"], [200, "empty"]]
    # 400 frames: the windows are 20 frames long.
    run = probes(tmp_path / "a", {150: 7, 190: 2, 300: 9, 390: 3}, removed)
    assert measured("forgetting", run) == [1.5]
    stays = probes(tmp_path / "b", {150: 7, 190: 2, 300: 9, 390: 3}, CHANGE["schedule"])
    np.testing.assert_array_equal(measured("forgetting", stays), NOTHING)


def returning(folder, values, schedule=CHANGE["schedule"]):
    rows = [
        {**counters(t), "mode": "train", "return": value, "length": 1}
        for t, value in values.items()
    ]
    return write_run(folder, episodes=rows, meta={"schedule": schedule})


def test_returns_are_taken_at_multiples_of_the_change(tmp_path):
    values = {10: 1, 95: 2, 98: 4, 139: 50, 141: 6, 150: 8, 151: 99, 200: 7}
    run = returning(tmp_path / "a", values)
    assert measured("constrained-control", run) == [7]  # frames 141 to 150
    since = measured("constrained-control", run, at=1)
    assert since == [pytest.approx((50 + 6 + 8 + 99 + 7) / 5)]
    early = returning(tmp_path / "b", {10: 1})
    np.testing.assert_array_equal(measured("constrained-control", early), NOTHING)


def test_returns_of_the_background_swap(tmp_path):
    schedule = [[0, "A"], [100, "B"], [200, "A"]]
    values = {3: 1, 6: 9, 94: 9, 97: 2, 99: 4, 100: 9, 150: 20, 200: 40, 203: 5, 205: 7, 206: 9}
    run = returning(tmp_path / "a", values, schedule)
    assert measured("background-swap", run) == [6]
    assert measured("background-swap", run, at=1) == [3]
    assert measured("background-swap", run, at=2) == [1]
    assert measured("background-swap", run, at=3) == [30]


@pytest.mark.parametrize("name", ["control-suite", "random-background"])
def test_the_return_at_the_end_is_that_of_the_last_twentieth(tmp_path, name):
    run = returning(tmp_path / "a", {100: 1, 190: 2, 191: 3, 200: 5}, [[0, "only"]])
    assert measured(name, run) == [4]
    nothing = write_run(tmp_path / "b", metrics=[counters(10)])
    np.testing.assert_array_equal(measured(name, nothing), NOTHING)


def games(folder, *unlocked, length=1000, seed=0):
    """A run on Crafter whose episodes unlock the achievements given by name."""
    rows = [
        {
            **counters((i + 1) * length),
            "mode": "train",
            "return": 1.0,
            "length": length,
            **{f"achievement/{name}": int(name in names) for name in crafter.SPECTRUM},
        }
        for i, names in enumerate(unlocked)
    ]
    return write_run(folder, episodes=rows, env="crafter", seed=seed)


def test_crafter_scores(tmp_path):
    half = games(tmp_path / "a", {"collect_iron"}, set())
    nothing = games(tmp_path / "b", set())
    score = math.exp(math.log(51) / 22) - 1
    for name in ("crafter", "crafter-ablations", "crafter-hyperparameters", "train-frequency",
                 "crafter-unsupervised"):  # fmt: skip
        assert measured(name, half, nothing) == [pytest.approx(score), 0]
    assert measured("crafter", half, nothing, at=2) == [50, 0]  # collect_iron
    assert measured("crafter", half, nothing, at=1) == [0, 0]
    none = write_run(tmp_path / "c", metrics=[counters(10)], env="crafter")
    np.testing.assert_array_equal(measured("crafter", none), NOTHING)


def test_crafter_progress_is_one_number_for_all_runs(tmp_path):
    late = games(tmp_path / "a", set(), {"collect_stone"}, set())
    never = games(tmp_path / "b", set(), set(), set(), seed=1)
    assert measured("crafter-progress", late, never) == [2000]
    np.testing.assert_array_equal(measured("crafter-progress", never), NOTHING)
    np.testing.assert_array_equal(measured("crafter-progress", late, at=2), NOTHING)


def holding(folder, *, priorities, visits, item="wood_pickaxe"):
    """A snapshot of four steps, of which the last holds an item."""
    inventory = np.zeros((4, len(crafter.ITEMS)), int)
    inventory[3, crafter.ITEMS.index(item)] = 1
    write_snapshot(
        folder, 2000, ids=range(4), visits=visits, priorities=[priorities], log_inventory=inventory
    )


def test_crafter_sampling_and_training_of_what_holds_a_resource(tmp_path):
    found = games(tmp_path / "a", {"make_wood_pickaxe"}, set())
    holding(found, priorities=[1.0, 1, 1, 5], visits=[3, 3, 3, 3])
    without = games(tmp_path / "b", {"make_wood_pickaxe"}, set(), seed=1)
    np.testing.assert_array_equal(
        measured("crafter-sampling", found, without), [5 * 4 / 8, np.nan]
    )  # p N / Σp
    np.testing.assert_array_equal(measured("crafter-sampling", found, at=3), NOTHING)  # iron
    (trained,) = measured("crafter-training-count", found)
    holding(without, priorities=[1.0, 1, 1, 1], visits=[2, 2, 2, 6])
    (more,) = measured("crafter-training-count", without)
    assert more == pytest.approx(2 * trained)  # twice the visits, of as many in all
    np.testing.assert_array_equal(measured("crafter-training-count", found, at=3), NOTHING)


def mirrored(folder, lengths, change=100):
    """Episodes of these lengths after the change, all of which reach the goal."""
    ends = change + np.cumsum(lengths)
    rows = [
        {**counters(int(end)), "mode": "train", "return": 1.0, "length": int(length)}
        for end, length in zip(ends, lengths, strict=True)
    ]
    return write_run(folder, episodes=rows, meta={"schedule": [[0, "straight"], [100, "mirrored"]]})


def test_steps_until_the_toy_is_solved_again(tmp_path):
    soon = mirrored(tmp_path / "a", [10] * 5 + [7] * 30)
    # Of the last 20 episodes, 10 may take 9 steps if 10 take 7.
    slower = mirrored(tmp_path / "b", [9] * 20 + [7] * 30)
    never = mirrored(tmp_path / "c", [9] * 30)
    short = mirrored(tmp_path / "d", [5] * 19)
    found = measured("toy-mirror", soon, slower, never, short)
    # After 5 of 10 and 15 of 7 the mean is 155 / 20 = 7.75; at 10 and 10 it is 8.
    np.testing.assert_array_equal(found, [155, 20 * 9 + 10 * 7, np.nan, np.nan])
    before = mirrored(tmp_path / "e", [5] * 30, change=0)  # 20 of them end before the change
    np.testing.assert_array_equal(measured("toy-mirror", before), NOTHING)
