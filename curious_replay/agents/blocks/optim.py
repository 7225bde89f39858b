"""Adam on a clipped gradient, with all of its state as named tensors."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn


class Optimiser:
    """Adam for `parameters` [(name, parameter), ...], after clipping the norm of the gradient."""

    def __init__(
        self, parameters: Iterable[tuple[str, nn.Parameter]], lr: float, eps: float, clip: float
    ) -> None:
        self.parameters = dict(parameters)
        self.clip = clip
        self.adam = torch.optim.Adam(self.parameters.values(), lr=lr, eps=eps, fused=True)

    def step(self) -> Tensor:
        """Change the parameters by their gradients, unless these are not finite.

        Returns the norm of the gradient before clipping, a scalar.
        """
        norm = nn.utils.clip_grad_norm_(self.parameters.values(), self.clip)
        if torch.isfinite(norm):
            self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        return norm

    def tensors(self) -> dict[str, Tensor]:
        """Moments and step counts by name of the parameter; empty before the first step."""
        return {
            f"{key}.{name}": value
            for name, parameter in self.parameters.items()
            for key, value in self.adam.state.get(parameter, {}).items()
        }

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from where `tensors` were taken."""
        self.adam.state.clear()
        for name, value in tensors.items():
            key, _, parameter = name.partition(".")
            state = self.adam.state[self.parameters[parameter]]
            state[key] = value.clone()
