"""Run folders become arrays, whatever state a run was left in."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.folders import counters, write_checkpoint, write_run

from curious_replay.analysis import interaction, load, stored
from curious_replay.analysis.lines import Columns, read_columns
from curious_replay.replay import ReplayBuffer
from curious_replay.untrusted import UnreadableError


def test_columns_have_types_and_gaps(tmp_path):
    lines = [
        {**counters(0), "loss": 1.5, "mode": "train"},
        {**counters(1), "loss": "NaN", "extra": 2},
        {**counters(2), "loss": "-Infinity", "mode": "eval"},
    ]
    table = read_columns(write_run(tmp_path / "a", metrics=lines) / "metrics.jsonl")
    assert table.rows == 3
    assert table["frame"].dtype == np.int64
    assert table["frame"].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(table["loss"], [1.5, np.nan, -np.inf])
    np.testing.assert_array_equal(table["extra"], [np.nan, 2, np.nan])
    assert table["mode"].tolist() == ["train", "", "eval"]
    assert list(table) == ["frame", "step", "update", "loss", "mode", "extra"]
    assert np.isnan(table["absent"]).all()
    assert table["absent"].shape == (3,)
    assert "absent" not in table
    assert table.where(table["frame"] > 0)["loss"].shape == (2,)


def test_what_the_record_writes_is_read_back(tmp_path):
    from curious_replay.run.record.record import Record  # noqa: PLC0415

    with Record.create(tmp_path / "r", {"seed": 3}, seed=3, tensorboard=False) as record:
        record.metrics(counters(4), {"loss/image": np.float32(0.1), "bad": float("nan")})
    run = load.load_run(tmp_path / "r")
    assert run.seed == 3
    assert run.metrics["loss/image"].tolist() == [0.1]
    assert np.isnan(run.metrics["bad"]).all()
    assert run.episodes.rows == 0


def test_a_torn_last_line_is_left_out_and_a_damaged_one_named(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"frame": 1}\n{"frame": 2}\n{"fra')
    assert read_columns(path)["frame"].tolist() == [1, 2]
    path.write_text('{"frame": 1}\n{"fr\n[3]\n{"frame": 4}\n')
    with pytest.warns(UserWarning, match="line [23] cannot be read") as caught:
        assert read_columns(path)["frame"].tolist() == [1, 4]
    assert len(caught) == 2
    path.write_text("")
    assert read_columns(path).rows == 0
    assert read_columns(tmp_path / "absent.jsonl").rows == 0


def test_two_objects_on_one_line_are_one_damaged_line(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"frame": 1},{"frame": 2}\n{"frame": 3}\n')
    with pytest.warns(UserWarning, match="line 1"):
        assert read_columns(path)["frame"].tolist() == [3]


def test_runs_are_found_grouped_and_broken_ones_named(tmp_path):
    for replay in ("uniform", "curious"):
        for seed in (2, 1):
            write_run(tmp_path / "all" / f"{replay}-{seed}", replay=replay, seed=seed,
                      replay_settings={"alpha": 0.5})  # fmt: skip
    (tmp_path / "all" / "broken").mkdir()
    (tmp_path / "all" / "broken" / "config.json").write_text("{")
    (tmp_path / "empty").mkdir()
    with pytest.warns(UserWarning) as caught:
        found = load.load_runs([tmp_path / "all", tmp_path / "empty", tmp_path / "absent"])
    assert len(found.runs) == 4
    assert {path.name for path in found.broken} == {"broken", "empty", "absent"}
    assert len(caught) == 3
    groups = load.group(found.runs)
    assert list(groups) == [
        ("toy/two-rooms", "dreamerv3", "curious"),
        ("toy/two-rooms", "dreamerv3", "uniform"),
    ]
    assert [run.seed for run in groups["toy/two-rooms", "dreamerv3", "curious"]] == [1, 2]
    assert list(load.group(found.runs, ["replay.alpha", "replay.none"])) == [("0.5", "None")]


def test_a_run_that_is_named_twice_is_read_once(tmp_path, monkeypatch):
    for seed in (0, 1):
        write_run(tmp_path / "all" / f"run-{seed}", seed=seed)
    (tmp_path / "all" / "broken").mkdir()
    (tmp_path / "all" / "broken" / "config.json").write_text("{")
    (tmp_path / "link").symlink_to(tmp_path / "all" / "run-0")
    monkeypatch.chdir(tmp_path)
    places = [Path("all/run-1"), tmp_path / "all", Path("all"), Path("link"), Path("all/broken")]
    with pytest.warns(UserWarning, match="broken") as caught:
        found = load.load_runs(places)
    assert [run.folder for run in found.runs] == [Path("all/run-1"), tmp_path / "all" / "run-0"]
    assert len(found.broken) == len(caught) == 1


def test_a_setting_of_none_is_one_that_a_run_has(tmp_path):
    run = load.load_run(write_run(tmp_path / "run", replay_settings={"alpha": 0.5, "beta": None}))
    assert all(map(run.has, ("env", "seed", "replay.alpha", "replay.beta")))
    assert not any(map(run.has, ("nope", "alpha", "replay.nope", "replay.alpha.x", "")))


def test_columns_of_all_kinds_can_be_chosen_from(tmp_path):
    written = [
        {**counters(i), **({"loss": i / 3} if i > 1 else {}), "mode": "a, b" if i % 2 else "",
         "odd": "NaN" if i == 3 else i, "yes": i > 2, "huge": 10**30, "nothing": None,
         "loss/last": "text"}
        for i in range(5)
    ]  # fmt: skip
    table = read_columns(write_run(tmp_path / "a", metrics=written) / "metrics.jsonl")
    nan = np.nan
    np.testing.assert_array_equal(table["loss"], [nan, nan, 2 / 3, 1, 4 / 3])
    assert table["mode"].tolist() == ["", "a, b", "", "a, b", ""]
    np.testing.assert_array_equal(table["odd"], [0, 1, 2, nan, 4])
    assert table["yes"].tolist() == [0, 0, 0, 1, 1]
    assert table["huge"].tolist() == [1e30] * 5
    assert np.isnan([table["nothing"], table["loss/last"]]).all()
    assert (table.last("frame"), table.last("mode")) == (4, "")
    assert np.isnan([table.last("absent"), Columns({}, 0).last("frame")]).all()
    some = table.where(table["frame"] > 2)
    assert (some.rows, len(some)) == (2, len(table))
    assert some["yes"].tolist() == [1, 1]
    assert "absent" not in some


def test_progress_and_episodes_by_mode(tmp_path):
    episodes = [{**counters(i), "mode": "eval" if i % 2 else "train"} for i in range(6)]
    folder = write_run(tmp_path / "a", episodes=episodes, steps=40)
    (folder / "checkpoints" / "000003-step-40").mkdir(parents=True)
    (folder / "checkpoints" / ".new-000004-step-60").mkdir()
    run = load.load_run(folder)
    assert (run.steps_done, run.frames_done) == (40, 5)
    assert run.finished
    assert run.played()["step"].tolist() == [0, 2, 4]
    assert run.played("eval").rows == 3
    with (folder / "episodes.jsonl").open("a") as file:
        file.write('{"frame": 7, "step": 60}\n{"frame": tr\n{"frame": 9')  # damaged, and torn
    assert (load.load_run(folder).steps_done, load.load_run(folder).frames_done) == (60, 7)
    fresh = load.load_run(write_run(tmp_path / "b"))
    assert fresh.steps_done == 0
    assert not fresh.finished
    assert fresh.played().rows == fresh.played("eval").rows == 0
    assert fresh.changes == ()


def test_changes_come_from_the_record_then_the_settings_then_the_episodes(tmp_path):
    episodes = [
        {**counters(10 * i), "phase": phase} for i, phase in enumerate(["a", "a", "b", "b", "a"], 1)
    ]
    settings = {"env_settings": {"schedule": [[0, "x"], [5, "y"]]}}
    meta = {"schedule": [[0, "x"], [7, "y"]]}
    runs = [
        write_run(tmp_path / "1", episodes=episodes),
        write_run(tmp_path / "2", episodes=episodes, **settings),
        write_run(tmp_path / "3", episodes=episodes, meta=meta, **settings),
    ]
    one, two, three = (load.load_run(run).changes for run in runs)
    assert one == ((0, "a"), (20, "b"), (40, "a"))
    assert two == ((0, "x"), (5, "y"))
    assert three == ((0, "x"), (7, "y"))


@pytest.mark.parametrize("capacity", [1000, 20])
def test_stored_steps_know_their_frame(tmp_path, capacity):
    folder = write_run(tmp_path / "a", env_settings={"action_repeat": 2})
    numbers = np.arange(30)[:, None] + np.zeros((30, 2), int)
    write_checkpoint(folder, {"log_n": numbers}, num_envs=2, capacity=capacity, repeat=2)
    found = stored.newest(load.load_run(folder))
    # two environments, two frames a step: step n of both was seen at frame 4 n
    number = found.field("log_n")
    kept = min(30, capacity // 2)
    assert len(found) == 2 * kept
    assert found.frame.tolist() == (4 * number).tolist()
    assert found.age.tolist() == (29 - number).tolist()
    assert np.count_nonzero(found.priorities == 0) == 2 * 3  # windows of 4: three have no window
    assert found.visits.tolist() == [0] * len(found)
    assert found.has("log_n")
    assert not found.has("log_m")


def test_checkpoints_without_frames_are_refused_and_their_runs_read_by_interval(tmp_path):
    """Those of runs from before steps were stored with their frame."""
    metrics = [{**counters(10 * i), "log/contacts": i} for i in (1, 2, 3)]
    folder = write_run(tmp_path / "a", metrics=metrics, env_settings={"action_repeat": 2})
    path = folder / "checkpoints" / "000001-step-9"
    write_checkpoint(folder, {"log_contacts": np.ones((9, 1), int)})
    run = load.load_run(folder)
    assert interaction.counts_of(run, stored=stored.newest(run))[0].tolist() == [*range(9)]
    shutil.rmtree(path / "replay")
    old = ReplayBuffer(100, 4)
    for t in range(9):
        no = np.zeros(1, bool)
        flags = {"is_first": np.array([t == 0]), "is_last": no, "is_terminal": no}
        old.add({**flags, "log_contacts": np.ones(1, int)})
    old.save(path / "replay")
    with pytest.raises(UnreadableError, match=r"is of an earlier version: .* no log_frame"):
        stored.read(path)
    assert stored.read(path, step_is_frame=True).frame.tolist() == [0, *range(1, 9)]
    assert stored.newest(run) is None
    frames, contacts = interaction.counts_of(run, stored=stored.newest(run))
    assert (frames.tolist(), contacts.tolist()) == ([10, 20, 30], [1, 2, 3])


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    folder = write_run(tmp_path / "a")
    run = load.load_run(folder)
    assert stored.newest(run) is None
    write_checkpoint(folder, {"log_n": np.zeros((9, 1))})
    write_checkpoint(folder, {"log_n": np.zeros((12, 1))}, serial=2)
    assert stored.newest(run).step == 12
    (folder / "checkpoints" / "000002-step-12" / "replay" / "replay.json").write_text("{}")
    assert stored.newest(run).step == 9
    (folder / "checkpoints" / "000001-step-9" / "state.json").write_text(json.dumps({}))
    assert stored.newest(run) is None


def test_hours_are_those_of_all_sessions(tmp_path):
    folder = write_run(tmp_path / "a")
    lines = [
        {**counters(3600), "session": 1, "steps_per_second": 1.0},
        {**counters(7200), "session": 1, "steps_per_second": 2.0},
        {**counters(5400), "session": 2, "steps_per_second": 0.0},  # resumed, and stopped at once
        {**counters(5400), "session": 3, "steps_per_second": "NaN"},
        {**counters(9000), "session": 3, "steps_per_second": 1.0},
    ]
    assert load.load_run(folder).hours == 0
    (folder / "speed.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert load.load_run(folder).hours == pytest.approx(1 + 0.5 + 1)


def test_a_run_knows_all_its_starts(tmp_path):
    once = load.load_run(write_run(tmp_path / "a", meta={"commit": "one"}))
    assert [start["commit"] for start in once.starts] == ["one"]
    meta = {"commit": "one", "resumes": [{"commit": "two"}]}
    twice = load.load_run(write_run(tmp_path / "b", meta=meta))
    assert [start["commit"] for start in twice.starts] == ["one", "two"]
    with pytest.raises(ValueError, match=r"meta\.json, resumes"):
        load.load_run(write_run(tmp_path / "c", meta={"resumes": ["two"]}))


def test_complete_is_what_was_saved_after_all_steps(tmp_path):
    folder = write_run(tmp_path / "a", metrics=[counters(1000)], steps=1000)
    assert load.load_run(folder).finished
    assert not load.load_run(folder).complete
    (folder / "checkpoints" / "000001-step-999").mkdir(parents=True)
    assert not load.load_run(folder).complete
    (folder / "checkpoints" / "000002-step-1000").mkdir()
    assert load.load_run(folder).complete


def test_frames_of_old_runs_are_counted_where_a_step_is_a_frame(tmp_path):
    folder = write_run(tmp_path / "a")
    buffer = ReplayBuffer(100, 2, num_envs=2)
    starts = [(True, True), (False, False), (False, True), (True, False)]
    for first in starts:
        no = np.zeros(2, bool)
        buffer.add({"is_first": np.array(first), "is_last": no, "is_terminal": no})
    path = folder / "checkpoints" / "000001-step-8"
    buffer.save(path / "replay")
    (path / "state.json").write_text(json.dumps({"counters": {"step": 8}}))
    assert stored.newest(load.load_run(folder)).frame.tolist() == [0, 2, 4, 4, 0, 2, 2, 4]
