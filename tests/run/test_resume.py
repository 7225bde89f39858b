import shutil
from dataclasses import replace

import pytest
from helpers.runs import Killed, config, kill_at_update, lines, run

from curious_replay.run import Choice, preset
from curious_replay.run.record.files import read_lines
from curious_replay.run.settings.replay_config import REPLAYS


@pytest.mark.parametrize("num_envs", [1, 4])
@pytest.mark.parametrize("replay", REPLAYS)
def test_resumed_run_equals_one_never_stopped(replay, num_envs, tmp_path, monkeypatch):
    settings = config(
        "toy/two-rooms", replay, env={"num_envs": num_envs, "length": 11}, train={"steps": 120}
    )
    run(settings, tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at_update(patch, 25)
        run(settings, tmp_path / "killed")
    assert lines(tmp_path / "killed") != lines(tmp_path / "whole")
    assert run(settings, tmp_path / "killed", resume=True).finished
    assert lines(tmp_path / "killed") == lines(tmp_path / "whole")


def test_random_actions_go_on_too(tmp_path):
    def settings(steps):
        return config(train={"steps": steps, "prefill": 100, "log_every": 10})

    run(settings(120), tmp_path / "whole")
    run(settings(60), tmp_path / "parts")
    run(settings(120), tmp_path / "parts", resume=True)
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")


def test_sums_go_on_where_environments_cannot(tmp_path):
    def settings(steps):
        return config("own_envs:Numbers", train={"steps": steps, "log_every": 50})

    run(settings(70), tmp_path / "run")
    run(settings(150), tmp_path / "run", resume=True)
    rewards = [line["env/reward"] for line in read_lines(tmp_path / "run" / "metrics.jsonl")]
    assert len(rewards) == 3
    assert min(rewards) > 40  # one a step, and none where an episode begins


def test_checkpoints_of_another_run_are_not_taken_over(tmp_path):
    run(config(train={"steps": 60}), tmp_path / "run")
    shutil.copytree(tmp_path / "run" / "checkpoints", tmp_path / "new" / "checkpoints")
    for resume in (False, True):
        with pytest.raises(ValueError, match="new holds checkpoints but no config"):
            run(config(train={"steps": 60}), tmp_path / "new", resume=resume)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["checkpoints"]


def dreamer(env, steps, num_envs=1, **changes):
    config = preset(Choice(env=env, agent="dreamerv3", replay="curious", scale="debug"))
    groups = {
        "env": {"num_envs": num_envs, **changes},
        "train": {"steps": steps, "save_every": 20, "log_every": 5, "prefill": 10, "threads": 1},
        "eval": {"every": 0},
        "record": {"video_every": 0, "tensorboard": False},
    }
    values = {name: replace(getattr(config, name), **c) for name, c in groups.items()}
    return replace(config, **values)


@pytest.mark.parametrize(
    ("env", "num_envs", "changes"),
    [
        ("toy/two-rooms", 4, {"length": 9}),
        ("crafter", 1, {"length": 15}),
        ("control/cartpole_balance", 1, {"episode_frames": 30, "camera": "ray"}),
    ],
)
def test_dreamer_v3_resumes_exactly(env, num_envs, changes, tmp_path, monkeypatch):
    settings = dreamer(env, 80, num_envs, **changes)
    run(settings, tmp_path / "whole")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at_update(patch, 19)
        run(settings, tmp_path / "killed")
    assert run(settings, tmp_path / "killed", resume=True).finished
    assert lines(tmp_path / "killed") == lines(tmp_path / "whole")


def test_watching_dreamer_v3_does_not_disturb_it(tmp_path):
    settings = dreamer("toy/two-rooms", 30)
    run(settings, tmp_path / "plain")
    watched = replace(
        settings,
        eval=replace(settings.eval, every=10),
        record=replace(settings.record, video_every=10),
    )
    run(watched, tmp_path / "watched")
    assert len(list((tmp_path / "watched" / "videos").iterdir())) == 6
    name = "metrics.jsonl"
    assert lines(tmp_path / "watched")[name] == lines(tmp_path / "plain")[name]
