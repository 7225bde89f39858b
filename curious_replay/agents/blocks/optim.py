"""Adam on a clipped gradient, with all of its state as named tensors."""

import math
from collections.abc import Container, Mapping, Sequence

import torch
from torch import Tensor, nn

from curious_replay.agents.blocks.maths import exactly, is_finite
from curious_replay.agents.precision import LossScale
from curious_replay.agents.together import together

SCALE = "loss_scale."  # begins the names of its tensors


class Optimiser:
    """Adam for the parameters of `module`, after clipping the norm of their gradient.

    `decay` is what each step takes off parameters before Adam moves them, as a share of their size:
    off all of them, or off those that are named in `decayed`. `raw_epsilon` adds `eps` to the root
    of the second moment before that is corrected for its start at 0 (TensorFlow), not after
    (PyTorch): early steps on small gradients are smaller.
    """

    def __init__(
        self,
        module: nn.Module,
        lr: float,
        eps: float,
        clip: float,
        *,
        decay: float = 0.0,
        decayed: Container[str] | None = None,
        raw_epsilon: bool = False,
    ) -> None:
        self.parameters = dict(module.named_parameters())
        self.clip, self.decay = clip, decay
        self._decayed: list[Tensor] = [
            parameter
            for name, parameter in self.parameters.items()
            if decayed is None or name in decayed
        ]
        self.eps, self.raw_epsilon = eps, raw_epsilon
        self.steps = 0
        """Steps made so far, as far as the host knows: see `recount`."""
        self.adam = torch.optim.Adam(self.parameters.values(), lr=lr, eps=eps, fused=True)
        self.loss_scale: LossScale | None = None
        """What float16 needs: see there. With it, a gradient that is too large stops nothing."""

    @property
    def lr(self) -> float:
        """Learning rate of the next step."""
        rate: float = self.adam.param_groups[0]["lr"]
        return rate

    @lr.setter
    def lr(self, rate: float) -> None:
        self.adam.param_groups[0]["lr"] = rate

    def step(self, loss: Tensor, fine: Tensor | None = None, *, keep_graph: bool = False) -> Tensor:
        """Reduce `loss`, a scalar. Returns the norm of its gradient before clipping.

        Gradients of other parameters are not computed. If the norm is not finite, or what came
        before was not `fine` (a bool on the device), nothing changes. With `fine` nothing is read
        from the device: who knows later that nothing was changed calls `recount`.
        """
        parameters = list(self.parameters.values())
        gradients = together().average(self._gradients(loss, parameters, keep_graph))
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        norm = nn.utils.clip_grad_norm_(parameters, self.clip)
        finite = is_finite(norm)
        moves = finite if fine is None else finite & fine
        self._prepare(moves)
        # Made for loss scales of half precision: where it is 1, fused Adam leaves all as it is.
        setattr(self.adam, "found_inf", (~moves).float())  # noqa: B010
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        torch.clear_autocast_cache()  # of weights that were rounded before the step
        if self.loss_scale is not None:
            self.loss_scale.settle(finite, torch.ones_like(finite) if fine is None else fine)
        self.steps += 1
        if fine is None:
            self.recount()
        return norm

    def _gradients(
        self, loss: Tensor, parameters: Sequence[Tensor], keep_graph: bool
    ) -> tuple[Tensor, ...]:
        """Return the gradients of the loss, each as precise as what it is the gradient of."""
        scale = self.loss_scale
        loss = loss if scale is None else loss * scale.factor
        with exactly(loss):
            gradients = torch.autograd.grad(loss, parameters, retain_graph=keep_graph)
        if scale is not None:
            scale.unscale(gradients)
        return gradients

    @torch.no_grad()
    def _prepare(self, moves: Tensor) -> None:
        """Shrink the parameters if the step `moves` them, and choose its epsilon."""
        if self.decay:
            share = self._decayed[0].new_full((), 1 - self.decay)
            torch._foreach_mul_(self._decayed, torch.where(moves, share, 1.0))
        if self.raw_epsilon:
            # Adam divides the root by this before it adds its epsilon.
            group = self.adam.param_groups[0]
            group["eps"] = self.eps / math.sqrt(1 - group["betas"][1] ** (self.steps + 1))

    def recount(self) -> None:
        """Ask the device how many steps there were, after some that may have changed nothing."""
        first = next(iter(self.parameters.values()))
        self.steps = int(self.adam.state.get(first, {}).get("step", 0))

    def tensors(self) -> dict[str, Tensor]:
        """Return moments and step counts by name of the parameter; empty before the first step."""
        scale = {} if self.loss_scale is None else self.loss_scale.tensors()
        return {f"{SCALE}{name}": value for name, value in scale.items()} | {
            f"{key}.{name}": value
            for name, parameter in self.parameters.items()
            for key, value in self.adam.state.get(parameter, {}).items()
        }

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from where `tensors` were taken.

        A loss scale that was not there begins, and one that is no longer needed is forgotten.
        """
        scale = {n.removeprefix(SCALE): x for n, x in tensors.items() if n.startswith(SCALE)}
        if self.loss_scale is not None and scale:
            self.loss_scale.load_tensors(scale)
        self.adam.state.clear()
        for name, value in tensors.items():
            if name.startswith(SCALE):
                continue
            key, _, owner = name.partition(".")
            parameter = self.parameters[owner]
            if value.shape == parameter.shape:
                # Fused Adam takes the memory of both to be in one order, channels-last or not.
                value = torch.empty_like(parameter).copy_(value)  # noqa: PLW2901
            self.adam.state[parameter][key] = value.detach().to(parameter.device, copy=True)
        self.recount()
