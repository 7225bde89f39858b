"""What updates take of a card's memory, foreseen without one; the card's facts are made up."""

import io
import re
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from helpers import runs
from helpers.device.ours import OURS
from rich.console import Console

from curious_replay.agents.spaces import Spaces
from curious_replay.run import Choice, card, fitting, foreseen, preset
from curious_replay.run.foreseen import CardNeeds
from curious_replay.run.loop.crew import Crew
from curious_replay.run.preflight import PreflightError
from curious_replay.run.saved_run import make_agent
from curious_replay.run.settings.presets import changed
from curious_replay.run.worlds.environments import inspect_env

GB = 10**9
IRIS = {"train.batch_size": 8, "agent.pictures": 6, "agent.starts": 64}  # windows
LARGE = CardNeeds(weights=GB, optimisers=2 * GB, batch=0, activations=16 * GB)


def settings(agent, **train):
    made = preset(Choice(env="crafter", agent=agent, replay="curious", scale="debug"))
    return replace(made, train=replace(made.train, **train)), Spaces(17, discrete=True)


@pytest.mark.slow
@pytest.mark.parametrize("agent", OURS)
def test_updates_of_every_agent_can_be_foreseen(agent):
    config, spaces = settings(agent)
    spaces = replace(spaces, image=(config.env.image_size,) * 2)
    needed = foreseen.foresee(config, spaces)
    made = make_agent(config, spaces)
    assert needed.weights >= sum(4 * each.numel() for each in made.parameters())
    assert needed.activations > needed.batch > 0


def test_a_larger_batch_needs_more_activations_and_no_more_weights():
    config, spaces = settings("dreamerv3")
    spaces = replace(spaces, image=(config.env.image_size,) * 2)
    larger = replace(config, train=replace(config.train, batch_size=4 * config.train.batch_size))
    few, many = (foreseen.foresee(each, spaces) for each in (config, larger))
    assert few.constant == many.constant
    assert many.batch == 4 * few.batch
    assert 2 * few.activations < many.activations < 5 * few.activations
    assert few.optimisers == 8 * sum(
        each.numel() for each in make_agent(config, spaces).parameters() if each.requires_grad
    )


def test_an_agent_that_fake_tensors_cannot_stand_for_is_none():
    assert foreseen.foresee(runs.config(), Spaces(3, discrete=True)) is None


@pytest.mark.slow
def test_an_answer_does_not_depend_on_what_was_asked_before():
    config, spaces = settings("iris", precision="bfloat16")
    spaces = replace(spaces, image=(config.env.image_size,) * 2)
    wanted = {"train.batch_size": 3, "agent.pictures": 5, "agent.starts": 2}
    with foreseen.foreseeing(config, spaces) as ask:
        assert ask({}) != ask(wanted)
        second = ask(wanted)
    train = replace(config.train, batch_size=3)
    own = replace(config.agent, pictures=5, starts=2)
    assert foreseen.foresee(replace(config, train=train, agent=own), spaces) == second


def agent_of(config):
    return make_agent(config, inspect_env(config.choice.env, config.env).spaces)


def on_a_card(monkeypatch, config, share):
    """An agent, and a card that has this share of what its updates take."""
    agent = agent_of(config)
    needed = foreseen.foresee(config, agent.spaces)
    room = fitting.takes(needed) * share
    monkeypatch.setattr(card, "free", lambda device: room + fitting.CONTEXT - needed.weights)
    return agent


def look(config, agent, processes=1, **kwargs):
    said = io.StringIO()
    fitting.check(config, agent, processes, Console(file=said, width=200), **kwargs)
    return said.getvalue()


def advised(refusal):
    """Options that would fit, by name."""
    told = re.search(r"are free: ((?:--\S+ \d+ )*)would fit", str(refusal.value)).group(1).split()
    names = [name.removeprefix("--").replace("-", "_") for name in told[::2]]
    return dict(zip(names, map(int, told[1::2]), strict=True))


@pytest.mark.parametrize(
    ("agent", "processes", "share", "windows"),
    [
        ("dreamerv3", 2, 0.3, {"train.batch_size": 8}),
        pytest.param("dreamerv3", 1, 0.5, {"train.batch_size": 8}, marks=pytest.mark.slow),
        pytest.param("iris", 1, 0.5, IRIS, marks=pytest.mark.slow),
        pytest.param("iris", 2, 0.3, IRIS, marks=pytest.mark.slow),
    ],
)
def test_advice_that_is_followed_is_accepted(agent, processes, share, windows, monkeypatch):
    config = changed(settings(agent)[0], windows)
    made = on_a_card(monkeypatch, config, share)
    with pytest.raises(PreflightError) as refusal:
        look(config, made, processes)
    found = advised(refusal)
    assert found.keys() == windows.keys()
    for name, count in found.items():
        assert count % processes == 0 and processes <= count <= windows[name]
    smaller = changed(config, found)
    assert "for an update" in look(smaller, make_agent(smaller, made.spaces), processes)


