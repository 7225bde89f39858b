"""Forks: with nothing changed the run that never stopped, else what was asked for and no more."""

import errno
import gc
import io
import json
import os
import shutil
from dataclasses import replace

import compare
import numpy as np
import pytest
from helpers.runs import Killed, config, kill_at_update, lines, run
from rich.console import Console

from curious_replay.run import Choice, fork, load_config, preset, train
from curious_replay.run.loop.learner import Learner
from curious_replay.run.record import checkpoint_files
from curious_replay.run.record.checkpoint import Checkpoints, step_of
from curious_replay.run.record.files import read_lines
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.replay_config import REPLAYS


def settings(rule="curious", num_envs=1, **groups):
    ours = {
        "env": {"num_envs": num_envs, "length": 11},
        "train": {"steps": 120, "save_every": 40},
        "record": {"keep_at": (45, 70), "snapshot_every": 30},
    }
    return config("toy/two-rooms", rule, **{
        name: ours.get(name, {}) | groups.get(name, {}) for name in ours.keys() | groups.keys()
    })  # fmt: skip


def newest(folder, step=None):
    return checkpoint_files.read(Checkpoints(folder / "checkpoints").at(step))


def meta(folder):
    return json.loads((folder / "meta.json").read_text())


def metrics(folder):
    return read_lines(folder / "metrics.jsonl")


def differences(whole, folder):
    gc.collect()  # steps on disk are there for as long as their buffer is
    return compare.at_end(whole, folder)


def goes_on_as(whole, made, folder):
    """Train a fork to its end; it must be the run that never stopped."""
    assert run(made, folder, resume=True).finished
    return differences(whole, folder) == []


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forks") / "whole"
    run(settings(), folder)
    return folder


@pytest.mark.parametrize("num_envs", [1, 4])
@pytest.mark.parametrize("replay", REPLAYS)
def test_a_fork_with_nothing_changed_is_the_run_that_never_stopped(replay, num_envs, tmp_path):
    whole = tmp_path / "whole"
    storage = "disk" if num_envs == 4 else "memory"
    run(settings(replay, num_envs, replay={"storage": storage}), whole)
    made = fork(whole, logdir=tmp_path / "fork", at=45)
    assert lines(tmp_path / "fork") != lines(whole)
    assert goes_on_as(whole, made, tmp_path / "fork")


def test_what_it_watched_is_the_same_too(tmp_path):
    record = {"video_every": 20, "snapshot_every": 20, "tensorboard": True}
    watched = {"eval": {"every": 20}, "record": record}
    whole = tmp_path / "whole"
    run(settings(**watched), whole)
    made = fork(whole, logdir=tmp_path / "fork", at=70)
    before = {path.name for path in (tmp_path / "fork" / "videos").iterdir()}
    assert before < {path.name for path in (whole / "videos").iterdir()}
    assert len(before) == 6
    assert goes_on_as(whole, made, tmp_path / "fork")


def test_a_fork_in_the_middle_of_a_round_makes_the_updates_that_are_owed(tmp_path, monkeypatch):
    made = settings(train={"ratio": 40.0})  # five updates a step
    run(made, tmp_path / "whole")
    real, calls = Learner.update, iter(range(10**6))

    def update(self):
        real(self)
        if next(calls) == 98:
            os.kill(os.getpid(), 15)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "update", update)
        assert not run(made, tmp_path / "stopped").finished
    saved = newest(tmp_path / "stopped")
    assert saved.state["owed"] == 2
    made = fork(tmp_path / "stopped", logdir=tmp_path / "fork")
    assert goes_on_as(tmp_path / "whole", made, tmp_path / "fork")
    made = fork(tmp_path / "stopped", logdir=tmp_path / "slow", settings={"train.ratio": 2.0})
    run(made, tmp_path / "slow", resume=True)
    assert metrics(tmp_path / "slow")[-1]["update"] == 99 + 2 + (120 - saved.step) // 4


DREAMER = {
    "env": {"length": 9},
    "train": {"steps": 50, "save_every": 20, "log_every": 5, "prefill": 10, "threads": 1},
    "eval": {"every": 0},
    "record": {"video_every": 0, "tensorboard": False, "keep_at": (30,)},
}


def forks_exactly(agent, replay, tmp_path):
    made = preset(Choice(env="toy/two-rooms", agent=agent, replay=replay, scale="debug"))
    groups = {name: replace(getattr(made, name), **values) for name, values in DREAMER.items()}
    run(replace(made, **groups), tmp_path / "whole")
    assert metrics(tmp_path / "whole")[-1]["update"] > 5
    made = fork(tmp_path / "whole", logdir=tmp_path / "fork", at=30)
    return goes_on_as(tmp_path / "whole", made, tmp_path / "fork")


