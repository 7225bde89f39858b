"""SIGKILL at any moment of a fork leaves nothing, or a whole run."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.runs import config, lines, run

from curious_replay.analysis.load import find_runs
from curious_replay.run import fork, load_config

SCRIPT = Path(__file__).with_name("kill_forks.py")


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills") / "parent"
    groups = {"record": {"keep_at": (70,), "snapshot_every": 20}, "train": {"steps": 90}}
    run(config("toy/two-rooms", env={"length": 11}, **groups), folder)
    return folder


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kill_leaves_nothing_or_a_whole_run(every, parent, tmp_path):
    (tmp_path / "forks").mkdir()
    folders = (parent, tmp_path / "forks" / "fork", tmp_path / "whole")
    command = [sys.executable, str(SCRIPT), *map(str, folders), "70", str(every)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    nothing, whole, *left = done.stdout.split()
    assert int(nothing) > 50 / every
    assert int(whole) >= 1
    assert left == []  # the last attempt, which nobody killed, has swept up after the others
    made = load_config(tmp_path / "whole")
    assert run(made, tmp_path / "whole", resume=True).finished
    assert lines(tmp_path / "whole") == lines(parent)


def test_what_a_killed_fork_left_is_no_run_and_in_nobodys_way(parent, tmp_path):
    fork(parent, logdir=tmp_path / "fork", at=70)
    (tmp_path / "fork").rename(tmp_path / ".fork.fork")  # killed at the very last moment
    (tmp_path / ".fork.fork" / "torn").write_text("half of it")
    assert find_runs(tmp_path) == []
    made = fork(parent, logdir=tmp_path / "fork", at=70)
    assert [path.name for path in tmp_path.iterdir()] == ["fork"]
    assert not (tmp_path / "fork" / "torn").exists()
    assert run(made, tmp_path / "fork", resume=True).finished
    assert lines(tmp_path / "fork") == lines(parent)