@pytest.fixture
def asked(monkeypatch):
    """What is asked, where updates need 19 GB whatever their windows."""
    asked = []

    @contextmanager
    def foreseeing(config, spaces):
        yield lambda windows: asked.append((config, windows)) or LARGE

    monkeypatch.setattr(fitting, "foreseeing", foreseeing)
    return asked


def test_where_no_windows_fit_none_are_promised(monkeypatch, asked):
    """Weights and gradients are as large as ever."""
    monkeypatch.setattr(card, "free", lambda device: 16 * GB)
    config, _ = settings("dreamerv3")
    with pytest.raises(PreflightError) as refusal:
        look(config, agent_of(config))
    message = str(refusal.value)
    assert "needs about 21.9 GB" in message
    assert "16.0 GB activations" in message
    assert "16.4 GB are free: less is taken" in message  # with its weights, which are there
    assert "a smaller --train.batch-size, a smaller --agent.size" in message
    assert len(asked) == 2


def test_a_run_that_is_resumed_is_not_told_what_it_may_not_change(monkeypatch, asked):
    monkeypatch.setattr(card, "free", lambda device: 16 * GB)
    config, _ = settings("dreamerv3", batch_size=8)
    with pytest.raises(PreflightError, match=r"with --train.precision float16; a new run can"):
        look(config, agent_of(config), resumed=True)
    assert len(asked) == 1


def test_the_agent_is_foreseen_in_its_precision_and_its_share_of_all_windows(monkeypatch, asked):
    monkeypatch.setattr(card, "free", lambda device: 100 * GB)
    config = changed(settings("iris")[0], {"train.batch_size": 12, "agent.pictures": 8})
    config = changed(config, {"agent.starts": 4})
    agent = agent_of(config)
    agent.compute_in("bfloat16")
    assert "card: 19.0 GB for an update, 100.0 GB are free" in look(config, agent, processes=4)
    ((used, windows),) = asked
    assert used.train.precision == "bfloat16"
    assert windows == {"train.batch_size": 3, "agent.pictures": 2, "agent.starts": 1}


@pytest.mark.parametrize("resume", [False, True])
def test_a_run_looks_at_its_card_before_the_first_frame(resume, tmp_path, monkeypatch, asked):
    config, folder = runs.config(), tmp_path / "run"
    if resume:
        runs.run(config, folder)
    before = sorted(folder.rglob("*"))
    monkeypatch.setattr(card, "free", lambda device: 8 * GB)
    with pytest.raises(PreflightError, match=r"8.4 GB are free"):
        runs.run(config, folder, resume=resume)
    assert sorted(folder.rglob("*")) == before
    assert len(asked) == (1 if resume else 2)


def test_a_run_of_several_processes_looks_at_its_share(tmp_path, monkeypatch, asked):
    monkeypatch.setattr(Crew, "size", 2)
    monkeypatch.setattr(card, "free", lambda device: 8 * GB)
    with pytest.raises(PreflightError):
        runs.run(runs.config(train={"batch_size": 6, "precision": "bfloat16"}), tmp_path / "run")
    ((config, windows),) = asked
    assert windows == {"train.batch_size": 3}
    assert config.train.precision == "bfloat16"


def test_most_windows_are_looked_for_where_they_should_be():
    """With many windows another part of this update is the most crowded."""
    asked = []

    def taken(windows):
        asked.append(windows["train.batch_size"])
        return max(10 + windows["train.batch_size"], 3 * windows["train.batch_size"] - 20)

    fewer = [{"train.batch_size": count} for count in range(2, 64, 2)]
    found = fitting.most_that_fit(taken, fewer, taken({"train.batch_size": 64}), 100)
    assert found["train.batch_size"] in (36, 38, 40)
    assert taken(found) <= 100
    assert len(asked) <= 2 + fitting.TRIES + 1
    assert fitting.most_that_fit(taken, fewer, 172, 11) is None
    assert fitting.most_that_fit(taken, [], 172, 100) is None  # of one window


def test_several_processes_are_told_what_they_can_share(monkeypatch):
    config = changed(settings("dreamerv3")[0], {"train.batch_size": 10, "agent.starts": 0.1})
    agent = agent_of(config)
    for windows in fitting.fewer_windows(config, agent, 2):
        agent.check_sharing(2, windows["train.batch_size"], config.train.batch_length)
    counts = [each["train.batch_size"] for each in fitting.fewer_windows(config, agent, 2)]
    assert set(counts) < {2, 4, 6, 8}
    assert len(fitting.fewer_windows(config, agent, 1)) == 9


def test_an_agent_that_cannot_be_foreseen_is_let_pass(monkeypatch):
    monkeypatch.setattr(card, "free", lambda device: 0)
    config = runs.config()
    agent = agent_of(config)
    assert "cannot be foreseen" in look(config, agent)


def test_without_a_card_nothing_is_foreseen(tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "foreseeing", lambda *_: pytest.fail("asked"))
    assert card.free(torch.device("cpu")) is None
    assert runs.run(runs.config(), tmp_path).finished
