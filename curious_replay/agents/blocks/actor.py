"""What policies say about actions."""

import math
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.dense import Style, mlp
from curious_replay.agents.blocks.latents import (
    bounded_std,
    draw_one_hot,
    log_mix_uniform,
    mix_uniform,
    straight_through,
)
from curious_replay.agents.blocks.maths import to_float32
from curious_replay.agents.blocks.shortcuts.lookup import Features
from curious_replay.agents.together import together

LEAST_STD, MOST_STD = 0.1, 1.0  # of `NormalPolicy`
CUT = 1e-12  # least probability on either side of a draw from `TruncatedPolicy`
BORDER = 1e-6  # least distance of such a draw from -1 and 1
MOST_MEAN = 5.0  # of `SquashedPolicy` before it is squashed
NODES = 20  # where its entropy is evaluated


class OneHotPolicy:
    """Discrete actions, one-hot, with a share of the uniform distribution."""

    def __init__(self, outputs: Tensor, unimix: float) -> None:
        self.logits, self.unimix = outputs, unimix  # [..., A]

    def sample(self, noise: Tensor) -> Tensor:
        """Draw [..., A] from uniform `noise` [..., 1]; no gradient passes."""
        return draw_one_hot(mix_uniform(self.logits, self.unimix).detach(), noise.squeeze(-1))

    def log_probability(self, action: Tensor) -> Tensor:
        """Return an action's log-probability in nats, [...]; no gradient passes into the action."""
        return (log_mix_uniform(self.logits, self.unimix) * action.detach()).sum(-1)

    @property
    def mode(self) -> Tensor:
        """Most likely action, one-hot [..., A]."""
        index = self.logits.argmax(-1, keepdim=True)
        return torch.zeros_like(to_float32(self.logits)).scatter_(-1, index, 1.0)

    @property
    def entropy(self) -> Tensor:
        """In nats, [...]."""
        log = log_mix_uniform(self.logits, self.unimix)
        return -(log.exp() * log).sum(-1)


class NormalPolicy:
    """Continuous actions: tanh mean, standard deviation between 0.1 and 1."""

    def __init__(self, outputs: Tensor) -> None:
        mean, std = to_float32(outputs).chunk(2, -1)
        self.mean = torch.tanh(mean)
        self.std = (MOST_STD - LEAST_STD) * torch.sigmoid(std + 2.0) + LEAST_STD

    def sample(self, noise: Tensor) -> Tensor:
        """Draw [..., A] from normal `noise` [..., A]; gradients reach mean and deviation."""
        return self.mean + self.std * noise

    @property
    def mode(self) -> Tensor:
        """Most likely action [..., A]."""
        return self.mean

    @property
    def entropy(self) -> Tensor:
        """In nats, [...], summed over dimensions."""
        return (self.std.log() + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)


class TruncatedPolicy:
    """Continuous actions: normal distributions cut off at -1 and 1, with a tanh centre (V2)."""

    def __init__(self, outputs: Tensor) -> None:
        centre, std = to_float32(outputs).chunk(2, -1)
        self.centre, self.std = torch.tanh(centre), bounded_std(std)
        self.low, self.high = (-1 - self.centre) / self.std, (1 - self.centre) / self.std

    def sample(self, noise: Tensor) -> Tensor:
        """Draw [..., A] by inverting the distribution at uniform `noise` [..., A] in [0, 1).

        Gradients reach centre and deviation, also where a draw is moved off the border.
        """
        # Near the borders single precision would lose what is left of the distribution.
        below = torch.special.ndtr(self.low.double())
        inside = torch.special.ndtr(self.high.double()) - below
        place = (below + noise * inside).clamp(CUT, 1 - CUT)
        drawn: Tensor = (self.centre + self.std * torch.special.ndtri(place)).to(self.centre.dtype)
        return straight_through(drawn.detach().clamp(BORDER - 1, 1 - BORDER), drawn)

    @property
    def mode(self) -> Tensor:
        """Most likely action [..., A]."""
        return self.centre

    @property
    def entropy(self) -> Tensor:
        """In nats, [...], summed over dimensions."""
        inside: Tensor = torch.special.ndtr(self.high) - torch.special.ndtr(self.low)
        lost = (self.low * _density(self.low) - self.high * _density(self.high)) / (2 * inside)
        whole = 0.5 * math.log(2 * math.pi * math.e)
        entropy: Tensor = (whole + (self.std * inside).log() + lost).sum(-1)
        return entropy