def test_dreamer_v3_forks_exactly(tmp_path):
    assert forks_exactly("dreamerv3", "curious", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("replay", REPLAYS)
@pytest.mark.parametrize("agent", [name for name in AGENTS if name != "fake"])
def test_every_agent_forks_exactly(agent, replay, tmp_path):
    assert forks_exactly(agent, replay, tmp_path)


@pytest.mark.parametrize("storage", ["memory", "disk"])
def test_parent_and_forks_go_on_without_harm_to_each_other(storage, tmp_path):
    """They share files of steps, and in turns each adds its own."""

    def go_on(name, steps):
        """Up to a step; no checkpoint may be found damaged."""
        made = config(
            "own_envs:Turns", train={"steps": steps, "save_every": 20},
            agent={"lr": 1.0 if name.startswith("other") else 0.01},
            replay={"storage": storage}, record={"keep_at": (25,)},
        )  # fmt: skip
        out = io.StringIO()
        train(made, tmp_path / name, resume=True, console=Console(file=out))
        assert "going back" not in out.getvalue()

    go_on("alone", 200)
    go_on("parent", 30)
    changes = {"same": {}, "other": {"agent.lr": 1.0}, "again": {}}
    for name, change in changes.items():
        more = {**change, "train.steps": 50}
        fork(tmp_path / "parent", logdir=tmp_path / name, at=25, settings=more)
    for steps in (50, 75, 130, 200):
        for name in ("parent", *changes):
            go_on(name, steps)
    assert lines(tmp_path / "other") != lines(tmp_path / "alone")
    for name in ("parent", "same", "again"):
        assert differences(tmp_path / "alone", tmp_path / name) == []
    more = {**changes["other"], "train.steps": 200}
    fork(tmp_path / "alone", logdir=tmp_path / "other alone", at=25, settings=more)
    go_on("other alone", 200)
    assert differences(tmp_path / "other alone", tmp_path / "other") == []


def test_full_files_of_steps_are_shared_and_the_last_is_not(tmp_path):
    made = settings(train={"steps": 150}, replay={"capacity": 1000})
    run(made, tmp_path / "parent")
    fork(tmp_path / "parent", logdir=tmp_path / "fork", settings={"train.steps": 160})
    links = {path.name: path.stat().st_nlink for path in (tmp_path / "fork").rglob("chunk-*")}
    assert list(dict(sorted(links.items())).values()) == [5, 4, 1]


def test_a_fork_needs_its_parent_no_more(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "parent")
    made = fork(tmp_path / "parent", logdir=tmp_path / "fork", at=70)
    shutil.rmtree(tmp_path / "parent")
    assert goes_on_as(whole, made, tmp_path / "fork")


@pytest.mark.parametrize("storage", ["memory", "disk"])
def test_a_fork_on_another_disk_is_a_copy(storage, whole, tmp_path, monkeypatch):
    def link(*_, **__):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", link)
        made = fork(whole, logdir=tmp_path / "fork", at=70, settings={"replay.storage": storage})
    for path in (tmp_path / "fork").rglob("*"):
        assert path.is_dir() or path.stat().st_nlink == 1
    assert run(made, tmp_path / "fork", resume=True).finished
    assert lines(tmp_path / "fork") == lines(whole)


def test_a_fork_of_a_fork(whole, tmp_path):
    fork(whole, logdir=tmp_path / "first", at=45)
    run(load_config(tmp_path / "first"), tmp_path / "first", resume=True)
    made = fork(tmp_path / "first", logdir=tmp_path / "second", at=70)
    assert goes_on_as(whole, made, tmp_path / "second")
    origin = meta(tmp_path / "second")["parent"]
    assert (origin["folder"], origin["step"]) == (str(tmp_path / "first"), 70)
    assert (origin["parent"]["folder"], origin["parent"]["step"]) == (str(whole), 45)
    assert origin["parent"]["parent"] is None


def test_a_fork_is_resumed_exactly(whole, tmp_path, monkeypatch):
    folder = tmp_path / "fork"
    made = fork(whole, logdir=folder, at=45)
    for update in (2, 15):  # before and after its first own checkpoint
        with monkeypatch.context() as patch, pytest.raises(Killed):
            kill_at_update(patch, update)
            run(made, folder, resume=True)
    assert goes_on_as(whole, made, folder)


def test_the_origin_is_named(whole, tmp_path):
    fork(whole, logdir=tmp_path / "fork", at=45, settings={"train.ratio": 8.0})
    origin = meta(tmp_path / "fork")["parent"]
    path = Checkpoints(whole / "checkpoints").at(45)
    assert origin == {
        "id": meta(whole)["id"], "folder": str(whole), "step": 45, "frame": origin["frame"],
        "checkpoint": path.name, "checksum": checkpoint_files.digest(path),
        "changed": {"--train.ratio": [4.0, 8.0]}, "parent": None,
    }  # fmt: skip
    assert len(origin["checksum"]) == 8
    assert meta(tmp_path / "fork")["id"] != meta(whole)["id"]
    assert meta(tmp_path / "fork")["schedule"] == meta(whole)["schedule"]
    assert meta(tmp_path / "fork")["resumes"] == []


def test_a_fork_is_a_run_of_its_own_elsewhere_too(whole, tmp_path):
    """Weights & Biases would go on with the parent under its id."""
    shutil.copytree(whole, tmp_path / "parent")
    (tmp_path / "parent" / "meta.json").write_text(json.dumps({**meta(whole), "wandb": "abc"}))
    fork(tmp_path / "parent", logdir=tmp_path / "fork", at=45)
    assert "wandb" not in meta(tmp_path / "fork")


def test_the_newest_checkpoint_is_forked_unless_a_step_is_named(whole, tmp_path):
    fork(whole, logdir=tmp_path / "newest", settings={"train.steps": 130})
    assert meta(tmp_path / "newest")["parent"]["step"] == 120
    fork(whole, logdir=tmp_path / "last", at=120, settings={"train.steps": 130})
    assert meta(tmp_path / "last")["parent"]["step"] == 120
    run(settings(num_envs=4), tmp_path / "four")
    fork(tmp_path / "four", logdir=tmp_path / "kept", at=45)
    step = meta(tmp_path / "kept")["parent"]["step"]
    assert 45 < step < 49
    assert step_of(Checkpoints(tmp_path / "four" / "checkpoints").at(45)) == step


@pytest.mark.parametrize(("ratio", "updates"), [(8.0, 1.0), (1.0, 0.125), (0.0, 0.0), (12.4, 1.55)])
def test_another_train_ratio_counts_from_the_fork(ratio, updates, whole, tmp_path):
    folder = tmp_path / "fork"
    made = fork(whole, logdir=folder, at=45, settings={"train.ratio": ratio, "train.log_every": 1})
    begin = newest(folder).state["counters"]["update"]
    run(made, folder, resume=True)
    later = [line for line in metrics(folder) if line["step"] > 45]
    assert len(later) == 75
    for line in later:
        assert line["update"] == begin + int((line["step"] - 45) * updates + 1e-9)


def test_another_learning_rate_is_taken(whole, tmp_path):
    made = fork(whole, logdir=tmp_path / "fork", at=45, settings={"agent.lr": 0.5})
    one, other = newest(whole, 45), newest(tmp_path / "fork")
    assert all(np.array_equal(one.agent[name], other.agent[name]) for name in one.agent)
    run(made, tmp_path / "fork", resume=True)
    before = (tmp_path / "fork" / "metrics.jsonl").read_text().splitlines()
    same = [a == b for a, b in zip(before, (whole / "metrics.jsonl").read_text().splitlines(),
                                   strict=True)]  # fmt: skip
    assert same == [True, True, False, False, False, False]


def test_what_is_recorded_may_differ(whole, tmp_path):
    more = {"eval.every": 30, "record.snapshot_every": 0, "train.log_every": 10, "train.steps": 140}
    made = fork(whole, logdir=tmp_path / "fork", at=70, settings=more)
    run(made, tmp_path / "fork", resume=True)
    assert [line["step"] for line in metrics(tmp_path / "fork")] == [
        20,
        40,
        60,
        *range(70, 141, 10),
    ]
    played = [e for e in read_lines(tmp_path / "fork" / "episodes.jsonl") if e["mode"] == "eval"]
    assert [line["step"] for line in played] == [70, 90, 120]
    assert sorted(p.stem for p in (tmp_path / "fork" / "snapshots").iterdir()) == [
        "000000030", "000000060"
    ]  # fmt: skip


def test_checkpoints_of_the_parent_stay_with_it(whole, tmp_path):
    """A fork keeps those of steps that it comes to itself."""
    made = fork(whole, logdir=tmp_path / "fork", at=45)
    run(made, tmp_path / "fork", resume=True)
    steps = [step_of(path) for path in Checkpoints(tmp_path / "fork" / "checkpoints").all()]
    assert steps == [120, 80, 70]


def test_environments_that_cannot_be_saved_begin_a_new_episode(tmp_path):
    run(config("own_envs:Numbers", train={"steps": 60}), tmp_path / "run")
    made = fork(tmp_path / "run", logdir=tmp_path / "fork", settings={"train.steps": 90})
    assert run(made, tmp_path / "fork", resume=True).finished
    assert metrics(tmp_path / "fork")[-1]["step"] == 80
