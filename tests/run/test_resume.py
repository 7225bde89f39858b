import pytest
from runs import Killed, config, kill_at_update, lines, run

from curious_replay.run.replay_config import REPLAYS


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
