"""Interaction, model error and returns, on arrays and folders whose answers were worked by hand."""

import math

import numpy as np
import pytest
from helpers.folders import counters, write_checkpoint, write_run

from curious_replay.analysis import interaction, load, model_error, returns, stored

FRAMES = [20, 40, 60, 80, 100, 120]
CONTACTS = [3, 0, 2, 4, np.nan, 9]


def test_frames_to_the_nth_interaction():
    # After frame 40: 2 at 60, 6 at 80, 6 at 100, 15 at 120.
    def nth(n, **options):
        return interaction.frames_to_nth(FRAMES, CONTACTS, n, start=40, **options)

    assert nth(1) == 20
    assert nth(5) == 40
    assert nth(6) == 40
    assert nth(7) == 80
    assert math.isnan(nth(16))
    assert nth(16, otherwise=80) == 80
    assert interaction.frames_to_nth(FRAMES, CONTACTS, 5) == 60
    assert math.isnan(interaction.frames_to_nth([], [], 5))


def test_cumulative_interactions():
    frames, total = interaction.cumulative(FRAMES, CONTACTS, start=40, stop=100)
    assert frames.tolist() == [20, 40, 60]
    assert total.tolist() == [2, 6, 6]


def test_frames_as_seconds():
    assert interaction.seconds([0, 100]).tolist() == [0, 3]
    assert interaction.seconds(50_000) == pytest.approx(1500)


def test_trajectory():
    places = np.arange(12).reshape(4, 3)
    found = interaction.trajectory([10, 20, 30, 40], places, start=10, length=20)
    assert found.tolist() == [[3, 4], [6, 7]]


def test_pixels_in_the_buffer():
    assert interaction.pixels_in_buffer([0, 5, 1, 2], 10).tolist() == [0, 5, 6, 8]
    assert interaction.pixels_in_buffer([0, 5, 1, 2], 2).tolist() == [0, 5, 6, 3]
    assert interaction.pixels_in_buffer([], 2).tolist() == []


def test_pixels_by_interval():
    steps, pixels = [10, 20, 30, 40], [0, 20, 40, 10]
    assert interaction.pixels_by_interval(steps, pixels).tolist() == [0, 20, 60, 70]
    # A buffer of 15 steps: at step 30, half of what came in steps 10 to 20 is gone.
    assert interaction.pixels_by_interval(steps, pixels, 15).tolist() == [0, 20, 50, 30]
    assert interaction.pixels_by_interval(steps, pixels, cleared=20).tolist() == [0, 20, 40, 50]
    assert interaction.pixels_by_interval([], []).tolist() == []


def assay(tmp_path, capacity=1000):
    metrics = [{**counters(10 * i, 2), "log/contacts": 2 * i} for i in range(3)]
    folder = write_run(tmp_path / "a", metrics=metrics, env_settings={"action_repeat": 2})
    fields = {
        "log_contacts": np.arange(20)[:, None] // 9,
        "log_agent_position": np.zeros((20, 1, 3)),
        "log_magenta_pixels": np.ones((20, 1), int),
    }
    write_checkpoint(folder, fields, repeat=2, capacity=capacity)
    run = load.load_run(folder)
    return run, stored.newest(run)


def test_counts_of_a_run_are_as_fine_as_they_can_be(tmp_path):
    run, steps = assay(tmp_path)
    frames, counts = interaction.counts_of(run)
    assert (frames.tolist(), counts.tolist()) == ([0, 20, 40], [0, 2, 4])
    frames, counts = interaction.counts_of(run, stored=steps)
    assert frames.tolist() == list(range(0, 40, 2))
    assert counts.tolist() == [0] * 9 + [1] * 9 + [2] * 2
    assert interaction.frames_to_nth(frames, counts, 5, start=10) == 16  # the fifth is at frame 26
    assert interaction.counts_of(run, "interactions", steps)[0].tolist() == []
    assert interaction.object_name(steps) == "magenta"
    assert interaction.position_of(steps, "agent").shape == (20, 3)
    assert interaction.position_of(steps, "magenta") is None


def test_counts_of_a_run_that_dropped_steps_come_from_its_intervals(tmp_path):
    run, steps = assay(tmp_path, capacity=8)
    assert interaction.counts_of(run, stored=steps)[0].tolist() == [0, 20, 40]


def test_model_error_gives_scenes_the_same_weight():
    # Frame 10: scene 1 has errors 1 and 3, scene 2 has 8: (2 + 8) / 2. Frame 20: scene 1 alone.
    frames, errors = model_error.error_over_time(
        [10, 10, 10, 20, 20], [1, 1, 2, 1, 2], [1, 3, 8, 4, np.nan]
    )
    assert frames.tolist() == [10, 20]
    assert errors.tolist() == [5, 4]
    assert model_error.error_over_time([], [], [])[0].tolist() == []


def test_forgetting_and_its_control():
    frames = np.arange(10, 110, 10)  # the object goes at 50
    kept = [9, 9, 2, 2, 2, 2, 3, 2, 3, 3]
    lost = [9, 9, 2, 2, 2, 8, 8, 9, 6, 6]
    found = model_error.forgetting(frames, kept, 50, 30)
    assert (found.before, found.after, found.worst) == (2, pytest.approx(8 / 3), 3)
    assert found.ratio == pytest.approx(4 / 3)
    control = model_error.forgetting(frames, lost, 50, 30)
    assert (control.before, control.after, control.worst) == (2, 7, 9)
    assert model_error.share_of_control(found, control) == pytest.approx((2 / 3) / 5)
    early = model_error.forgetting(frames, lost, 50, 30, stop=70)
    assert early.after == 8  # of 60 and 70: what came before the removal does not count
    nothing = model_error.forgetting([], [], 50, 30)
    assert math.isnan(nothing.before)
    assert math.isnan(nothing.ratio)
    assert math.isnan(model_error.share_of_control(found, nothing))


