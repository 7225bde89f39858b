"""Runs that a graphics card has no memory for, at any moment: what they say, and how they go on."""

from types import SimpleNamespace

import pytest
import torch
from helpers import runs
from helpers.fake_agent import FakeAgent

from curious_replay.run.card import CardMemoryError
from curious_replay.run.loop.crew import Crew
from curious_replay.run.record.files import read_json

FULL = "CUDA out of memory. Tried to allocate 2.00 GiB"
GOES_ON = r"--train.precision float16; a new run can .*--train.batch-size.*--resume.*2.00 GiB"


def config(**groups):
    """A run that evaluates and records videos on its way, and then goes on."""
    every = {"eval": {"every": 40, "max_steps": 10}, "record": {"video_every": 40}}
    return runs.config(**{"train": {"steps": 120}, **every, **groups})


@pytest.fixture
def one_card(monkeypatch):
    """Pretend that errors can ask PyTorch about a card."""
    facts = SimpleNamespace(name="T4", total_memory=16 * 10**9, major=7, minor=5)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: facts)


def fail(monkeypatch, kind, name, number, counts=lambda *_: True, *, at_first=False):
    """Let a method have no memory at this one of the calls that count, `at_first` or at its end."""
    real, made = getattr(kind, name), []

    def full(self, *args, **kwargs):
        made.extend([1] if counts(*args, *kwargs.values()) else [])
        result = None if at_first else real(self, *args, **kwargs)
        if len(made) == number:
            raise torch.OutOfMemoryError(FULL)
        return real(self, *args, **kwargs) if at_first else result

    monkeypatch.setattr(kind, name, full)


def goes_on(settings, folder, monkeypatch, *failure, **kwargs):
    """Compare a run that fails once with one that does not; return what was saved then."""
    runs.run(settings, folder / "whole")
    with monkeypatch.context() as patched:
        fail(patched, *failure, **kwargs)
        with pytest.raises(CardMemoryError, match=GOES_ON):
            runs.run(settings, folder / "cut")
    newest = max((folder / "cut/checkpoints").iterdir(), key=lambda path: path.name)
    state = read_json(newest / "state.json")
    runs.run(settings, folder / "cut", resume=True)
    assert runs.lines(folder / "cut") == runs.lines(folder / "whole")
    return state


def explores(state, observation, generator, explore):
    return explore


def evaluates(state, observation, generator, explore):
    return not explore


@pytest.mark.parametrize(
    ("failure", "step"),
    [(("act", 15, explores), 34), (("act", 15, evaluates), 80), (("open_loop", 2), 80)],
    ids=["acting", "evaluation", "video"],
)
def test_a_run_is_saved_wherever_memory_is_used_up_and_goes_on_exactly(
    failure, step, tmp_path, monkeypatch
):
    state = goes_on(config(), tmp_path, monkeypatch, FakeAgent, *failure)
    assert state["counters"]["step"] == step  # and not that of an earlier checkpoint
    assert state["owed"] == 0


def test_a_world_that_changes_at_that_step_has_changed_once(tmp_path, monkeypatch):
    """What is new is counted from that step on, which is not stored before actions are chosen."""
    settings = runs.config(
        "toy/two-rooms",
        env={"schedule": ((0, "empty"), (40, "object")), "length": 11},
        train={"steps": 80, "log_every": 10},
        replay={"clear_at_change": 1},
    )
    goes_on(settings, tmp_path, monkeypatch, FakeAgent, "act", 21, explores)


def test_an_update_without_memory_is_made_with_the_batch_that_it_had(tmp_path, monkeypatch):
    state = goes_on(runs.config(), tmp_path, monkeypatch, FakeAgent, "update", 4, at_first=True)
    learner = state["learner"]
    assert learner["updates"] == 3
    assert learner["failed"]["ids"] != learner["next"]["ids"]


def test_an_agent_that_does_not_fit_is_told_of_before_anything_begins(tmp_path, monkeypatch):
    fail(monkeypatch, FakeAgent, "__init__", 1)
    with pytest.raises(CardMemoryError, match=r"less is taken with a smaller.*Nothing was begun"):
        runs.run(runs.config(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("kind", "name"), [(FakeAgent, "load_tensors"), (Crew, "begin")])
def test_a_lack_of_memory_where_a_run_goes_on_is_told_of(kind, name, tmp_path, monkeypatch):
    runs.run(runs.config(train={"steps": 40}), tmp_path)
    more = runs.config(train={"steps": 60})
    with monkeypatch.context() as patched:
        fail(patched, kind, name, 1)
        with pytest.raises(CardMemoryError, match=GOES_ON):
            runs.run(more, tmp_path, resume=True)
    assert runs.run(more, tmp_path, resume=True).finished
