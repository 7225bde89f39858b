"""Returns of imagined trajectories, and their scale."""

import torch
from torch import Tensor, nn

from curious_replay.agents.blocks.maths import set_if
from curious_replay.agents.together import together


def lambda_returns(rewards: Tensor, discounts: Tensor, values: Tensor, mixing: float) -> Tensor:
    """Return the lambda-returns of states 0 to H - 1, mixtures of n-step returns, time first.

    rewards    [H, ...]      on arriving at states 1 to H
    discounts  [H, ...]      of states 1 to H: what a unit of value there is worth one step before
    values     [H + 1, ...]  of states 0 to H

    DreamerV2 passes rewards and discounts of the states 0 to H - 1 that are left.
    """
    ahead = values[-1]
    returns = []
    for t in reversed(range(len(rewards))):
        ahead = torch.lerp(values[t + 1], ahead, mixing)
        ahead = rewards[t] + discounts[t] * ahead
        returns.append(ahead)
    return torch.stack(returns[::-1])


def td_errors(rewards: Tensor, discounts: Tensor, values: Tensor, is_first: Tensor) -> Tensor:
    """Return the temporal-difference errors [T, B] on arriving at each step.

    NaN on the first step of a window: what led there is not known, and may be in another window. 0
    where an episode begins later in it: nothing led there, ever. (With NaN such a step would keep
    the priority of a new one for good, and soon be all that is replayed.)

    rewards    [T - 1, B]  for going from step t to step t + 1
    discounts  [T, B]      of arriving at each step
    values     [T, B]
    is_first   bool [T, B]
    """
    errors = torch.full_like(values, torch.nan)
    errors[1:] = rewards + discounts[1:] * values[1:] - values[:-1]
    errors[1:].masked_fill_(is_first[1:], 0.0)
    return errors


def imagination_weights(cont: Tensor, discount: float) -> Tensor:
    """Return the weight of each state of a trajectory, [H, ...]: 1 at first, 0 from an end on."""
    return (discount * cont).cumprod(0) / discount


def discounted_reach(discounts: Tensor) -> Tensor:
    """Return the weight of each state of a trajectory, [H, ...], by the discounts of those before.

    The first state counts fully, whatever its own discount.
    """
    return torch.cat([torch.ones_like(discounts[:1]), discounts[:-1]]).cumprod(0)


class ReturnScale(nn.Module):
    """Running range between the 5th and 95th percentile of returns, at least 1."""

    low: Tensor
    high: Tensor

    def __init__(self, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.zeros(()))

    @torch.no_grad()
    def update(self, returns: Tensor, fine: Tensor) -> Tensor:
        """Take account of `returns` [H, N] if all is `fine`; returns the scale to divide by."""
        low, high = percentiles(together().gather(returns, 1), 0.05, 0.95)
        set_if(fine, self.low, self.low.lerp(low, 1 - self.decay))
        set_if(fine, self.high, self.high.lerp(high, 1 - self.decay))
        return (self.high - self.low).clamp(min=1.0)


class RunningDeviation(nn.Module):
    """Standard deviation of numbers that come batch by batch; what is older counts for less."""

    def __init__(self, decay: float = 0.99) -> None:
        super().__init__()
        self.decay = decay
        self.mean = nn.Buffer(torch.zeros(()))
        self.square = nn.Buffer(torch.zeros(()))
        self.weight = nn.Buffer(torch.zeros(()))  # of all batches so far, below 1

    @torch.no_grad()
    def update(self, x: Tensor, counts: Tensor, fine: Tensor) -> None:
        """Take account of those of `x`, of any shape, that count (bool of that shape), if any do.

        If not all is `fine`, nothing changes.
        """
        known = x * counts
        sums = counts.sum(), known.sum(), known.square().sum()
        count, total, squares = map(together().mean, sums)
        mean, square = total / count, squares / count
        fine = fine & (count > 0)
        set_if(fine, self.mean, self.mean.lerp(mean, 1 - self.decay))
        set_if(fine, self.square, self.square.lerp(square, 1 - self.decay))
        weight = self.weight.lerp(torch.ones_like(self.weight), 1 - self.decay)
        set_if(fine, self.weight, weight)

    @property
    def value(self) -> Tensor:
        """The deviation, a scalar above 0; 1 before the first batch."""
        weight = self.weight.clamp(min=1e-8)
        variance = (self.square / weight - (self.mean / weight).square()).clamp(min=1e-16)
        return torch.where(self.weight > 0, variance.sqrt(), torch.ones_like(variance))


def percentiles(x: Tensor, *fractions: float) -> list[Tensor]:
    """Return percentiles of all of x, interpolated linearly; unlike torch.quantile, of any size."""
    ordered = x.flatten().sort().values
    found = []
    for fraction in fractions:
        place = fraction * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        found.append(torch.lerp(ordered[below], ordered[above], place - below))
    return found
