"""Checkpoints that are kept for good: --record.keep-at."""

import io
import json
import os
import signal

import pytest
from helpers.fake_agent import FakeAgent
from helpers.runs import Killed, config, kill_at_update, lines, run
from rich.console import Console

from curious_replay.run import load_config, train
from curious_replay.run.loop.trainer import Trainer
from curious_replay.run.record import checkpoint_files
from curious_replay.run.record.checkpoint import CheckpointError, Checkpoints, step_of


def settings(keep_at=(35, 80), steps=200, **env):
    return config(env=env, train={"steps": steps, "log_every": 10}, record={"keep_at": keep_at})


def there(folder):
    """Steps of all checkpoints, and what they are kept as."""
    found = reversed(Checkpoints(folder / "checkpoints").all())
    return {step_of(path): checkpoint_files.kept_at(path) for path in found}


def told(made, folder):
    out = io.StringIO()
    train(made, folder, resume=True, console=Console(file=out, width=1000))
    return [line for line in out.getvalue().splitlines() if "keep-at" in line]


def stop_in_snapshot(monkeypatch, at):
    """Let a signal to stop arrive while the snapshot of this step is taken."""
    real = Trainer._snapshot

    def snapshot(self):
        if self.counters.step == at:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self)

    monkeypatch.setattr(Trainer, "_snapshot", snapshot)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept") / "run"
    run(settings(), folder)
    return folder


def test_they_stay_beside_the_last_two(whole):
    assert there(whole) == {35: {35}, 80: {80}, 150: set(), 200: set()}
    for path in Checkpoints(whole / "checkpoints").all():
        checkpoint_files.read(path).load_replay(None, settings().replay.rule())  # all are whole


def test_keeping_disturbs_nothing(whole, tmp_path):
    run(settings(keep_at=()), tmp_path / "run")
    assert lines(tmp_path / "run") == lines(whole)
    assert there(tmp_path / "run") == {150: set(), 200: set()}


def test_the_first_round_at_or_after_a_step_is_kept(tmp_path):
    run(settings(num_envs=4, length=1000), tmp_path / "run")
    assert there(tmp_path / "run") == {36: {35}, 80: {80}, 152: set(), 200: set()}
    kept = Checkpoints(tmp_path / "run" / "checkpoints").at(35)
    assert step_of(kept) == 36
    run(settings((34, 36), num_envs=4, length=1000), tmp_path / "both")
    assert there(tmp_path / "both")[36] == {34, 36}


def test_a_kept_checkpoint_is_the_same_after_a_kill(whole, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Killed):
        kill_at_update(patch, 20)  # at step 58
        run(settings(), tmp_path / "run")
    run(settings(), tmp_path / "run", resume=True)
    assert there(tmp_path / "run") == there(whole)
    for step in (35, 80):
        paths = [
            Checkpoints(folder / "checkpoints").at(step) for folder in (whole, tmp_path / "run")
        ]
        for name in checkpoint_files.FILES:
            assert (paths[0] / name).read_bytes() == (paths[1] / name).read_bytes()


def test_a_stop_at_the_last_step_changes_no_checkpoint(whole, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        stop_in_snapshot(patch, at=200)
        run(settings(), folder)
    run(settings(), folder, resume=True)
    ends = [Checkpoints(each / "checkpoints").all()[0] for each in (whole, folder)]
    for name in checkpoint_files.FILES:
        assert (ends[0] / name).read_bytes() == (ends[1] / name).read_bytes(), name


def test_others_may_be_kept_after_a_resume(tmp_path):
    folder = tmp_path / "run"
    run(settings((30,), 100), folder)
    late = "--record.keep-at {}: the run has passed it, with no checkpoint there"
    assert told(settings((40, 100, 120), 150), folder) == [late.format(40)]
    assert there(folder) == {30: {30}, 100: {100}, 120: {120}, 150: set()}
    assert told(settings((40, 100, 120), 160), folder) == []  # it was said
    assert there(folder) == {30: {30}, 100: {100}, 120: {120}, 150: set(), 160: set()}


def test_runs_of_earlier_versions_kept_none(tmp_path):
    folder = tmp_path / "run"
    run(settings((), 60), folder)
    written = json.loads((folder / "config.json").read_text())
    del written["record"]["keep_at"]
    (folder / "config.json").write_text(json.dumps(written))
    newest = Checkpoints(folder / "checkpoints").at(None)
    saved = checkpoint_files.read(newest)
    del saved.state["keep"]
    checkpoint_files.write(newest, saved.step, saved.state, saved.agent, saved.policy)
    assert load_config(folder) == settings((), 60)
    assert told(settings((50, 70), 80), folder) == [
        "--record.keep-at 50: the run has passed it, with no checkpoint there"
    ]
    assert there(folder) == {70: {70}, 80: set()}


def test_what_is_not_there_is_said_with_what_is(whole, tmp_path):
    with pytest.raises(CheckpointError, match=r"no checkpoint of step 36; there are those of "
                       r"35 \(kept\), 80 \(kept\), 150, 200"):  # fmt: skip
        Checkpoints(whole / "checkpoints").at(36)
    assert step_of(Checkpoints(whole / "checkpoints").at(150)) == 150
    assert step_of(Checkpoints(whole / "checkpoints").at(None)) == 200
    with pytest.raises(CheckpointError, match="nothing has no checkpoint"):
        Checkpoints(tmp_path / "nothing").at(None)


def test_steps_are_never_added_to_a_file_of_another_process(whole, tmp_path):
    """Whoever shares it by links, as a fork does, would find other steps in it."""
    folder = tmp_path / "run"
    run(settings((), 60), folder)
    before = Checkpoints(folder / "checkpoints").at(None)
    shared = {path: path.read_bytes() for path in before.rglob("chunk-*")}
    assert shared
    run(settings((), 70), folder, resume=True)
    assert {path: path.read_bytes() for path in shared} == shared


@pytest.mark.parametrize(
    ("kept", "unread"), [((), {"likelihood", "kl", "td"}), ((20,), set())], ids=["none", "some"]
)
def test_runs_to_be_forked_keep_signals_that_only_others_read(tmp_path, monkeypatch, kept, unread):
    seen = []
    real = FakeAgent.update

    def update(self, batch, unread):
        seen.append(set(unread))
        return real(self, batch, unread)

    monkeypatch.setattr(FakeAgent, "update", update)
    run(config(train={"steps": 40}, record={"keep_at": kept}), tmp_path)
    assert seen[0] == unread
