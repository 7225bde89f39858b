"""Networks that follow another one: slowly, or from time to time."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from curious_replay.agents.blocks.shortcuts.lookup import Features


class SlowCopy(nn.Module):
    """A moving average of another network's parameters, which no gradient reaches.

    It is a copy at first; `fresh`: and becomes one again at the first `follow`.
    """

    def __init__(self, network: nn.Module, fraction: float, *, fresh: bool = True) -> None:
        super().__init__()
        self.fraction = fraction
        self.network = copy.deepcopy(network).requires_grad_(False)
        self.fresh = nn.Buffer(torch.tensor(float(fresh)))  # 1 until the first `follow`, then 0

    def forward(self, x: Features) -> Any:
        """Return the outputs of the slow network."""
        return self.network(x)

    @torch.no_grad()
    def follow(self, network: nn.Module, fine: Tensor) -> None:
        """Move by `fraction` towards the parameters of `network`, or all the way if `fresh`.

        Unless `fine`, a bool on their device, nothing moves.
        """
        step = torch.clamp(self.fresh + self.fraction, max=1.0) * fine
        for slow, fast in zip(self.network.parameters(), network.parameters(), strict=True):
            slow.lerp_(fast, step)
        self.fresh.mul_(~fine)


class TargetCopy(SlowCopy):
    """A copy of another network, made again at the first `follow` and every `every`-th after."""

    def __init__(self, network: nn.Module, every: int) -> None:
        super().__init__(network, fraction=1.0)
        self.every = every
        self.updates = nn.Buffer(torch.zeros((), dtype=torch.int64))

    def follow(self, network: nn.Module, fine: Tensor) -> None:
        """Copy the parameters of `network` if it is time, and if all is `fine`."""
        # The host does not know whether it is time: asking the device would take longer.
        super().follow(network, fine & (self.updates % self.every == 0))
        self.updates.add_(fine)