def _density(x: Tensor) -> Tensor:
    """Return the density of the standard normal distribution at x."""
    return torch.exp(-0.5 * x.square()) / math.sqrt(2 * math.pi)


class SquashedPolicy:
    """Continuous actions: tanh of normal variables whose means are within -5 and 5 (DreamerPro)."""

    def __init__(self, outputs: Tensor) -> None:
        mean, std = to_float32(outputs).chunk(2, -1)
        self.mean = MOST_MEAN * torch.tanh(mean / MOST_MEAN)
        self.std = F.softplus(std) + LEAST_STD

    def sample(self, noise: Tensor) -> Tensor:
        """Draw [..., A] from normal `noise` [..., A]; gradients reach mean and deviation."""
        return torch.tanh(self.mean + self.std * noise)

    @property
    def mode(self) -> Tensor:
        """Most likely action [..., A], to within a hundredth of all that may be drawn."""
        places = (torch.arange(100, device=self.mean.device) + 0.5) / 100
        noise = torch.special.ndtri(places)
        unsquashed = self.mean.unsqueeze(-1) + self.std.unsqueeze(-1) * noise
        # Of all these draws the deviation is the same, and so is that part of their density.
        log_density = -0.5 * noise.square() - _log_tanh_slope(unsquashed)
        best = log_density.argmax(-1, keepdim=True)
        return torch.tanh(unsquashed.gather(-1, best).squeeze(-1))

    @property
    def entropy(self) -> Tensor:
        """In nats, [...], summed over dimensions; by quadrature."""
        noise, chances = _quadrature(self.mean.dtype, self.mean.device)
        unsquashed = self.mean.unsqueeze(-1) + self.std.unsqueeze(-1) * noise
        lost = (_log_tanh_slope(unsquashed) * chances).sum(-1)
        whole = 0.5 * math.log(2 * math.pi * math.e)
        return (whole + self.std.log() + lost).sum(-1)


@cache
def _quadrature(dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return nodes of the standard normal distribution and their chances, [NODES] each."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    noise = torch.from_numpy(nodes).to(device, dtype)
    return noise, torch.from_numpy(weights / weights.sum()).to(device, dtype)


def _log_tanh_slope(x: Tensor) -> Tensor:
    """Return the logarithm of the derivative of tanh, exact also where that is tiny."""
    return 2 * (math.log(2) - x - F.softplus(-2 * x))


ContinuousPolicy = NormalPolicy | TruncatedPolicy | SquashedPolicy
Policy = OneHotPolicy | ContinuousPolicy


class Actor(nn.Module):
    """A network from features to actions; its draws are made from noise given to them."""

    def __init__(
        self,
        inputs: int,
        layers: int,
        units: int,
        actions: int,
        style: Style,
        *,
        discrete: bool,
        unimix: float,
        continuous: type[ContinuousPolicy] = NormalPolicy,
    ) -> None:
        super().__init__()
        self.continuous = continuous
        self.actions, self.discrete, self.unimix = actions, discrete, unimix
        self.network = mlp(inputs, layers, units, actions if discrete else 2 * actions, style)

    def forward(self, feature: Features) -> Tensor:
        """Return the network's outputs, which `policy` understands, for features [..., inputs]."""
        outputs: Tensor = self.network(feature)
        return outputs

    def policy(self, outputs: Tensor) -> Policy:
        """Return the policy that the network's outputs describe."""
        if self.discrete:
            return OneHotPolicy(outputs, self.unimix)
        return self.continuous(outputs)

    def noise(self, *shape: int, generator: torch.Generator) -> Tensor:
        """Draw the noise that `sample` of a policy needs for states of `shape`."""
        uniform = self.discrete or self.continuous is TruncatedPolicy
        size = 1 if self.discrete else self.actions
        kind = torch.rand if uniform else torch.randn
        return together().draw(kind, *shape, size=size, generator=generator)
