"""What a run says of its graphics card, without one: PyTorch's answers are made up."""

import io
import json
import re
from types import SimpleNamespace

import pytest
import torch
from helpers import runs
from helpers.fake_agent import FakeAgent
from rich.console import Console

from curious_replay.run import Choice, card, preset, train
from curious_replay.run.card import CardMemoryError
from curious_replay.run.forking import fork
from curious_replay.run.record.record_files import read_meta
from curious_replay.run.settings.presets import changed

HOW = {"threads", "processes", "device", "card", "precision", "graphs"}
CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def one_card(monkeypatch):
    """Pretend that PyTorch sees a card with 3 of its 16 GB free."""
    facts = SimpleNamespace(name="T4", total_memory=16 * 10**9, major=7, minor=5)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: facts)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (3 * 10**9, 16 * 10**9))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 5)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 7)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))


def test_a_card_is_described(one_card, monkeypatch):
    found = card.find(CUDA)
    assert (found.name, found.memory, found.capability) == ("T4", 16 * 10**9, "7.5")
    assert card.named(CUDA) == "cuda, T4"
    assert card.free(CUDA) == 3 * 10**9
    assert card.memory(CUDA) == {"card_bytes": 5, "card_peak_bytes": 7}
    monkeypatch.setattr(card, "nvidia_cards", lambda wanted: [["550.54"], ["550.54"]])
    assert card.remarks(CUDA)["card"].items() >= {"name": "T4", "driver": "550.54"}.items()
    monkeypatch.setattr(card, "nvidia_cards", lambda wanted: [])
    assert card.remarks(CUDA)["card"]["driver"] is None
    assert card.shown(CUDA) == {"card/peak_GB": 7e-9, "card/memory_GB": 16.0}


def test_a_processor_is_none():
    assert card.find(CPU) is None
    assert card.named(CPU) == "cpu"
    assert card.free(CPU) is None
    assert card.memory(CPU) == {}
    assert card.shown(CPU) == {}
    assert card.remarks(CPU) == {"device": "cpu", "card": None}


@pytest.fixture
def new_card(one_card, monkeypatch):
    """Pretend that it is newer, and computes in bfloat16."""
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)


@pytest.mark.parametrize("graphs", [True, False])
def test_a_lack_of_memory_says_what_a_recorded_update_takes(new_card, graphs, tmp_path):
    config = changed(preset(Choice()), {"train.graphs": graphs})
    with pytest.raises(CardMemoryError) as error, card.advising(config, CUDA, tmp_path):
        raise torch.OutOfMemoryError("CUDA out of memory")
    assert ("--train.no-graphs" in str(error.value)) == graphs
    assert "of T4 (16.0 GB) is used up" in str(error.value)


OPTIONS = {
    "dreamerv3": ["--train.batch-size", "--agent.size", "--agent.starts"],
    "plan2explore": ["--train.batch-size", "--agent.dreamer.size", "--agent.dreamer.starts"],
    "iris": ["--train.batch-size", "--agent.size", "--agent.starts", "--agent.pictures"],
    "fake": ["--train.batch-size"],
}


@pytest.mark.parametrize("agent", OPTIONS)
def test_options_are_named_that_the_agent_has(agent, one_card):
    config = preset(Choice(agent=agent))
    told = card.smaller(config, CUDA, resumed=False)
    assert re.findall(r"smaller (--\S+)(?:,|$)", told) == OPTIONS[agent]
    assert told.endswith("--train.precision float16")  # an old card has nothing else


def test_a_precision_of_few_bits_is_not_advised_twice(new_card):
    config = preset(Choice())  # in bfloat16, by default
    told = card.smaller(config, CUDA, resumed=True)
    assert told.startswith("a new run can have a smaller --train.batch-size")
    exact = changed(config, {"train.precision": "float32"})
    assert "less is taken with --train.precision bfloat16; a new" in card.smaller(
        exact, CUDA, resumed=True
    )


def test_a_run_remembers_where_it_computed(tmp_path):
    runs.run(runs.config(), tmp_path)
    assert read_meta(tmp_path)["device"] == "cpu"
    assert read_meta(tmp_path)["card"] is None


@pytest.fixture
def use(monkeypatch):
    """Let runs believe that they compute on another card, with another driver."""

    def choose(name):
        facts = {"name": name, "memory": 10**9, "driver": f"driver of {name}"}
        told = {"device": "cuda", "card": facts}
        monkeypatch.setattr(card, "remarks", lambda device: told)
        monkeypatch.setattr(card, "named", lambda device: f"cuda, {name}")
        return told

    return choose


def steps(count):
    return runs.config(train={"steps": count})


def where(meta):
    return {name: meta[name] for name in ("device", "card")}


def test_each_resume_remembers_its_card_and_a_fork_its_own(tmp_path, use):
    first = use("T4")
    runs.run(steps(40), tmp_path / "run")
    second = use("A100")
    runs.run(steps(60), tmp_path / "run", resume=True)
    meta = read_meta(tmp_path / "run")
    assert where(meta) == first
    assert [where(each) for each in meta["resumes"]] == [second]
    assert meta["resumes"][0].keys() >= HOW
    config = fork(tmp_path / "run", logdir=tmp_path / "fork", settings={"train.steps": 80})
    assert not HOW & read_meta(tmp_path / "fork").keys()  # nothing was computed
    third = use("H100")
    runs.run(config, tmp_path / "fork", resume=True)
    fourth = use("L4")
    more = changed(config, {"train.steps": 100})
    runs.run(more, tmp_path / "fork", resume=True)
    meta = read_meta(tmp_path / "fork")
    assert where(meta) == third
    assert [where(each) for each in meta["resumes"]] == [third, fourth]
    assert where(read_meta(tmp_path / "run")) == first


def test_a_run_that_crosses_devices_says_from_where_to_where(tmp_path, use, monkeypatch):
    use("T4")
    runs.run(steps(40), tmp_path)
    use("A100")
    monkeypatch.setattr(FakeAgent, "crosses_devices", lambda self, tensors: True)
    runs.run(steps(60), tmp_path, resume=True)
    (resume,) = read_meta(tmp_path)["resumes"]
    assert "kind of device (cuda, T4) than this one (cuda, A100)" in resume["inexact"]


def test_what_is_taken_of_a_card_is_shown_and_recorded(tmp_path, monkeypatch):
    told = {"card_bytes": 5, "card_peak_bytes": 7}
    monkeypatch.setattr(card, "memory", lambda device: told)
    monkeypatch.setattr(card, "shown", lambda device: {"card/peak_GB": 7.25})
    said = io.StringIO()
    config = runs.config(train={"steps": 40}, record={"print_seconds": 0.0})
    train(config, tmp_path, console=Console(file=said, width=1000))
    assert "card/peak_GB 7.25" in said.getvalue()
    lines = (tmp_path / "speed.jsonl").read_text().splitlines()
    assert lines
    for line in lines:
        assert json.loads(line).items() >= told.items()
