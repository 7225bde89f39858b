"""How precisely runs compute: the option, what the device has, and runs of earlier versions."""

from dataclasses import dataclass, replace

import pytest
import torch
from helpers import runs
from helpers.runs import config as run_config

from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config
from curious_replay.agents.dreamer_v3 import DreamerV3
from curious_replay.agents.spaces import Spaces
from curious_replay.commands import fork, train
from curious_replay.errors import UsageError
from curious_replay.run import Choice, precision, preset
from curious_replay.run.record.files import read_json, write_json
from curious_replay.run.record.record_files import read_meta
from curious_replay.run.settings.agents import AGENTS, register_agent
from curious_replay.run.settings.config import Config, load_config
from curious_replay.run.settings.presets import changed

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def card(monkeypatch):
    """Pretend that PyTorch sees a card of this generation."""

    def put(major):
        cuda = torch.cuda
        monkeypatch.setattr(cuda, "is_bf16_supported", lambda including_emulation: major >= 8)
        monkeypatch.setattr(cuda, "get_device_capability", lambda device: (major, 0))
        monkeypatch.setattr(cuda, "get_device_name", lambda device: "T4")

    return put


@pytest.mark.parametrize(
    ("asked", "old", "new"),
    [
        ("auto", "float32", "bfloat16"),
        ("float32", "float32", "float32"),
        ("tf32", "float32", "tf32"),
        ("float16", "float16", "float16"),
    ],
)
def test_what_a_card_has_is_used(asked, old, new, card):
    card(7)
    assert precision.pick(asked, CUDA) == old
    card(8)
    assert precision.pick(asked, CUDA) == new


def test_a_card_without_bfloat16_is_told_what_it_has(card):
    card(7)
    with pytest.raises(UsageError, match=r"T4 has no units.*float16 or float32"):
        precision.pick("bfloat16", CUDA)


@pytest.mark.parametrize(
    ("asked", "used"),
    [("auto", "float32"), ("tf32", "float32"), ("bfloat16", "bfloat16"), ("float16", "float16")],
)
def test_a_cpu_computes_in_float32_unless_told_otherwise(asked, used):
    assert precision.pick(asked, CPU) == used


@pytest.mark.parametrize(("asked", "allowed"), [("tf32", True), ("float32", False)])
def test_tf32_is_allowed_where_it_was_asked_for(asked, allowed, card, monkeypatch):
    card(8)
    backends = torch.backends
    before = backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32
    agent = DreamerV3(DreamerV3Config(size="debug"), Spaces(3, True, None, 4), 0)
    agent.device = CUDA
    try:
        precision.apply(agent, asked)
        assert backends.cuda.matmul.allow_tf32 == backends.cudnn.allow_tf32 == allowed
    finally:
        backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = before


@pytest.mark.parametrize("agent", ["dreamerv3", "plan2explore", "iris"])
def test_the_option_is_one_for_all_agents(agent):
    names = ["--agent", agent, "--scale", "debug"]
    assert train.parse([*names, "--train.precision", "float16"]).config.train.precision == "float16"
    assert train.parse(names).config.train.precision == "auto"


@pytest.mark.parametrize("option", ["--agent.precision", "--agent.dreamer.precision"])
def test_old_names_are_refused_with_the_new_one(option, tmp_path):
    for given in ([option, "bfloat16"], [f"{option}=bfloat16"]):
        with pytest.raises(UsageError, match=f"{option} is now --train.precision"):
            train.parse(["--agent", "plan2explore", *given])
    write_json(tmp_path / "config.json", preset(Choice()).to_json())
    with pytest.raises(UsageError, match=f"{option} is now --train.precision"):
        fork.parse([str(tmp_path), "--logdir", "new", option, "bfloat16"])
    agent = "plan2explore" if "dreamer" in option else "dreamerv3"
    with pytest.raises(UsageError, match=f"{option} is now --train.precision"):
        changed(preset(Choice(agent=agent)), {option.removeprefix("--"): "bfloat16"})


def old_settings(agent, where):
    values = preset(Choice(agent=agent, scale="debug")).to_json()
    del values["train"]["precision"]
    if where is not None:
        group = values["agent"]
        for name in where:
            group = group[name]
        group["precision"] = "bfloat16"
    return values


@pytest.mark.parametrize(
    ("agent", "where", "used"),
    [
        ("dreamerv2", (), "bfloat16"),
        ("plan2explore-v3", ("dreamer",), "bfloat16"),
        ("iris", None, "float32"),
    ],
)
def test_runs_of_earlier_versions_are_read(agent, where, used):
    assert Config.from_json(old_settings(agent, where)).train.precision == used


@dataclass(frozen=True)
class OwnConfig:
    precision: str = "coarse"


def test_an_agent_of_the_users_own_keeps_a_setting_of_that_name(monkeypatch):
    monkeypatch.setattr("curious_replay.run.settings.agents.AGENTS", AGENTS)
    register_agent("own", OwnConfig, "nowhere:Nothing")
    try:
        values = preset(Choice(agent="own", scale="debug")).to_json()
        found = Config.from_json(values)
        assert (found.agent.precision, found.train.precision) == ("coarse", "auto")
        command = train.parse(["--agent", "own", "--agent.precision", "fine"])
        assert command.config.agent.precision == "fine"
    finally:
        del AGENTS["own"]


def test_a_run_remembers_its_precision_and_may_change_it(tmp_path):
    config = run_config()
    runs.run(config, tmp_path)
    assert read_meta(tmp_path)["precision"] == "float32"
    more = replace(config.train, steps=config.train.steps + 2, precision="float16")
    runs.run(replace(config, train=more), tmp_path, resume=True)
    assert read_meta(tmp_path)["resumes"][-1]["precision"] == "float16"
    assert load_config(tmp_path).train.precision == "float16"
    assert read_json(tmp_path / "config.json")["train"]["precision"] == "float16"
