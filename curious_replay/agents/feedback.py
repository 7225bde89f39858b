"""What agents hand to the host after an update, and what they refuse to hand on."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from curious_replay.agents.interface import Feedback, NonFiniteError


class Signals(Mapping[str, np.ndarray]):
    """Signals on the host, float32 [B, T]; of tensors [T, B], or of functions that make one.

    What a function stands for is only computed when it is read: a rule reads one of them at most.
    """

    def __init__(self, signals: Mapping[str, Tensor | Callable[[], Tensor]]) -> None:
        self._signals = dict(signals)

    def __getitem__(self, name: str) -> np.ndarray:
        signal = self._signals[name]
        if callable(signal):
            signal = self._signals[name] = signal()
        return to_numpy(signal.T)

    def __iter__(self) -> Iterator[str]:
        return iter(self._signals)

    def __len__(self) -> int:
        return len(self._signals)


def make_feedback(
    signals: Mapping[str, Tensor | Callable[[], Tensor]], metrics: Mapping[str, Tensor]
) -> Feedback:
    """Bring signals [T, B] and metrics to the host, as [B, T] and numbers."""
    values = torch.stack([*metrics.values()]).tolist()
    return Feedback(Signals(signals), dict(zip(metrics, values, strict=True)))


def check_finite(where: str, terms: dict[str, Tensor]) -> None:
    """Name the first of the terms that is not finite."""
    finite = torch.stack([torch.isfinite(term).all() for term in terms.values()]).tolist()
    for name, fine in zip(terms, finite, strict=True):
        if not fine:
            raise NonFiniteError(f"{where}/{name}")


def to_numpy(tensor: Tensor) -> np.ndarray:
    """Copy to the host as float32."""
    return tensor.detach().float().cpu().numpy()
