"""What is not finite is judged on the device, changes nothing, and is told at the end."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.blocks.prototypes import Prototypes
from curious_replay.agents.blocks.returns import ReturnScale, RunningDeviation
from curious_replay.agents.blocks.slow_copy import SlowCopy, TargetCopy
from curious_replay.agents.feedback import FiniteCheck
from curious_replay.agents.interface import NonFiniteError
from curious_replay.agents.precision import LossScale

CPU = torch.device("cpu")
NAN, ONE = torch.tensor(torch.nan), torch.tensor(1.0)


def layer():
    torch.manual_seed(0)
    return nn.Linear(2, 2)


def optimiser_of(module):
    return Optimiser(module, lr=0.1, eps=1e-5, clip=10.0, decay=0.1, raw_epsilon=True)


def loss_of(module):
    return module(torch.ones(1, 2)).square().sum()


def state_of(module, optimiser):
    everything = {**module.state_dict(), **optimiser.tensors()}
    return {name: value.clone() for name, value in everything.items()}


@pytest.mark.parametrize("steps_before", [0, 3])
def test_a_step_that_is_not_fine_is_as_if_it_had_not_been(steps_before):
    module = layer()
    optimiser, finite = optimiser_of(module), FiniteCheck(CPU)
    for _ in range(steps_before):
        finite.step("part", optimiser, loss_of(module))
    other = copy.deepcopy(module)
    twin = optimiser_of(other)
    twin.load_tensors(optimiser.tensors())

    finite.check("part", {"good": ONE, "bad": NAN})
    before = module.weight.clone()
    finite.step("part", optimiser, loss_of(module))
    assert torch.equal(module.weight, before)
    with pytest.raises(NonFiniteError, match=r"^part/bad is"):
        finite.report({}, {"loss": ONE}).read()

    for each, its_optimiser in ((module, optimiser), (other, twin)):
        FiniteCheck(CPU).step("part", its_optimiser, loss_of(each))
    left, right = state_of(module, optimiser), state_of(other, twin)
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)
    assert optimiser.steps.item() == twin.steps.item() == steps_before + 1


def test_what_decides_on_steps_stays_where_it_is():
    """A graph of kernels knows tensors by their addresses."""
    module = layer()
    optimiser = optimiser_of(module)
    optimiser.loss_scale = LossScale(CPU)

    def addresses():
        kept = (optimiser.steps, optimiser.loss_scale.factor, optimiser.loss_scale.good)
        return [each.data_ptr() for each in kept]

    before = addresses()
    optimiser.step(loss_of(module))
    optimiser.load_tensors(state_of(module, optimiser))
    optimiser.step(loss_of(module))
    assert addresses() == before
    assert optimiser.steps == optimiser.loss_scale.good == 2


def test_a_gradient_that_is_not_finite_stops_all_that_follows():
    module, later = layer(), layer()
    finite = FiniteCheck(CPU)
    finite.step("first", optimiser_of(module), loss_of(module) * torch.inf)
    finite.step("later", optimiser_of(later), loss_of(later))
    assert torch.equal(later.weight, layer().weight)
    with pytest.raises(NonFiniteError, match="first/gradient"):
        finite.report({}, {"loss": ONE}).read()


def test_names_have_the_prefix_of_where_they_are():
    finite = FiniteCheck(CPU)
    with finite.named("explore_"):
        finite.check("actor", {"fine": ONE})
        finite.check("actor", {"loss": -ONE / 0})
    finite.check("actor", {"loss": NAN})
    with pytest.raises(NonFiniteError, match=r"^explore_actor/loss is"):
        finite.report({}, {"loss": ONE}).read()


def test_feedback_has_each_signal_by_row_and_each_metric():
    finite = FiniteCheck(CPU)
    finite.check("model", {"loss": torch.ones(3, 2)})
    signals = {"model": torch.arange(6.0).view(3, 2), "td": torch.full((3, 2), torch.nan)}
    feedback = finite.report(signals, {"a": torch.tensor(0.1), "b": torch.tensor(3)}).read()
    assert feedback.metrics == {"a": np.float32(0.1), "b": 3.0}
    assert feedback.signals["model"].tolist() == [[0, 2, 4], [1, 3, 5]]
    assert feedback.signals["model"].dtype == np.float32
    assert np.isnan(feedback.signals["td"]).all() and feedback.signals["td"].shape == (2, 3)


def moved_prototypes():
    torch.manual_seed(0)
    prototypes = Prototypes(4, 3, frozen_updates=2)
    prototypes.matrix.data.mul_(2)
    return prototypes


AVERAGES = {
    "slow": (lambda: SlowCopy(layer(), 0.5), lambda it, fine: it.follow(nn.Linear(2, 2), fine)),
    "target": (lambda: TargetCopy(layer(), 2), lambda it, fine: it.follow(nn.Linear(2, 2), fine)),
    "returns": (lambda: ReturnScale(0.9), lambda it, fine: it.update(torch.arange(9.0), fine)),
    "bad returns": (
        lambda: ReturnScale(0.9),
        lambda it, fine: it.update(NAN + torch.ones(9), fine),
    ),
    "deviation": (
        RunningDeviation,
        lambda it, fine: it.update(torch.arange(9.0), torch.arange(9) > 2, fine),
    ),
    "prototypes": (moved_prototypes, lambda it, fine: it.settle(fine)),
}


@pytest.mark.parametrize("name", AVERAGES)
def test_what_follows_the_parameters_moves_only_if_all_is_fine(name):
    make, follow = AVERAGES[name]
    module = make()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    follow(module, torch.tensor(False))
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())
    follow(module, torch.tensor(True))
    assert not all(torch.equal(value, before[key]) for key, value in module.state_dict().items())
