"""Adam on a clipped gradient, with all of its state as named tensors.

Whatever decides on a step is on the device: how many there were, whether this one is left out, and
what that makes of the learning rate. So the same kernels make every step.
"""

import math
from collections.abc import Container, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from curious_replay.agents.blocks.maths import exactly, is_finite
from curious_replay.agents.precision import LossScale
from curious_replay.agents.together import together

BETAS = (0.9, 0.999)  # shares of the moments that a step keeps
MOMENTS = ("exp_avg", "exp_avg_sq")  # by their names in checkpoints
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
        self.lr = lr
        """Learning rate of the next step."""
        self.eps, self.raw_epsilon, self.clip, self.decay = eps, raw_epsilon, clip, decay
        self._decayed: list[Tensor] = [
            parameter
            for name, parameter in self.parameters.items()
            if decayed is None or name in decayed
        ]
        first = next(iter(self.parameters.values()))
        self.steps = torch.zeros((), device=first.device)
        """Steps made so far, a scalar on the device."""
        self._endless = torch.full_like(self.steps, math.inf)
        self._logs = torch.tensor([*map(math.log, BETAS)]).to(first.device)
        self._moments: dict[str, list[Tensor]] = {}  # made by the first step
        self.loss_scale: LossScale | None = None
        """What float16 needs: see there. With it, a gradient that is too large stops nothing."""

    def step(self, loss: Tensor, fine: Tensor | None = None, *, keep_graph: bool = False) -> Tensor:
        """Reduce `loss`, a scalar. Returns the norm of its gradient before clipping.

        Gradients of other parameters are not computed. If the norm is not finite, or what came
        before was not `fine` (a bool on the device), nothing changes. Nothing is read from the
        device.
        """
        parameters = list(self.parameters.values())
        gradients = together().average(self._gradients(loss, parameters, keep_graph))
        gradients = [*map(_laid_out_as, parameters, gradients)]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        norm = nn.utils.clip_grad_norm_(parameters, self.clip)
        finite = is_finite(norm)
        self._move(gradients, finite if fine is None else finite & fine)
        for parameter in parameters:
            parameter.grad = None
        torch.clear_autocast_cache()  # of weights that were rounded before the step
        if self.loss_scale is not None:
            self.loss_scale.settle(finite, torch.ones_like(finite) if fine is None else fine)
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
    def _move(self, gradients: Sequence[Tensor], moves: Tensor) -> None:
        """Make a step of Adam where it `moves`, a bool on the device; else change nothing."""
        parameters: list[Tensor] = [*self.parameters.values()]
        if not self._moments:
            self._moments = {
                name: [torch.zeros_like(each) for each in parameters] for name in MOMENTS
            }
        if self.decay:
            share = self._decayed[0].new_full((), 1 - self.decay)
            torch._foreach_mul_(self._decayed, torch.where(moves, share, 1.0))
        self.steps.add_(moves)
        steps = self.steps
        lr: Any = self.lr  # a number, or one that the device knows
        if self.raw_epsilon:
            lr, steps = self._corrected()
        torch._fused_adam_(
            parameters,
            list(gradients),
            self._moments["exp_avg"],
            self._moments["exp_avg_sq"],
            [],
            [steps] * len(parameters),
            lr=lr,
            beta1=BETAS[0],
            beta2=BETAS[1],
            eps=self.eps,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
            # Made for loss scales of half precision: where it is 1, all is left as it is.
            found_inf=(~moves).float(),
        )

    def _corrected(self) -> tuple[Tensor, Tensor]:
        """Return a learning rate that makes up for moments that began at 0, and a number of steps.

        After so many of them Adam corrects nothing by itself, so that its epsilon is added to the
        root as it is.
        """
        first, second = torch.expm1(self.steps * self._logs)  # what moments have, negative
        return (-second).sqrt() * -self.lr / first, self._endless

    def tensors(self) -> dict[str, Tensor]:
        """Return moments and step counts by name of the parameter; empty before the first step."""
        scale = {} if self.loss_scale is None else self.loss_scale.tensors()
        tensors = {f"{SCALE}{name}": value for name, value in scale.items()}
        for number, name in enumerate(self.parameters if self._moments else ()):
            tensors[f"step.{name}"] = self.steps.clone()
            tensors |= {f"{key}.{name}": self._moments[key][number] for key in MOMENTS}
        return tensors

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from where `tensors` were taken.

        A loss scale that was not there begins, and one that is no longer needed is forgotten.
        """
        scale = {n.removeprefix(SCALE): x for n, x in tensors.items() if n.startswith(SCALE)}
        if self.loss_scale is not None and scale:
            self.loss_scale.load_tensors(scale)
        self._moments = {}
        self.steps.zero_()
        if not any(f"step.{name}" in tensors for name in self.parameters):
            return  # there was no step yet
        for name, parameter in self.parameters.items():
            self.steps.copy_(tensors[f"step.{name}"])  # one for all
            for key in MOMENTS:
                moment = _laid_out_as(parameter.detach(), tensors[f"{key}.{name}"], copy=True)
                self._moments.setdefault(key, []).append(moment)


def _laid_out_as(parameter: Tensor, value: Tensor, *, copy: bool = False) -> Tensor:
    """Return a value with its numbers in memory as those of a parameter, channels-last or not.

    Fused Adam goes through the memory of both, whatever their shapes say, and a convolution hands
    back the gradient of its weights in the order of its pictures.
    """
    if value.stride() == parameter.stride() and not copy:
        return value
    return torch.empty_like(parameter).copy_(value)
