"""What a buffer replays, worked out by hand and against simulated uniform replay."""

import json
import math

import numpy as np
import pytest
from helpers.folders import write_checkpoint, write_run, write_snapshot

from curious_replay.analysis import load, replay_probe, snapshots, stored
from curious_replay.analysis.snapshots import Snapshot
from curious_replay.replay import Curious, Mixture, ReplayBuffer, Uniform


def test_relative_priorities_have_mean_one():
    assert replay_probe.relative([1, 3, 0]).tolist() == [0.5, 1.5, 0]
    assert replay_probe.relative([0.125, 0.375]).tolist() == [0.5, 1.5]
    assert replay_probe.relative([0, 0]).tolist() == [0, 0]
    assert replay_probe.relative([]).tolist() == []


def test_profile_across_the_buffer():
    chance = replay_probe.relative([1, 1, 2, 4])
    found = replay_probe.profile([0, 1, 2, 9], chance, [8, 6, 4, 0], bins=3)
    assert found.position.tolist() == pytest.approx([1.5, 7.5])  # of 0 to 3 and 6 to 9
    assert found.chance.tolist() == pytest.approx([2 / 3, 2])
    assert found.visits.tolist() == [6, 0]
    assert found.count.tolist() == [3, 1]
    assert replay_probe.profile([], [], []).count.tolist() == []
    assert replay_probe.profile([5, 5], [1, 1], [1, 3], bins=4).visits.tolist() == [2]


def test_by_phase():
    found = replay_probe.by_phase([0, 0, 2], replay_probe.relative([1, 1, 4]), [5, 7, 1])
    assert found.position.tolist() == [0, 2]
    assert found.chance.tolist() == [0.5, 2]
    assert found.visits.tolist() == [6, 1]


def test_segments_and_share_of_draws():
    parts = replay_probe.segments([0, 99, 100, 150, 200], [100, 200])
    assert parts.tolist() == [0, 0, 1, 1, 2]
    assert replay_probe.share_of_draws([1, 1, 6], [False, True, True]) == 0.875
    assert math.isnan(replay_probe.share_of_draws([0], [True]))


def test_share_of_visits_between_snapshots():
    nothing = (np.zeros((1, 3)), np.zeros(1), 0)
    earlier = Snapshot(1, 1, np.array([0, 1, 2]), np.array([9, 5, 5]), *nothing)
    later = Snapshot(2, 2, np.array([1, 2, 3]), np.array([5, 6, 3]), *nothing)
    # Step 0 is gone; step 2 was visited once more, step 3 three times.
    assert replay_probe.share_of_visits(earlier, later, 3) == 0.75
    assert replay_probe.share_of_visits(earlier, later, 2) == 1
    assert math.isnan(replay_probe.share_of_visits(later, later, 0))


def test_uniform_visits_by_hand():
    # With 3 steps: after the first, all goes to it; then halves; then thirds.
    found = replay_probe.uniform_visits([0, 1, 2], 3, 3)
    assert found.tolist() == pytest.approx([1 + 1 / 2 + 1 / 3, 1 / 2 + 1 / 3, 1 / 3])
    late = replay_probe.uniform_visits([0, 1, 2], 3, 3, first=3)
    assert late.tolist() == [1, 1, 1]
    assert replay_probe.uniform_visits([], 0, 0).tolist() == []


def test_uniform_visits_against_a_simulation():
    rng = np.random.default_rng(0)
    now, capacity = 60, 40
    visits = np.zeros(now)
    for stored_steps in range(5, now + 1):
        oldest = max(0, stored_steps - capacity)
        drawn = rng.integers(oldest, stored_steps, size=2000)
        visits += np.bincount(drawn, minlength=now)
    there = np.arange(now - capacity, now)
    found = replay_probe.uniform_visits(there, now, visits[there].sum(), first=5, capacity=capacity)
    np.testing.assert_allclose(found, visits[there], rtol=0.1)


