"""Phases by stored step, the share of replay that is new, snapshots, and the cleared buffer."""

import io
import json

import numpy as np
import pytest
from helpers.runs import Killed, config, kill_at_update, lines, run
from rich.console import Console

from curious_replay.analysis import snapshots as history
from curious_replay.analysis.load import load_run
from curious_replay.replay import ReplayBuffer, SavedBuffer
from curious_replay.run import train
from curious_replay.run.loop.changes import Changes
from curious_replay.run.record import snapshots
from curious_replay.run.record.checkpoint import Checkpoints
from curious_replay.run.record.files import read_lines
from curious_replay.run.worlds.transition import EpisodeStats, Transition

SCHEDULE = ((0, "empty"), (40, "object"), (80, "empty"))


def changing(**groups):
    """Two rooms that change at frames 40 and 80, logged and saved often."""
    env = {"schedule": SCHEDULE, "length": 11, **groups.pop("env", {})}
    train = {"steps": 120, "log_every": 10, "save_every": 30, **groups.pop("train", {})}
    record = {"snapshot_every": 20, **groups.pop("record", {})}
    rule = groups.pop("rule", "curious")
    return config("toy/two-rooms", rule, env=env, train=train, record=record, **groups)


def newest(folder):
    (name, *_) = sorted((folder / "checkpoints").iterdir(), reverse=True)
    return SavedBuffer(name / "replay")


def test_the_share_that_is_newer_than_the_last_change():
    changes = Changes(2)
    assert changes.see(["a", "a"]) == 0
    changes.replayed(np.array([[0, 1]]))
    assert changes.take_share() == {}  # nothing has changed yet
    assert changes.see(["b", "a"]) == 0  # not all of them
    assert changes.see(["b", "c"]) == 1
    # Ids are 2 time + environment: new are 2 and 4 of the first, 5 of the second.
    changes.replayed(np.array([[0, 2, 4], [1, 3, 5]]))
    assert changes.take_share() == {"replay/share_after_change": 0.5}
    assert changes.take_share() == {}  # nothing was replayed since
    assert changes.see(["b", "c"]) == 0
    assert changes.see(["a", "a"]) == 2


def test_what_changes_remember_outlives_a_save():
    changes, other = Changes(1), Changes(1)
    for phase in "aab":
        changes.see([phase])
    changes.replayed(np.array([1, 2]))
    other.set_state(json.loads(json.dumps(changes.get_state())))
    for each in (changes, other):
        each.see(["c"])
        each.replayed(np.array([3, 3]))
    assert other.take_share() == changes.take_share() == {"replay/share_after_change": 0.75}


def test_a_run_records_its_schedule_and_the_share_of_new_steps(tmp_path):
    run(changing(), tmp_path)
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert meta["schedule"] == [list(change) for change in SCHEDULE]
    share = {m["frame"]: m.get("replay/share_after_change") for m in lines_of(tmp_path)}
    assert {share[frame] for frame in (10, 20, 30, 40)} == {None}
    assert 0 < share[60] <= 1
    assert 0 <= share[90] < share[80]  # the second change makes all that was new old
    assert 0 < share[120] <= 1


def lines_of(folder):
    return read_lines(folder / "metrics.jsonl")


def test_a_world_without_phases_has_no_share_and_an_empty_schedule(tmp_path):
    run(config(train={"steps": 60}), tmp_path)
    assert not any("replay/share_after_change" in line for line in lines_of(tmp_path))
    assert json.loads((tmp_path / "meta.json").read_text())["schedule"] == []


@pytest.mark.parametrize("rule", ["curious", "td+adversarial"])
def test_a_snapshot_tells_what_the_buffer_held(rule, tmp_path):
    run(changing(rule=rule), tmp_path)
    names = [path.name for path in sorted((tmp_path / "snapshots").iterdir())]
    assert names == [f"{step:09d}.npz" for step in range(20, 121, 20)]
    with np.load(tmp_path / "snapshots" / names[-1]) as file:
        found = dict(file)
    buffer = newest(tmp_path)  # of the end, as the snapshot
    assert (found["step"], found["frame"], found["num_envs"]) == (120, 120, 1)
    np.testing.assert_array_equal(found["ids"], buffer.ids)
    np.testing.assert_array_equal(found["visits"], buffer.visits)
    np.testing.assert_array_equal(found["log_contacts"], buffer.field("log_contacts"))
    expected = np.where(buffer.drawable, buffer.priorities, 0)
    np.testing.assert_array_equal(found["priorities"][0], expected)
    assert len(found["priorities"]) == (2 if rule == "td+adversarial" else 1)
    assert found["fraction"] == (0.5 if rule == "td+adversarial" else 0)
    np.testing.assert_allclose(found["totals"], found["priorities"].sum(1))
    assert found["drawable"] == np.count_nonzero(expected)
    assert (found["stored"], found["visits_total"]) == (len(buffer), buffer.visits.sum())
    # The object is to be seen from frame 40 to 80 only: eight of eleven steps of an episode pass.
    phases = found["phases"][found["phase"]]
    assert set(phases) == {"empty", "object"}
    seen = np.flatnonzero(phases == "object")
    assert len(seen) == seen[-1] - seen[0] + 1
    assert not found["log_object_pixels"][phases == "empty"].any()


def test_a_snapshot_keeps_no_more_than_asked_for_and_the_sums_of_all(tmp_path):
    run(changing(record={"snapshot_steps": 7}), tmp_path)
    with np.load(tmp_path / "snapshots" / "000000120.npz") as file:
        found = dict(file)
    buffer = newest(tmp_path)
    assert (
        found["ids"].tolist() == buffer.ids[np.linspace(0, len(buffer) - 1, 7).astype(int)].tolist()
    )
    assert found["stored"] == len(buffer) > 7
    assert found["totals"][0] == pytest.approx(buffer.priorities[buffer.drawable].sum())


