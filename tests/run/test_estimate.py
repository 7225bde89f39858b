"""How long a run will take: few updates are tried, and nothing of the run depends on them."""

import math
import time
from dataclasses import replace

import pytest
import torch
from helpers import fake_agent
from helpers.runs import config

from curious_replay import cli
from curious_replay.agents.spaces import Spaces
from curious_replay.commands import sweep
from curious_replay.experiments import hours
from curious_replay.run import Choice, estimate, preset, trial
from curious_replay.run.settings.agents import AGENTS

SPACES = Spaces(actions=3, discrete=True, image=(32, 32), vector=2)


@pytest.fixture
def clock(monkeypatch):
    """Time passes in updates alone: `cost(windows)` seconds each; also, which windows were used."""
    now, tried, update = [0.0], [], fake_agent.FakeAgent.update

    def costs(cost):
        def costly(self, batch):
            tried.append(len(batch["reward"]))
            now[0] += cost(tried[-1])
            return update(self, batch)

        monkeypatch.setattr(fake_agent.FakeAgent, "update", costly)
        return lambda: now[0]

    return costs, tried


def test_a_cheap_update_is_tried_whole(clock):
    costs, tried = clock
    made = config(train={"batch_size": 8})
    cost = costs(lambda windows: 0.01 * windows)
    assert estimate.seconds_per_update(made, SPACES, cost) == pytest.approx(0.08)
    assert tried == [1, 1, 8, 8]


def test_of_an_expensive_update_a_part_is_tried(clock):
    costs, tried = clock
    made = config(train={"batch_size": 16})
    cost = costs(lambda windows: 1 + 0.5 * windows)
    assert estimate.seconds_per_update(made, SPACES, cost) == pytest.approx(9)
    assert tried == [1, 1, 2]


def test_an_update_is_as_precise_as_those_of_the_run(monkeypatch):
    found, update = [], fake_agent.FakeAgent.update

    def look(self, batch):
        found.append(self.precision)
        return update(self, batch)

    monkeypatch.setattr(fake_agent.FakeAgent, "update", look)
    for asked in ("bfloat16", "auto"):
        made = config(train={"precision": asked})
        assert estimate.seconds_per_update(made, SPACES, time.process_time) > 0
    assert found == ["bfloat16"] * 4 + ["float32"] * 4


def test_a_report_is_of_updates_as_runs_make_them(monkeypatch):
    found = []

    def look(made, spaces, clock):
        found.append((made.choice.scale, torch.are_deterministic_algorithms_enabled()))
        return 1.0

    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    monkeypatch.setattr(trial, "seconds_per_update", look)
    monkeypatch.setattr(trial.precision, "pick", lambda asked, device: f"{asked} on {device}")
    monkeypatch.setattr(trial, "pick_device", lambda name: "cpu")
    try:
        assert trial.measure()["precision"] == "auto on cpu"
    finally:
        torch.use_deterministic_algorithms(before, warn_only=True)
    assert found == [("debug", True), ("mini", True)]


def test_an_agent_that_cannot_learn_from_noise_has_no_time():
    blind = replace(SPACES, image=None, vector=0)
    assert math.isnan(estimate.seconds_per_update(config(), blind, time.process_time))
    assert estimate.in_words(math.nan) == "very long"


@pytest.mark.parametrize("agent", [name for name in AGENTS if name != "fake"])
@pytest.mark.parametrize("world", ["toy/mirror", "control/cartpole_balance"])
def test_every_agent_is_measured(agent, world):
    if agent == "iris" and world.startswith("control"):
        pytest.skip("it has discrete actions only")
    made = preset(Choice(env=world, agent=agent, scale="debug"))
    made = replace(made, train=replace(made.train, threads=1))
    before = torch.get_num_threads()
    spaces = estimate.likely_spaces(made)
    assert 0 < estimate.seconds_per_update(made, spaces, time.process_time) < math.inf
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(5, "1 minutes"), (3000, "50 minutes"), (9000, "2 hours"), (1e8, "1,157 days")],
)
def test_time_in_words(seconds, words):
    assert estimate.in_words(seconds) == words


def test_published_sizes_on_a_cpu_are_warned_of(tmp_path, monkeypatch, capsys):
    day = 86400.0 * torch.get_num_threads()  # of all of them
    monkeypatch.setattr(estimate, "seconds_per_update", lambda *given: day)
    command = ["train", "--env", "toy/count", "--agent", "fake", "--logdir", str(tmp_path / "run"),
               "--train.ratio", "0.1", "--train.prefill", "10", "--train.steps", "20",
               "--replay.capacity", "2000", "--record.no-tensorboard"]  # fmt: skip
    assert cli.main([*command, "--scale", "paper"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "on this CPU the 1 updates of this run take about 24 hours. --scale mini" in said
    resume = ["train", "--logdir", str(tmp_path / "run"), "--resume", "--train.steps", "25"]
    assert cli.main(resume) == 0
    assert "warning" not in capsys.readouterr().out  # whoever resumes it knows
    assert cli.main([*command, "--scale", "mini", "--logdir", str(tmp_path / "mini")]) == 0
    assert "warning" not in capsys.readouterr().out


def test_a_sweep_of_published_size_is_warned_of(tmp_path, monkeypatch, capsys):
    class ReachedError(Exception):
        pass

    def launch(*_):
        raise ReachedError

    monkeypatch.setattr(sweep, "launcher", launch)
    monkeypatch.setattr(hours, "_measure", lambda config: 0.36)
    command = ["sweep", "toy-mirror", "--scale", "paper", "--seeds", "1", "--only", "DreamerV3",
               "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]  # fmt: skip
    with pytest.raises(ReachedError):
        cli.main(command)
    said = " ".join(capsys.readouterr().out.split())
    updates = preset(Choice(env="toy/mirror", replay="uniform", scale="paper")).updates()
    assert f"take about {hours.short(updates * 0.36 / 3600)} hours of one core" in said
