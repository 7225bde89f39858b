"""A network that follows another one slowly."""

import copy

import torch
from torch import Tensor, nn


class SlowCopy(nn.Module):
    """A moving average of another network's parameters, which no gradient reaches."""

    def __init__(self, network: nn.Module, fraction: float) -> None:
        super().__init__()
        self.fraction = fraction
        self.network = copy.deepcopy(network).requires_grad_(False)
        self.fresh = nn.Buffer(torch.ones(()))  # 1 until the first `follow`, then 0

    def forward(self, x: Tensor) -> Tensor:
        """What the slow network says."""
        y: Tensor = self.network(x)
        return y

    @torch.no_grad()
    def follow(self, network: nn.Module) -> None:
        """Move by `fraction` towards the parameters of `network`; the first time, all the way."""
        step = torch.clamp(self.fresh + self.fraction, max=1.0)
        for slow, fast in zip(self.network.parameters(), network.parameters(), strict=True):
            slow.lerp_(fast, step)
        self.fresh.zero_()
