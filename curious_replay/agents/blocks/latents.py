"""The stochastic part of a world model's state."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.maths import softmax, to_float32
from curious_replay.agents.together import together


def mix_uniform(logits: Tensor, share: float) -> Tensor:
    """Return the probabilities [..., K] of `logits`, with a `share` of the uniform distribution."""
    return mix(softmax(to_float32(logits)), share)


def mix(probabilities: Tensor, share: float) -> Tensor:
    """Return `probabilities` [..., K] mixed with a `share` of the uniform distribution."""
    if share == 0:
        return probabilities
    return (probabilities * (1 - share)).add_(share / probabilities.shape[-1])


def log_mix_uniform(logits: Tensor, share: float) -> Tensor:
    """Return the logarithm of `mix_uniform`."""
    if share == 0:
        return F.log_softmax(to_float32(logits), -1)
    return mix_uniform(logits, share).log()


def draw_one_hot(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """Draw one-hot [..., K] by inverting the distribution at `uniform` [...] in [0, 1)."""
    index = draw(probabilities, uniform).unsqueeze(-1)
    return torch.zeros_like(probabilities).scatter_(-1, index, 1.0)


def draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """Draw classes int64 [...] by inverting the distribution [..., K] at `uniform` [...]."""
    below = probabilities.detach().cumsum(-1)
    index = torch.searchsorted(below, uniform.unsqueeze(-1), right=True).squeeze(-1)
    # Rounding may leave the last sum below 1: then the draw is the last class, not one beyond.
    return index.clamp_(max=probabilities.shape[-1] - 1)


def straight_through(value: Tensor, smooth: Tensor) -> Tensor:
    """Return `value` forwards, with the gradient of `smooth` backwards."""
    if not smooth.requires_grad:
        return value
    return value + (smooth - smooth.detach())


def bounded_std(raw: Tensor) -> Tensor:
    """Return a standard deviation between 0.1 and 2.1, which is 1.1 for 0 (DreamerV2)."""
    return 2 * torch.sigmoid(raw / 2) + 0.1


class Categorical:
    """`latents` independent one-hot variables of `classes` classes, flattened to one vector."""

    def __init__(self, latents: int, classes: int, unimix: float) -> None:
        self.latents, self.classes, self.unimix = latents, classes, unimix
        self.size = self.outputs = latents * classes

    def noise(self, *shape: int, generator: torch.Generator) -> Tensor:
        """Draw the noise that `sample` needs for states of `shape`: uniform, [*shape, latents]."""
        return together().draw(torch.rand, *shape, size=self.latents, generator=generator)

    def sample(self, outputs: Tensor, noise: Tensor) -> Tensor:
        """Draw [..., size] from what a head says, [..., outputs]."""
        probabilities = mix_uniform(self._split(outputs), self.unimix)
        return straight_through(draw_one_hot(probabilities, noise), probabilities).flatten(-2)

    def mode(self, outputs: Tensor) -> Tensor:
        """Return the most likely value [..., size]."""
        probabilities = mix_uniform(self._split(outputs), self.unimix)
        index = probabilities.argmax(-1, keepdim=True)
        one_hot = torch.zeros_like(probabilities).scatter_(-1, index, 1.0)
        return straight_through(one_hot, probabilities).flatten(-2)

    def mean(self, outputs: Tensor) -> Tensor:
        """Return the mean of what `sample` draws [..., size]: all probabilities."""
        return mix_uniform(self._split(outputs), self.unimix).flatten(-2)

    def ones(self, value: Tensor) -> Tensor:
        """Return the places of the ones in values [..., size].

        They are int64 [..., latents], from 0 to size - 1.
        """
        return self._split(value).argmax(-1) + self._offsets(value)

    def draw_ones(self, outputs: Tensor, noise: Tensor) -> Tensor:
        """Return the `ones` of what `sample` would draw."""
        probabilities = mix_uniform(self._split(outputs), self.unimix)
        return draw(probabilities, noise) + self._offsets(outputs)

    def _offsets(self, like: Tensor) -> Tensor:
        return torch.arange(0, self.size, self.classes, device=like.device)

    def kl(self, left: Tensor, right: Tensor) -> Tensor:
        """Return KL(left || right) in nats [...], summed over all latents; of [..., outputs]."""
        p = log_mix_uniform(self._split(left), self.unimix)
        q = log_mix_uniform(self._split(right), self.unimix)
        return (p.exp() * (p - q)).sum((-2, -1))

    def _split(self, outputs: Tensor) -> Tensor:
        return outputs.reshape(*outputs.shape[:-1], self.latents, self.classes)


class Gaussian:
    """`size` independent normal variables with standard deviations between 0.1 and 2.1."""

    def __init__(self, size: int) -> None:
        self.size, self.outputs = size, 2 * size

    def noise(self, *shape: int, generator: torch.Generator) -> Tensor:
        """Draw the noise that `sample` needs for states of `shape`: normal, [*shape, size]."""
        return together().draw(torch.randn, *shape, size=self.size, generator=generator)

    def sample(self, outputs: Tensor, noise: Tensor) -> Tensor:
        """Draw [..., size] from what a head says, [..., outputs]."""
        mean, std = self._split(outputs)
        return mean + std * noise

    def mode(self, outputs: Tensor) -> Tensor:
        """Return the most likely value [..., size]."""
        return self._split(outputs)[0]

    def mean(self, outputs: Tensor) -> Tensor:
        """Return the mean of what `sample` draws [..., size], which is also its mode."""
        return self.mode(outputs)

    def kl(self, left: Tensor, right: Tensor) -> Tensor:
        """Return KL(left || right) in nats [...], summed over all variables; of [..., outputs]."""
        (mean, std), (other_mean, other_std) = self._split(left), self._split(right)
        ratio = (std / other_std).square()
        shift = ((mean - other_mean) / other_std).square()
        return (0.5 * (ratio + shift - 1 - ratio.log())).sum(-1)

    def _split(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        mean, std = to_float32(outputs).chunk(2, -1)
        return mean, bounded_std(std)