def test_an_empty_buffer_has_a_snapshot_too(tmp_path):
    buffer = ReplayBuffer(100, 4)
    counters = {"frame": 0, "step": 0, "update": 0}
    path = snapshots.write(tmp_path, snapshots.take(buffer, [], counters, 10))
    with np.load(path) as file:
        assert file["ids"].shape == (0,)
        assert file["priorities"].shape == (1, 0)


@pytest.mark.parametrize("rule", ["curious", "balanced", "adversarial"])
def test_a_snapshot_tells_how_much_is_drawn_by_count(tmp_path, rule):
    run(changing(rule=rule, record={"snapshot_every": 120}), tmp_path)
    (seen,) = history.snapshots(load_run(tmp_path))
    share = lines_of(tmp_path)[-1]["replay/novelty_share"]
    assert seen.chance_by_count.sum() / seen.chance.sum() == pytest.approx(share)


@pytest.mark.parametrize("number", [1, 2])
def test_the_buffer_is_cleared_when_the_world_changes(number, tmp_path):
    settings = changing(replay={"clear_at_change": number}, train={"log_every": 1})
    train(settings, tmp_path, console=Console(file=(said := io.StringIO()), width=200))
    frame = SCHEDULE[number][0]
    steps = {line["frame"]: line["replay/steps"] for line in lines_of(tmp_path)}
    assert steps[frame] > 30
    assert steps[frame + 1] == 1  # the first step in which the new phase is to be seen
    shares = {m["frame"]: m.get("replay/share_after_change") for m in lines_of(tmp_path)}
    after = [s for f, s in shares.items() if frame < f <= frame + 40 and s is not None]
    assert set(after) == {1.0}
    assert "nothing is learned" not in said.getvalue()
    # Not one update is lost or doubled, and none is told about a step that is gone.
    whole = tmp_path / "whole"
    run(changing(), whole)
    assert lines_of(tmp_path)[-1]["update"] == lines_of(whole)[-1]["update"]
    assert lines_of(tmp_path)[-1]["replay/stale"] == 0


def test_clearing_at_a_change_that_never_comes_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"--replay.clear-at-change must be at most 2.*got 3"):
        run(changing(replay={"clear_at_change": 3}), tmp_path / "a")
    with pytest.raises(ValueError, match=r"at most 0.*toy/count changes, got 1"):
        run(config(replay={"clear_at_change": 1}), tmp_path / "b")


@pytest.mark.parametrize("num_envs", [1, 3])
def test_a_changing_run_resumes_exactly_with_snapshots_and_a_cleared_buffer(
    num_envs, tmp_path, monkeypatch
):
    settings = changing(env={"num_envs": num_envs}, replay={"clear_at_change": 1})
    run(settings, tmp_path / "whole")
    assert len(lines(tmp_path / "whole")) > 6  # snapshots are compared as well
    for number in (9, 22, 31):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            kill_at_update(patch, number)
            run(settings, tmp_path / f"killed-{number}")
        assert run(settings, tmp_path / f"killed-{number}", resume=True).finished
        assert lines(tmp_path / f"killed-{number}") == lines(tmp_path / "whole")


def test_snapshots_after_the_checkpoint_are_taken_back(tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at_update(patch, 35)
        run(changing(), tmp_path)
    (tmp_path / "snapshots" / ".part-000000040.npz").write_bytes(b"half")
    step = Checkpoints(tmp_path / "checkpoints").resume(None, None, print)[0].step
    assert any(int(p.stem) > step for p in (tmp_path / "snapshots").glob("[0-9]*"))
    run(changing(record={"snapshot_every": 0}), tmp_path, resume=True)
    left = [path.name for path in (tmp_path / "snapshots").iterdir()]
    assert left
    assert all(int(name.split(".")[0]) <= step for name in left)


def test_sums_of_counts_are_whole_and_a_phase_has_none():
    kinds = {"log_contacts": np.int32, "log_reward": np.float32, "log_phase": np.int64}
    stats = EpisodeStats(2, {name: np.zeros((), kind) for name, kind in kinds.items()})
    nothing = np.zeros(2, bool)
    logs = {"log_contacts": np.array([1, 2]), "log_reward": np.array([0.5, 0.0]),
            "log_phase": np.array([1, 1])}  # fmt: skip
    shown = Transition({}, np.ones(2), nothing, ~nothing, nothing, logs, ["a", "b"], {}, nothing)
    stats.add(shown)
    assert json.dumps(stats.close(0, shown)) == json.dumps(
        {"env": 0, "phase": "a", "return": 1.0, "length": 1, "log/contacts": 1, "log/reward": 0.5}
    )
    expected = {"env/reward": 2.0, "log/contacts": 3, "log/reward": 0.5}
    assert json.dumps(stats.take_interval()) == json.dumps(expected)
    nothing_yet = {"env/reward": 0.0, "log/contacts": 0, "log/reward": 0.0}
    assert json.dumps(stats.take_interval()) == json.dumps(nothing_yet)


def test_an_own_environment_may_have_phases_without_telling_when(tmp_path):
    settings = config("own_envs:Phases", replay={"clear_at_change": 1}, train={"steps": 60})
    run(settings, tmp_path)
    assert json.loads((tmp_path / "meta.json").read_text())["schedule"] is None
    assert lines_of(tmp_path)[-1]["replay/steps"] < 50
