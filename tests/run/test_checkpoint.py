import errno
import json
import os
import shutil
import subprocess
import sys

import pytest
from helpers.runs import config, lines, run

from curious_replay.run.preflight import used_disk
from curious_replay.run.record.checkpoint import AllDamagedError, CheckpointError, Checkpoints
from curious_replay.run.record.record_files import LOCK, LockedError
from curious_replay.untrusted import UnreadableError, of_the_disk, open_file


def checkpoints(folder):
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 100 steps, and the same one of 200."""
    folder = tmp_path_factory.mktemp("runs")
    run(config(train={"steps": 100}), folder / "half")
    run(config(train={"steps": 200}), folder / "whole")
    return folder


@pytest.fixture
def half(finished, tmp_path):
    shutil.copytree(finished / "half", tmp_path / "half")
    return tmp_path / "half"


def go_on(folder):
    return run(config(train={"steps": 200}), folder, resume=True)


def test_the_last_two_are_kept(finished):
    assert checkpoints(finished / "half") == ["000002-step-50", "000003-step-100"]
    assert checkpoints(finished / "whole") == ["000004-step-150", "000005-step-200"]


def test_a_complete_run_can_be_made_longer(finished, half):
    assert go_on(half).finished
    assert lines(half) == lines(finished / "whole")


def test_nothing_in_a_checkpoint_is_pickled(finished):
    for path in (finished / "whole" / "checkpoints").rglob("*"):
        if path.is_file():
            assert path.suffix in {".json", ".npz", ".bin", ".safetensors"}
            start = path.read_bytes()[:4]
            assert not start.startswith(b"\x80"), path


def test_steps_are_shared_between_checkpoints(finished):
    last, before = Checkpoints(finished / "whole" / "checkpoints").all()
    names = {path.name for path in (last / "replay").rglob("chunk*")}
    shared = [
        path
        for path in (last / "replay").rglob("chunk*")
        if path.stat().st_nlink == 2 and path.name in names
    ]
    assert shared
    alone = sum(f.stat().st_blocks * 512 for f in last.rglob("*") if f.is_file())
    assert used_disk(finished / "whole" / "checkpoints") < 1.5 * alone
    assert before.exists()


DAMAGE = {
    "agent.safetensors": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"x"),
    "policy.safetensors": lambda path: path.unlink(),
    "state.json": lambda path: path.write_text(path.read_text().replace("1", "2", 1)),
    "state.npz": lambda path: os.truncate(path, 100),
    "manifest.json": lambda path: path.write_text("{}"),
    "replay/replay.json": lambda path: path.write_text("{"),
    "replay": shutil.rmtree,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_checkpoint_is_passed_over(name, finished, half, capsys):
    newest = half / "checkpoints" / "000003-step-100"
    DAMAGE[name](newest / name)
    outcome = go_on(half)
    assert outcome.finished
    assert lines(half) == lines(finished / "whole")
    assert checkpoints(half) == ["000004-step-150", "000005-step-200"]


def test_falling_back_is_said(half, tmp_path):
    DAMAGE["state.npz"](half / "checkpoints" / "000003-step-100" / "state.npz")
    said = []
    saved = Checkpoints(half / "checkpoints").newest(said.append)
    assert saved.step == 50
    assert "state.npz has changed" in said[0]


def test_no_whole_checkpoint_at_all_is_an_error(half):
    for path in (half / "checkpoints").iterdir():
        DAMAGE["manifest.json"](path / "manifest.json")
    before = lines(half)
    with pytest.raises(CheckpointError, match="none of the checkpoints"):
        go_on(half)
    assert lines(half) == before


def test_a_run_that_never_came_to_a_checkpoint_begins_again(finished, half):
    shutil.rmtree(half / "checkpoints")
    assert go_on(half).finished
    assert lines(half) == lines(finished / "whole")


def test_unfinished_checkpoints_are_removed(half):
    left = half / "checkpoints" / ".new-000004-step-150"
    left.mkdir()
    (left / "agent.safetensors").write_text("half of it")
    go_on(half)
    assert not left.exists()


def test_checkpoints_of_another_version_are_not_read(half):
    path = half / "checkpoints" / "000003-step-100" / "manifest.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "format": "curious-replay checkpoint 9"}))
    said = []
    assert Checkpoints(half / "checkpoints").newest(said.append).step == 50


def test_resuming_a_complete_run_changes_nothing(half):
    before = {p: p.read_bytes() for p in (half / "checkpoints").rglob("*") if p.is_file()}
    assert run(config(train={"steps": 100}), half, resume=True).finished
    assert {p: p.read_bytes() for p in (half / "checkpoints").rglob("*") if p.is_file()} == before


def test_nothing_is_read_while_another_process_writes(half, monkeypatch):
    """What it is about to save would be forgotten."""
    monkeypatch.setattr(Checkpoints, "resume", lambda *_: pytest.fail("it was read"))
    hold = "import fcntl, sys; f = open(sys.argv[1], 'ab'); fcntl.lockf(f, 2); print(1, flush=1)"
    hold += "; sys.stdin.read()"
    command = [sys.executable, "-c", hold, str(half / LOCK)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"1\n"
        with pytest.raises(LockedError, match="being written to"):
            go_on(half)
        other.stdin.close()


def test_damage_is_told_from_a_disk_that_cannot_be_read(half, monkeypatch):
    for checkpoint in (half / "checkpoints").iterdir():
        (checkpoint / "manifest.json").write_text("{")
    with pytest.raises(AllDamagedError, match="none of the checkpoints"):
        go_on(half)

    def away(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "open", away)
    with pytest.raises(UnreadableError) as caught:
        open_file(half / "config.json")
    assert of_the_disk(caught.value)
    with pytest.raises(CheckpointError) as caught:
        Checkpoints(half / "checkpoints").resume(None, None, lambda text: None)
    assert not isinstance(caught.value, AllDamagedError)
