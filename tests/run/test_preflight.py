import io
import shutil
from types import SimpleNamespace

import pytest
from helpers.fake_agent import FakeAgent
from helpers.runs import config, run
from rich.console import Console

from curious_replay.run import preflight, train
from curious_replay.run.preflight import PreflightError
from curious_replay.run.worlds.environments import inspect_env


def needed(settings):
    facts = inspect_env(settings.choice.env, settings.env)
    return preflight.needs(settings, facts, FakeAgent(settings.agent, facts.spaces, 0))


def test_needs_are_those_of_a_full_buffer():
    settings = config(
        env={"image_size": 64}, replay={"capacity": 1_000_000}, train={"steps": 10_000_000}
    )
    found = needed(settings)
    # an image, three actions and a reward, three flags, two logs of 4 bytes, frame and phase
    assert found.step_bytes == 64 * 64 * 3 + 4 * 4 + 3 + 8 + 8 + 4
    assert found.replay_memory == 1_000_000 * (found.step_bytes + 42)
    assert found.parameters == 9
    assert found.agent_memory == 9 * 4 * 4


def test_steps_that_never_come_need_no_room():
    few = needed(config(replay={"capacity": 1_000_000}, train={"steps": 1000}))
    assert few.steps == 2000


def test_checkpoints_that_are_kept_need_room_on_disk():
    """Each may hold steps that replay has dropped since, but never more than there were."""
    groups = {"replay": {"capacity": 1000}, "train": {"steps": 100_000}}
    none, two = (needed(config(**groups, record={"keep_at": k})) for k in ((), (5000, 20_000)))
    assert two.replay_disk - none.replay_disk == 2 * 1000 * (none.step_bytes + 42)
    assert two.agent_disk * 3 == none.agent_disk * 5
    groups["train"]["steps"] = 1000
    few = needed(config(**groups, record={"keep_at": (100, 200, 300)}))
    assert few.replay_disk == 2000 * few.step_bytes + 6 * 1000 * 42


def test_steps_on_disk_need_little_memory():
    groups = {"replay": {"capacity": 1_000_000}, "train": {"steps": 10_000_000}}
    memory = needed(config(**groups))
    groups["replay"]["storage"] = "disk"
    disk = needed(config(**groups))
    assert disk.memory < memory.memory / 25
    assert disk.disk == memory.disk


def test_what_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch):
    settings = config(replay={"capacity": 1_000_000}, train={"steps": 10_000_000})
    monkeypatch.setattr(preflight, "free_memory", lambda: 10**9)
    with pytest.raises(PreflightError) as refusal:
        run(settings, tmp_path / "run")
    message = str(refusal.value)
    assert "3.2 GB" in message
    assert "1.0 GB are free" in message
    assert "--replay.capacity or --replay.storage disk" in message
    assert not (tmp_path / "run").exists()


def test_what_does_not_fit_on_disk_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(PreflightError, match=r"needs .* kB of disk .* 1.0 kB are free.*--logdir"):
        run(config(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_a_resumed_run_has_written_is_counted(tmp_path, monkeypatch):
    run(config(train={"steps": 100}), tmp_path / "run")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100_000))
    with pytest.raises(PreflightError):
        run(config(train={"steps": 120}), tmp_path / "new")
    assert run(config(train={"steps": 120}), tmp_path / "run", resume=True).finished


def test_needs_are_printed_before_the_start(tmp_path):
    said = io.StringIO()
    train(config(train={"steps": 20}), tmp_path, console=Console(file=said, width=200))
    text = said.getvalue()
    assert "replay: 40 steps of 3.1 kB" in text
    assert "agent: 9 parameters" in text
    assert "disk: " in text


def test_sizes_are_said_in_words():
    assert [preflight.size(n) for n in (12, 3200, 4.56e6, 12.3e9, 5e12)] == [
        "12 B", "3.2 kB", "4.6 MB", "12.3 GB", "5.0 TB",
    ]  # fmt: skip
