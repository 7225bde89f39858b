"""Two processes that share batches learn what one learns from the whole of them, to rounding."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.agents.sharing import UPDATES, VARIANTS, learned
from helpers.device.ours import OURS
from helpers.processes import PATIENCE

from curious_replay.agents.together import Together, learning, together

HERE = Path(__file__).parents[1]
TOLERANCES = {
    "iris discrete": 2e-3,  # Adam makes a whole step of a gradient that is nothing but rounding
    "plan2explore normalised": 3e-4,  # the deviation is a small difference of squares
}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """What the first of two processes has learned, and the tensors of the second, by variant."""
    folder = tmp_path_factory.mktemp("together")
    places = os.pathsep.join([str(HERE), str(HERE.parent)])
    command = [sys.executable, "-m", "helpers.agents.sharing"]
    running = [
        subprocess.Popen(
            [*command, str(rank), "2", folder / "meeting", folder / f"{rank}"],
            env={**os.environ, "PYTHONPATH": places},
        )
        for rank in range(2)
    ]
    assert [each.wait(PATIENCE) for each in running] == [0, 0]
    first, second = (torch.load(folder / f"{rank}", weights_only=False) for rank in range(2))
    return {name: (*first[name], other) for name, other in zip(VARIANTS, second, strict=True)}


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_processes_learn_what_one_does(shared, variant):
    found, term, tensors, _ = shared[variant]
    wanted, term_alone, alone = learned(variant)
    assert term == term_alone == "model/reward"
    assert len(found) == len(wanted) == UPDATES
    tolerance = TOLERANCES.get(variant, 3e-5)
    for update, (ours, other) in enumerate(zip(found, wanted, strict=True)):
        close = min(tolerance, 3e-4) if update == 0 else tolerance
        assert ours.metrics == pytest.approx(other.metrics, rel=close, abs=1e-5)
        assert ours.signals.keys() == other.signals.keys()
        for name, signal in other.signals.items():
            np.testing.assert_allclose(ours.signals[name], signal, rtol=close, atol=1e-4)
    assert torch.equal(tensors["generator"], alone["generator"])
    for name, tensor in alone.items():
        if name.startswith("network."):
            torch.testing.assert_close(tensors[name], tensor, rtol=1e-4, atol=tolerance)


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_processes_have_the_same_agent(shared, variant):
    *_, tensors, others = shared[variant]
    assert tensors.keys() == others.keys()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, others[name]), name


def test_every_agent_of_the_registry_is_tried():
    assert {name for name, _, _ in VARIANTS.values()} == {*OURS}


def test_alone_nothing_is_changed():
    x = torch.arange(6.0).view(2, 3)
    alone = together()
    for same in (alone.mean(x), alone.gather(x, 1), alone.part(x, 1), alone.average([x])[0]):
        assert same is x
    assert alone.agree(False) is False


def test_others_are_there_in_an_update_only():
    others = Together()
    with learning(others):
        assert together() is others
    assert together() is not others
