"""What a network's outputs say about a number, and how far that is from the truth."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.dense import Style, mlp
from curious_replay.agents.blocks.maths import REGISTER, symexp, symlog, to_float32
from curious_replay.agents.blocks.shortcuts.lookup import Features, as_tensor

LARGEST = 20.0  # of the bins, in symlog space


def even_bins(count: int) -> Tensor:
    """Return bins that are even in symlog space, from -20 to 20, [count] (DreamerV3, 2023)."""
    return torch.linspace(-LARGEST, LARGEST, count)


class TwoHot:
    """A distribution over bins.

    logits  [..., K or more]: what is more belongs to no bin, and must be minus infinity
    bins    [K], their centres in symlog space
    """

    def __init__(self, logits: Tensor, bins: Tensor) -> None:
        self.logits = to_float32(logits)
        self.bins = bins.to(self.logits.dtype)

    @property
    def mean(self) -> Tensor:
        """Expectation [...], taken in symlog space."""
        bins = F.pad(self.bins, (0, self.logits.shape[-1] - len(self.bins)))
        # Not a product of matrices: autocast would make that one in half precision.
        return symexp((F.softmax(self.logits, -1) * bins).sum(-1))

    def loss(self, *targets: Tensor) -> Tensor:
        """Return the cross-entropy [...] in nats, summed over `targets` [...].

        It is that with the two bins around each target.
        """
        lower, weight = two_hot(symlog(torch.stack(targets, -1)), self.bins)
        pairs = F.log_softmax(self.logits, -1).gather(-1, torch.cat([lower, lower + 1], -1))
        below, above = pairs.chunk(2, -1)
        return -torch.lerp(below, above, weight).sum(-1)


class TwoHotHead(nn.Sequential):
    """Hidden layers, then logits of a `TwoHot` that is about 0 at first."""

    def __init__(self, inputs: int, layers: int, units: int, bins: int, style: Style) -> None:
        super().__init__(*mlp(inputs, layers, units, bins, style, zero=True))
        self.bins = nn.Buffer(even_bins(bins), persistent=False)

    def forward(self, x: Features) -> TwoHot:
        """Return the distribution predicted from features [..., inputs]."""
        *hidden, output = self
        assert isinstance(output, nn.Linear)
        for layer in hidden:
            x = layer(x)
        # The 255 bins of the paper fill no whole number of registers, which makes a product with
        # their weights take twice the time of one with 256.
        more = -len(self.bins) % REGISTER
        weight = F.pad(output.weight, (0, 0, 0, more))
        bias = F.pad(output.bias, (0, more), value=-math.inf)
        return TwoHot(F.linear(as_tensor(x), weight, bias), self.bins)


def two_hot(y: Tensor, bins: Tensor) -> tuple[Tensor, Tensor]:
    """Index of the bin below `y` and weight of the one above it, both [...].

    Beyond the ends all weight is on the last bin.
    """
    lower = (torch.bucketize(y, bins, right=True) - 1).clamp(0, len(bins) - 2)
    weight = (y - bins[lower]) / (bins[lower + 1] - bins[lower])
    return lower, weight.clamp(0, 1)


def binary_loss(logit: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy [...] in nats of a Bernoulli variable.

    `target` may be between 0 and 1.
    """
    return F.binary_cross_entropy_with_logits(to_float32(logit), target, reduction="none")


def squared_error(prediction: Tensor, target: Tensor, axes: int) -> Tensor:
    """Sum of squares over the last `axes` axes."""
    errors = F.mse_loss(to_float32(prediction), target.expand_as(prediction), reduction="none")
    return errors.flatten(-axes).sum(-1)


def normal_loss(prediction: Tensor, target: Tensor, axes: int) -> Tensor:
    """Return the negative log-likelihood in nats under normal distributions of unit variance.

    Summed over the last `axes` axes, with the constant of each of their numbers.
    """
    count = math.prod(target.shape[-axes:])
    return 0.5 * squared_error(prediction, target, axes) + 0.5 * math.log(2 * math.pi) * count
