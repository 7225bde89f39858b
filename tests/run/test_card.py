"""What a run says of its graphics card, without one: PyTorch's answers are made up."""

import re
from types import SimpleNamespace

import pytest
import torch
from helpers import runs
from helpers.fake_agent import FakeAgent

from curious_replay.run import Choice, card, preset
from curious_replay.run.card import CardMemoryError
from curious_replay.run.record.files import read_json
from curious_replay.run.record.record_files import read_meta
from curious_replay.run.settings.presets import changed

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
    assert card.free(CUDA) == 3 * 10**9
    assert card.memory(CUDA) == {"card_bytes": 5, "card_peak_bytes": 7}
    monkeypatch.setattr(card, "nvidia_cards", lambda wanted: [["550.54"], ["550.54"]])
    assert card.remarks(CUDA)["card"].items() >= {"name": "T4", "driver": "550.54"}.items()
    monkeypatch.setattr(card, "nvidia_cards", lambda wanted: [])
    assert card.remarks(CUDA)["card"]["driver"] is None
    assert card.shown(CUDA) == {"card/peak_GB": 7e-9, "card/memory_GB": 16.0}


def test_a_processor_is_none():
    assert card.find(CPU) is None
    assert card.free(CPU) is None
    assert card.memory(CPU) == {}
    assert card.shown(CPU) == {}
    assert card.remarks(CPU) == {"device": "cpu", "card": None}


@pytest.fixture
def new_card(one_card, monkeypatch):
    """Pretend that it is newer, and computes in bfloat16."""
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)


@pytest.mark.parametrize("graphs", [True, False])
def test_a_lack_of_memory_says_what_a_recorded_update_takes(new_card, graphs):
    config = changed(preset(Choice()), {"train.graphs": graphs})
    with pytest.raises(CardMemoryError) as error, card.advising(config, CUDA):
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


def test_a_run_without_memory_is_saved_and_says_what_would_help(tmp_path, monkeypatch, one_card):
    """It goes on from there: the update that failed is made with the batch that it had."""
    whole = tmp_path / "whole"
    runs.run(runs.config(), whole)
    update, made = FakeAgent.update, []

    def full(self, batch, unread=()):
        if len(made) == 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        made.append(1)
        return update(self, batch, unread)

    cut = tmp_path / "cut"
    with monkeypatch.context() as patched:
        patched.setattr(FakeAgent, "update", full)
        with pytest.raises(CardMemoryError, match=r"--train.batch-size.*--resume.*2.00 GiB"):
            runs.run(runs.config(), cut)
    newest = max((cut / "checkpoints").iterdir(), key=lambda path: path.name)
    learner = read_json(newest / "state.json")["learner"]
    assert learner["updates"] == 3
    assert learner["failed"]["ids"] != learner["next"]["ids"]
    runs.run(runs.config(), cut, resume=True)
    assert runs.lines(cut) == runs.lines(whole)
