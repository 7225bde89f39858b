"""What a buffer gives out, and what it counts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from curious_replay.replay.access.tensors import to_tensor
from curious_replay.replay.fields import Array, map_leaves
from curious_replay.replay.rule import Floats
from curious_replay.replay.sumtree import Ints

if TYPE_CHECKING:
    import torch


class Batch(dict[str, Any]):
    """Windows of steps: a dict of arrays [B, T, ...], nested as the steps were.

    ids            int64 [B, T]    names of the steps, for `ReplayBuffer.update`
    probabilities  float64 [B]     with which one draw chose the drawn step of each window; NaN for
                                   windows of the online queue, which were not drawn
    distinct       float           share of distinct steps; the others are copies of these
    """

    def __init__(
        self,
        fields: Mapping[str, Any],
        ids: Ints,
        probabilities: Floats,
        distinct: float = float("nan"),
        convert: Callable[[str, Array], Any] | None = None,
    ) -> None:
        super().__init__(fields)
        self.ids = ids
        self.probabilities = probabilities
        self.distinct = distinct
        self._convert = convert  # by which fields became what they are, if they are not arrays

    def torch(self, device: "str | torch.device | None" = None, *, pin: bool = False) -> "Batch":
        """Return the batch as tensors; `ids` and `probabilities` stay arrays.

        On the CPU the tensors have the memory of the arrays: nothing is copied. To another device
        each field is copied once; from page-locked memory that goes on while you compute.

        Args:
            device: where the tensors are to be; None: on the CPU.
            pin: take page-locked memory. A batch of `sample(..., pin=True)` lies there already,
                any other is copied there first.
        """
        convert = to_tensor(device, pin)
        fields = map_leaves(convert, self)
        return Batch(fields, self.ids, self.probabilities, self.distinct, convert)

    def weights(self, exponent: float = 0.4) -> Any:
        """Return importance weights float32 [B], (1 / probability)^exponent, the largest being 1.

        They make up for what priorities draw too often: in part, or wholly with an exponent of 1.
        Curious Replay has none, as the model is meant to see more of what it does not know.
        Windows of the online queue have a weight of 1. Of a batch of tensors they are one too.
        """
        drawn = np.isfinite(self.probabilities)
        chances = np.where(drawn, self.probabilities, 1.0)
        rarest = chances.min(where=drawn, initial=np.inf)
        weights = np.where(drawn, (rarest / chances) ** exponent, 1.0).astype(np.float32)
        return weights if self._convert is None else self._convert("weights", weights)

    def __repr__(self) -> str:
        fields: list[str] = []
        map_leaves(lambda name, x: fields.append(f"{name} {x.dtype} {list(x.shape)}"), self)
        windows, length = self.ids.shape
        return f"Batch({windows} windows of {length} steps: {', '.join(fields)})"


@dataclass
class Counts:
    """What happened to a buffer since it was made, over all saves and loads."""

    added: int = 0  # steps
    sampled: int = 0  # windows
    online: int = 0  # of these, windows of the online queue
    drawn: int = 0  # steps in these windows
    copies: int = 0  # of these, steps that their batch had already
    updated: int = 0  # steps that received feedback
    stale: int = 0  # feedback for steps that were gone by then, ignored
    refused: int = 0  # priorities not taken because they, or their signal, were not finite
    written: int = 0  # steps that had fields written to them later
    unwritten: int = 0  # steps that were gone when fields were to be written, ignored
