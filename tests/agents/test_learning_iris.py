"""IRIS learns: better than what can be had without learning."""

from dataclasses import replace

import numpy as np
import pytest
from test_learning import random_walk

from curious_replay.agents.iris import Iris
from curious_replay.agents.spaces import Spaces
from curious_replay.run import Choice, preset
from curious_replay.run.loop.learner import Learner

pytestmark = pytest.mark.usefixtures("one_thread")
CHOICE = Choice(env="toy/mirror", agent="iris", replay="uniform", scale="mini")


def entropy(classes):
    """Of what is found, in nats: the loss of the best constant prediction."""
    shares = np.unique(classes, return_counts=True)[1] / classes.size
    return -(shares * np.log(shares)).sum()


@pytest.mark.slow
def test_world_model_beats_what_needs_no_learning(tmp_path):
    """Floors from the data: the mean picture, and how often each token, reward and end occurs."""
    buffer = random_walk(600, 8)
    settings = preset(CHOICE)
    config = replace(settings.agent, actor_after=10**6)  # the world model is on trial
    agent = Iris(config, Spaces(4, discrete=True, image=(32, 32)), seed=0)
    learner = Learner(
        agent, buffer, settings.train.batch_size, settings.train.batch_length,
        skip_nonfinite=False, nonfinite_limit=1, folder=tmp_path, replayed=lambda ids: None,
    )  # fmt: skip
    for update in range(700):
        learner.update()
        if update == 649:
            learner.averages.take()
    learner.close()
    losses = learner.averages.take()
    test = buffer.sample(400)
    pictures = test["image"] / 127.5 - 1
    assert losses["tokenizer/reconstruction"] < 0.4 * pictures.var((0, 1)).mean()
    tokens = agent._tokens(test["image"][:64]).flatten(0, 1).numpy()
    assert losses["model/tokens"] < 0.75 * sum(entropy(place) for place in tokens.T)
    led = ~test["is_first"]
    for name, classes in (("reward", np.sign(test["reward"])), ("end", test["is_terminal"])):
        assert losses[f"model/{name}"] < 0.6 * entropy(classes[led]) * led.mean()
