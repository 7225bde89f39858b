"""What updates take of a card's memory, foreseen without one; the card's facts are made up."""

from dataclasses import replace

import pytest
import torch
from helpers import runs
from helpers.device.ours import OURS

from curious_replay.agents.spaces import Spaces
from curious_replay.run import Choice, card, foreseen, preflight, preset, training
from curious_replay.run.foreseen import CardNeeds
from curious_replay.run.preflight import PreflightError
from curious_replay.run.saved_run import make_agent

GB = 10**9
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


def test_what_fits_is_not_refused():
    preflight.check_card(LARGE, 24 * GB, 16, card.smaller(graphs=False))


def test_what_does_not_fit_is_refused_with_the_batch_that_would():
    with pytest.raises(PreflightError) as refusal:
        preflight.check_card(LARGE, 16 * GB, 16, card.smaller(graphs=False))
    message = str(refusal.value)
    assert "needs about 21.9 GB" in message
    assert "16.0 GB activations" in message
    assert "15.4 GB are free" in message
    assert "--train.batch-size 10 would fit" in message
    assert "--agent.size" in message
    smaller = replace(LARGE, activations=10 * GB)
    preflight.check_card(smaller, 16 * GB, 10, card.smaller(graphs=False))


def test_where_weights_alone_do_not_fit_no_batch_does():
    with pytest.raises(PreflightError) as refusal:
        preflight.check_card(LARGE, 3 * GB, 16, card.smaller(graphs=False))
    assert "would fit" not in str(refusal.value)


def test_a_run_looks_at_its_card_before_the_first_frame(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(card, "free", lambda device: 8 * GB)
    monkeypatch.setattr(training.foreseen, "foresee", lambda *given: asked.append(given) or LARGE)
    with pytest.raises(PreflightError, match=r"8.4 GB are free"):  # with its weights, 1 GB
        runs.run(runs.config(), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    ((config, _),) = asked
    assert config.train.batch_size == runs.config().train.batch_size


def test_without_a_card_nothing_is_foreseen(tmp_path, monkeypatch):
    monkeypatch.setattr(training.foreseen, "foresee", lambda *_: pytest.fail("asked"))
    assert card.free(torch.device("cpu")) is None
    assert runs.run(runs.config(), tmp_path).finished