def test_probes_of_a_run(tmp_path):
    probes = [
        {**counters(t), "scene": scene, "ahead": ahead, "mse": 1, "mse_object": t * ahead}
        for t in (1, 2)
        for scene in (1, 8)
        for ahead in (1, 2, 3)
    ]
    run = load.load_run(write_run(tmp_path / "a", probes=probes))
    frames, errors = model_error.errors_of(run)
    assert (frames.tolist(), errors.tolist()) == ([1, 2], [2, 4])
    assert model_error.errors_of(run, ahead=(2, 3))[1].tolist() == [2.5, 5]
    assert model_error.errors_of(load.load_run(write_run(tmp_path / "b")))[0].tolist() == []


def test_curve_is_the_mean_of_a_window():
    found = returns.curve([10, 20, 30, 60], [1, 3, np.nan, 8], [5, 20, 30, 40, 60], window=15)
    np.testing.assert_array_equal(found, [np.nan, 2, 3, np.nan, 8])
    assert returns.value_at([10, 20, 30], [1, 2, 6], 30, window=20) == 4
    assert math.isnan(returns.value_at([], [], 30))


def test_band_of_runs_of_unequal_length():
    found = returns.band([0, 1, 2], [[1, 2, np.nan], [3, np.nan, np.nan]])
    np.testing.assert_array_equal(found.mean, [2, 2, np.nan])
    np.testing.assert_array_equal(found.sem, [1, np.nan, np.nan])  # sd sqrt(2) over sqrt(2)
    assert found.n.tolist() == [2, 1, 0]


def test_the_papers_control_suite_table():
    # Table 11, DreamerV3 with Curious Replay; Table 3 quotes mean 734.8 and median 815.1.
    values = [
        172.9, 996.4, 1000.0, 858.5, 346.3, 852.7, 969.5, 557.9, 906.3, 777.6, 385.1, 936.7, 566.4,
        431.1, 750.8, 956.5, 518.8, 772.8, 978.5, 961.7,
    ]  # fmt: skip
    table = {f"task {i}": [v - 1, v + 1, np.nan] for i, v in enumerate(values)}
    mean, median = returns.mean_and_median(table)
    assert mean == pytest.approx(734.8, abs=0.05)
    assert median == pytest.approx(815.1, abs=0.06)
    assert returns.mean_and_median({"a": [1], "b": [np.nan]}) == (1, 1)
    assert np.isnan(returns.mean_and_median({})).all()


ENDS = np.arange(10, 210, 10)  # an episode every 10 frames; the change is at 100, undone at 160
SCORES = [0, 2, 4, 6, 8, 10, 10, 10, 10, 10, 1, 3, 5, 9, 10, 10, 9, 10, 10, 10]


def test_adaptation_after_a_swap():
    found = returns.adaptation(ENDS, SCORES, 100, 20, stop=160)
    assert found.before == 10
    assert found.after == 2  # episodes that end at 110 and 120
    assert found.average == pytest.approx((1 + 3 + 5 + 9 + 10 + 10) / 6)
    assert found.frames_to_recover == 50  # at 150: (9 + 10) / 2 is the first mean of at least 9
    never = returns.adaptation(ENDS, SCORES, 100, 20, stop=130)
    assert math.isnan(never.frames_to_recover)
    assert math.isnan(returns.adaptation(ENDS, SCORES, 300, 20).average)


def test_retention_after_it_is_undone():
    assert returns.retention(ENDS, SCORES, 100, 160, 20) == (10, 9.5)


def test_returns_of_a_run_are_those_of_training(tmp_path):
    episodes = [
        {**counters(i), "mode": mode, "return": i} for i, mode in enumerate(["train", "eval"] * 2)
    ]
    run = load.load_run(write_run(tmp_path / "a", episodes=episodes))
    assert returns.returns_of(run)[1].tolist() == [0, 2]
    assert returns.returns_of(run, "eval")[0].tolist() == [1, 3]


def test_solved_when_a_row_of_quick_episodes_reaches_the_goal():
    def solved(lengths, values, begin=0, **options):
        return returns.steps_to_solve(np.cumsum(lengths), lengths, values, begin, **options)

    options = {"streak": 3, "within": 4.0}
    assert solved([9, 4, 4, 4, 4], [1, 1, 1, 1, 1], **options) == 21
    assert solved([4, 4, 4, 4, 4], [1, 0, 1, 1, 1], **options) == 20  # one failed
    assert math.isnan(solved([4, 4, 5], [1, 1, 1], **options))
    assert math.isnan(solved([4, 4], [1, 1], **options))
    # The episode that began before frame 6 does not count: 4 to 8.
    assert solved([4, 4, 4, 4, 4], [1] * 5, 6, **options) == 20 - 6
    assert math.isnan(solved([4, 4, 4, 4], [1] * 4, 6, **options))


def test_mean_error_since_a_change():
    assert model_error.mean_since([10, 20, 30], [9.0, 2.0, 4.0], 10) == 3
    assert math.isnan(model_error.mean_since([10], [9.0], 10))
