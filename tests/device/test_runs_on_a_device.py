"""Whole runs on a pretended device, and runs that go from one device to another."""

import io
import json
import re
from dataclasses import replace

import pytest
import torch
from helpers.device.ours import OURS
from helpers.device.pretended import NAME, pretend
from rich.console import Console

from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.agents.dreamer_v3 import DreamerV3
from curious_replay.agents.interface import CARD_STATE, CPU_STATE
from curious_replay.agents.spaces import Spaces
from curious_replay.run import Choice, evaluate, load_agent, preset, saved_run, train
from curious_replay.run.forking import fork

pytestmark = pytest.mark.usefixtures("one_thread")
SPACES = Spaces(3, discrete=True, image=None, vector=4)
WORLDS = {"discrete": "toy/two-rooms", "continuous": "helpers.steered:Steered"}


@pytest.fixture
def use(monkeypatch):
    """Let runs be on a device."""

    def choose(device):
        monkeypatch.setattr(saved_run, "pick_device", lambda *_: device)

    return choose


def settings(name="dreamerv3", steps=13, env="toy/two-rooms"):
    made = preset(Choice(env=env, agent=name, replay="uniform", scale="debug"))
    length = 4
    return replace(
        made,
        env=replace(made.env, processes=False, num_envs=1),
        train=replace(
            made.train, steps=steps, prefill=10, batch_size=2, batch_length=length, ratio=length,
            log_every=1, pretrain=1,
        ),
        eval=replace(made.eval, every=0, max_steps=2),
        record=replace(made.record, video_every=0, probe_every=0, tensorboard=False),
    )  # fmt: skip


def run(config, folder, **kwargs):
    told = io.StringIO()
    train(config, folder, console=Console(file=told, width=1000), **kwargs)
    return told.getvalue()


def metrics(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def resumes(folder):
    return json.loads((folder / "meta.json").read_text())["resumes"]


@pytest.mark.parametrize(
    ("name", "actions"),
    [(n, a) for n in OURS for a in WORLDS if (n, a) != ("iris", "continuous")],  # actions are words
)
def test_a_run_is_trained_forked_resumed_and_evaluated(name, actions, tmp_path, use):
    use(NAME)
    with pretend() as events:
        run(settings(name, env=WORLDS[actions]), tmp_path / "run")
        assert events.kernels
        config = fork(tmp_path / "run", logdir=tmp_path / "fork", settings={"train.steps": 15})
        told = run(config, tmp_path / "fork", resume=True)
        assert "resumed" in told and "another kind of device" not in told
        assert "inexact" not in resumes(tmp_path / "fork")[0]
        (episode,) = evaluate(load_agent(tmp_path / "fork", "cpu"), 1)
    assert episode.values["length"] <= 2
    assert metrics(tmp_path / "fork")[-1]["update"] > metrics(tmp_path / "run")[-1]["update"]


def test_a_resumed_run_is_exact_on_its_device(tmp_path, use):
    use(NAME)
    with pretend():
        run(settings(steps=15), tmp_path / "whole")
        run(settings(steps=13), tmp_path / "parts")
        run(settings(steps=15), tmp_path / "parts", resume=True)
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")


@pytest.mark.parametrize(("first", "then"), [(NAME, "cpu"), ("cpu", NAME)])
def test_a_run_goes_on_on_another_device_and_says_that_it_is_not_exact(first, then, tmp_path, use):
    with pretend():
        use(first)
        run(settings(steps=13), tmp_path / "run")
        use(then)
        told = run(settings(steps=15), tmp_path / "run", resume=True)
        assert "another kind of device" in told
        use(first)
        run(settings(steps=16), tmp_path / "run", resume=True)
    told = [each["inexact"] for each in resumes(tmp_path / "run")]
    assert [re.findall(r"\((\w+)\)", text) for text in told] == [[first, then], [then, first]]
    assert all("random numbers begin anew" in text for text in told)
    assert [each["device"] for each in resumes(tmp_path / "run")] == [then, first]
    assert json.loads((tmp_path / "run" / "meta.json").read_text())["device"] == first
    assert metrics(tmp_path / "run")[-1]["update"] == 4


@pytest.mark.parametrize(("first", "then"), [(NAME, "cpu"), ("cpu", NAME)])
def test_a_run_is_evaluated_and_forked_on_another_device(first, then, tmp_path, use):
    with pretend() as events:
        use(first)
        run(settings(steps=13), tmp_path / "run")
        before = load_agent(tmp_path / "run", "cpu")
        (wanted,) = evaluate(before, 1)
        use(then)
        events.clear()
        now = load_agent(tmp_path / "run", "cpu")
        assert now.agent.device.type == then
        for one, other in zip(before.agent.parameters(), now.agent.parameters(), strict=True):
            assert torch.equal(one.cpu(), other.cpu())
        (found,) = evaluate(now, 1)
        assert found.values == wanted.values
        assert bool(events.kernels) == (then == NAME)
        config = fork(tmp_path / "run", logdir=tmp_path / "fork", settings={"train.steps": 15})
        told = run(config, tmp_path / "fork", resume=True)
        assert f"({first}) than this one ({then})" in told
    meta = json.loads((tmp_path / "fork" / "meta.json").read_text())
    assert meta["device"] == then
    assert f"({first}) than this one ({then})" in meta["resumes"][0]["inexact"]
    assert metrics(tmp_path / "fork")[-1]["update"] > metrics(tmp_path / "run")[-1]["update"]


def test_a_generator_state_of_16_bytes_seeds_the_generator_of_a_cpu():
    agents = [DreamerV3(DreamerV3Config(size="debug"), SPACES, seed) for seed in range(2)]
    drawn = []
    for byte in (1, 2):
        state = torch.full((16,), byte, dtype=torch.uint8)
        saved = {**agents[0].tensors(), "generator": state}
        for agent in agents:
            assert agent.crosses_devices(saved)
            agent.load_tensors(saved)
            drawn.append(tuple(torch.rand(3, generator=agent.generator).tolist()))
    # The state there decides, not what was here before.
    assert drawn[0] == drawn[1] != drawn[2] == drawn[3]
    assert not agents[0].crosses_devices(agents[1].tensors())


@pytest.mark.parametrize("count", [0, CARD_STATE - 1, CPU_STATE - 1])
def test_a_generator_state_of_no_device_is_refused(count):
    agent = DreamerV3(DreamerV3Config(size="debug"), SPACES, 0)
    saved = {**agent.tensors(), "generator": torch.zeros(count, dtype=torch.uint8)}
    with pytest.raises((RuntimeError, TypeError)):
        agent.load_tensors(saved)
