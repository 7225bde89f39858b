"""What policies say about actions."""

import math

import torch
from torch import Tensor, nn

from curious_replay.agents.blocks.dense import Style, mlp
from curious_replay.agents.blocks.latents import draw_one_hot, log_mix_uniform, mix_uniform
from curious_replay.agents.blocks.maths import exact

LEAST_STD, MOST_STD = 0.1, 1.0


class OneHotPolicy:
    """Discrete actions, one-hot, with a share of the uniform distribution."""

    def __init__(self, outputs: Tensor, unimix: float) -> None:
        self.logits, self.unimix = outputs, unimix  # [..., A]

    def sample(self, noise: Tensor) -> Tensor:
        """Draw [..., A] from uniform `noise` [..., 1]; no gradient passes."""
        return draw_one_hot(mix_uniform(self.logits, self.unimix).detach(), noise.squeeze(-1))

    def log_probability(self, action: Tensor) -> Tensor:
        """In nats, [...]; no gradient passes into the action."""
        return (log_mix_uniform(self.logits, self.unimix) * action.detach()).sum(-1)

    @property
    def entropy(self) -> Tensor:
        """In nats, [...]."""
        log = log_mix_uniform(self.logits, self.unimix)
        return -(log.exp() * log).sum(-1)


class NormalPolicy:
    """Continuous actions: tanh mean, standard deviation between 0.1 and 1."""

    def __init__(self, outputs: Tensor) -> None:
        mean, std = exact(outputs).chunk(2, -1)
        self.mean = torch.tanh(mean)
        self.std = (MOST_STD - LEAST_STD) * torch.sigmoid(std + 2.0) + LEAST_STD

    def sample(self, noise: Tensor) -> Tensor:
        """Draw [..., A] from normal `noise` [..., A]; gradients reach mean and deviation."""
        return self.mean + self.std * noise

    @property
    def entropy(self) -> Tensor:
        """In nats, [...], summed over dimensions."""
        return (self.std.log() + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)


Policy = OneHotPolicy | NormalPolicy


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
    ) -> None:
        super().__init__()
        self.actions, self.discrete, self.unimix = actions, discrete, unimix
        self.network = mlp(inputs, layers, units, actions if discrete else 2 * actions, style)

    def forward(self, feature: Tensor) -> Tensor:
        """[..., inputs] -> outputs, which `policy` understands."""
        outputs: Tensor = self.network(feature)
        return outputs

    def policy(self, outputs: Tensor) -> Policy:
        """What the network's outputs say."""
        return OneHotPolicy(outputs, self.unimix) if self.discrete else NormalPolicy(outputs)

    def noise(self, *shape: int, generator: torch.Generator) -> Tensor:
        """What `sample` of a policy needs for states of `shape`."""
        if self.discrete:
            return torch.rand(*shape, 1, generator=generator, device=generator.device)
        return torch.randn(*shape, self.actions, generator=generator, device=generator.device)
