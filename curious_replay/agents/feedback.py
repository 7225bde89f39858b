"""What agents hand to the host after an update, and what they refuse to hand on."""

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from curious_replay.agents.interface import Feedback, NonFiniteError


def make_feedback(signals: Mapping[str, Tensor], metrics: Mapping[str, Tensor]) -> Feedback:
    """Bring signals [T, B] and metrics to the host, as [B, T] and numbers."""
    values = torch.stack([*metrics.values()]).tolist()
    return Feedback(
        {name: to_numpy(signal.T) for name, signal in signals.items()},
        dict(zip(metrics, values, strict=True)),
    )


def check_finite(where: str, terms: dict[str, Tensor]) -> None:
    """Name the first of the terms, of any shape, that is not finite."""
    total = torch.stack([term.detach().sum() for term in terms.values()]).sum()
    if math.isfinite(total.item()):
        return  # as all of its parts are
    finite = torch.stack([torch.isfinite(term).all() for term in terms.values()]).tolist()
    for name, fine in zip(terms, finite, strict=True):
        if not fine:
            raise NonFiniteError(f"{where}/{name}")


def to_numpy(tensor: Tensor) -> np.ndarray:
    """Copy to the host as float32, in the same shape."""
    return tensor.detach().float().cpu().numpy()
