"""Batches on their way to the device, while it computes something else.

A device does what it is told in order, one *stream* of work. Copies of the batch that is next go
beside it, in a stream of their own, and so must be waited for before the batch is used. The host
keeps the batch, which is part of a checkpoint, as it was.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

Arrays = Mapping[str, np.ndarray]


class SideStream(Protocol):
    """A stream of work beside that which computes."""

    def beside(self) -> AbstractContextManager[None]:
        """Return a context in which the device does what it is told in this stream."""

    def mark(self) -> Any:
        """Return a mark behind all that this stream was told so far."""

    def wait(self, mark: Any, tensors: Iterable[Tensor]) -> None:
        """Let the stream that computes go on when this one has come to the mark.

        The tensors, which this stream made, are used there from now on: their memory is free again
        only when both streams are done with it.
        """


class Sent(dict[str, np.ndarray]):
    """A batch of the host, some `fields` of which are on their way to the device."""

    def __init__(
        self, batch: Arrays, fields: Collection[str], stream: SideStream, device: torch.device
    ) -> None:
        super().__init__(batch)
        self._stream = stream
        with stream.beside():
            # Bytes as they are stored. They stay here, so that nothing else is written there
            # before they are copied.
            self._pinned = {name: torch.from_numpy(batch[name]).pin_memory() for name in fields}
            self._tensors = {
                name: each.to(device, non_blocking=True) for name, each in self._pinned.items()
            }
            self._mark = stream.mark()

    def receive(self) -> dict[str, Tensor]:
        """Return the fields as tensors on the device, for what it is told from now on."""
        self._stream.wait(self._mark, self._tensors.values())
        return self._tensors