def test_the_priorities_of_a_saved_buffer_can_be_taken_apart(tmp_path):
    folder = write_run(tmp_path / "a")
    write_checkpoint(folder, {"log_phase": np.zeros((20, 1), int)}, updates=9)
    buffer = stored.newest(load.load_run(folder)).buffer
    count, surprise = buffer.terms().values()
    known = buffer.visits > 0
    assert known.any()
    np.testing.assert_allclose(surprise[known], 1.01**0.7, rtol=1e-6)
    assert (count[~known] == 1e5).all()


def test_snapshots_of_a_run(tmp_path):
    folder = write_run(tmp_path / "a")
    run = load.load_run(folder)
    assert snapshots.snapshots(run) == []
    assert snapshots.newest(run) is snapshots.first_from(run, 0) is None
    for step in (2000, 1000):
        write_snapshot(folder, step, visits=[1], priorities=[[2.0]], ids=[step])
    (folder / "snapshots" / "000003000.npz").write_bytes(b"torn")
    (folder / "snapshots" / "note.npz").write_bytes(b"")
    found = snapshots.snapshots(run)
    assert [(s.step, s.frame, s.ids.tolist()) for s in found] == [
        (1000, 2000, [1000]),
        (2000, 4000, [2000]),
    ]
    assert snapshots.newest(run).step == snapshots.first_from(run, 1001).step == 2000
    assert snapshots.first_from(run, 1000).step == 1000
    assert snapshots.first_from(run, 2001) is None
    assert snapshots.first_from(run, math.nan) is None


def test_the_chance_of_a_snapshot_is_that_of_the_whole_buffer(tmp_path):
    # Six steps can be drawn, Σp is 12 and 3 under the two rules; a quarter is drawn by the second.
    folder = write_run(tmp_path / "a")
    write_snapshot(folder, 9, ids=[0, 5, 10, 15], visits=[1, 2, 3, 4], num_envs=5, drawable=6,
                   priorities=[[4.0, 2.0, 1.0, 0.0], [0.5, 1.0, 0.5, 0.0]], totals=[12.0, 3.0],
                   fraction=0.25)  # fmt: skip
    found = snapshots.newest(load.load_run(folder))
    assert found.chance.tolist() == [1.75, 1.25, 0.625, 0]  # 3/4 of p/2 and 1/4 of 2p
    assert found.time.tolist() == [0, 1, 2, 3]
    assert found.age.tolist() == [3, 2, 1, 0]


def test_what_a_run_writes_is_what_is_read(tmp_path):
    from curious_replay.run.record import snapshots as written  # noqa: PLC0415

    rule = Mixture(Curious(), Uniform(), 0.25)
    buffer = ReplayBuffer(100, 2, rule=rule, seed=0)
    for t in range(30):
        flag = np.array([t == 0])
        when = {"log_frame": np.array([2 * t]), "log_phase": np.array([t >= 20], np.int32)}
        buffer.add({"is_first": flag, "is_last": flag & False, "is_terminal": flag & False,
                    "log_n": np.array([t]), **when})  # fmt: skip
    for _ in range(10):
        batch = buffer.sample(1)
        buffer.update(batch.ids, {"model": np.full(batch.ids.shape, 7.0)})
    folder = write_run(tmp_path / "a")
    counters = {"frame": 60, "step": 30, "update": 10}
    written.write(folder, written.take(buffer, ["a", "b"], counters, 30))
    buffer.save(folder / "checkpoints" / "000001-step-30" / "replay")
    state = json.dumps({"counters": counters})
    (folder / "checkpoints" / "000001-step-30" / "state.json").write_text(state)
    run = load.load_run(folder)
    found = snapshots.newest(run)
    assert found.logs["log_n"].tolist() == found.time.tolist() == list(range(30))
    assert (
        found.logs["log_frame"].tolist() == stored.newest(run).frame.tolist() == [*range(0, 60, 2)]
    )
    assert found.phases[found.phase].tolist() == ["a"] * 20 + ["b"] * 10
    assert found.visits.sum() == 20
    assert found.chance[1:].mean() == pytest.approx(1)
    assert found.chance[0] == 0
    np.testing.assert_allclose(found.chance, stored.newest(run).chance)
