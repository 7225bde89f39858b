"""How many digits networks compute with, and the loss scale that the fewest of them need.

Parameters, moments of Adam, losses and sums stay in float32 in any case (`to_float32`); only what
networks multiply is rounded, and the rounded weights are made once after each change.
"""

from contextlib import AbstractContextManager
from typing import Literal

import torch
from torch import Tensor

from curious_replay.agents.blocks.maths import set_if

Precision = Literal["float32", "tf32", "bfloat16", "float16"]
"""Of products: 24 bits of precision, 11 (as numbers of 32 bits, on cards), 8, or 11 of small range.
"""
DTYPES: dict[str, torch.dtype] = {"bfloat16": torch.bfloat16, "float16": torch.float16}
"""Of precisions that store what was computed in fewer bytes."""

FIRST_SCALE, LEAST_SCALE = 2.0**15, 1.0
GROWS_AFTER = 2000  # good steps


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[None]:
    """Return a context in which networks on the device compute so precisely."""
    dtype = DTYPES.get(precision)
    return torch.autocast(device.type, dtype or torch.bfloat16, enabled=dtype is not None)


class LossScale:
    """What a loss is multiplied by, so that its gradients are not too small for float16.

    As in TensorFlow, which the released DreamerV2 computes with: it is halved when a gradient was
    too large, and that step is left out; it is doubled after 2,000 good ones in a row.
    """

    def __init__(self, device: torch.device) -> None:
        self.factor = torch.full((), FIRST_SCALE, device=device)
        self.good = torch.zeros((), device=device)  # steps in a row

    def unscale(self, gradients: tuple[Tensor, ...]) -> None:
        """Divide the gradients of a loss that was multiplied by the factor, in their place."""
        torch._foreach_mul_(gradients, self.factor.reciprocal())

    def excuses(self) -> Tensor:
        """Return whether a smaller factor may help where a gradient is not finite, a bool."""
        return self.factor > LEAST_SCALE

    def settle(self, finite: Tensor, fine: Tensor) -> None:
        """Adapt to whether the last gradient was finite, a bool on the device.

        Where the update was not `fine` before, the gradient says nothing, and nothing changes.
        """
        good = torch.where(finite, self.good + 1, 0.0)
        grows = good >= GROWS_AFTER
        change = torch.where(finite, 1.0 + grows.float(), 0.5)
        factor = (self.factor * change).clamp(min=LEAST_SCALE)
        set_if(fine, self.factor, factor)
        set_if(fine, self.good, torch.where(grows, 0.0, good))

    def tensors(self) -> dict[str, Tensor]:
        """Return all of its state by name."""
        return {"factor": self.factor, "good": self.good}

    def load_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Go on from where `tensors` were taken."""
        self.factor.copy_(tensors["factor"])
        self.good.copy_(tensors["good"])
