"""The course of an update: a batch goes in, the device learns, and feedback is read once."""

from abc import abstractmethod
from collections.abc import Collection, Hashable, Mapping

import numpy as np
from torch import Tensor

from curious_replay.agents.device import cuda
from curious_replay.agents.device.copies import Sent
from curious_replay.agents.device.graphs import Graphs
from curious_replay.agents.feedback import UpdateReport
from curious_replay.agents.interface import Agent, Arrays, Feedback
from curious_replay.agents.precision import Precision
from curious_replay.agents.spaces import Spaces

Fields = Mapping[str, np.ndarray | Tensor]
"""Steps of a batch [B, T, ...], on the host or on the device already."""


class DeviceAgent(Agent):
    """An agent that tells its device a whole update before it reads anything of it."""

    def __init__(self, spaces: Spaces, seed: int, device: str) -> None:
        super().__init__(spaces, seed, device)
        self.side = cuda.side_stream(self.device)
        """Where batches are copied to the device ahead; None on a CPU, which has them."""
        self.graphs: Graphs[UpdateReport] | None = None
        """What repeats updates, if `use_graphs` has asked for it."""

    @property
    @abstractmethod
    def fields(self) -> Collection[str]:
        """Names of what `learn` needs of a batch."""

    @abstractmethod
    def learn(self, batch: Fields, unread: Collection[str], known: Arrays | None) -> UpdateReport:
        """Make an update from a batch, and return what there is to say about it, unread.

        `known` is the batch as the host knows it, which may decide by its numbers what is computed;
        None if it may not.
        """

    @property
    def structure(self) -> Hashable:
        """What the host decides by, other than the batch, which kernels an update has."""
        return None

    def use_graphs(self, unread: Collection[str]) -> None:
        """See `Agent.use_graphs`."""
        self.graphs = Graphs(cuda.capture(self.device, self.generator))

    def compute_in(self, precision: Precision) -> None:
        """See `Agent.compute_in`."""
        super().compute_in(precision)
        self._forget_graphs()

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """See `Agent.load_tensors`."""
        super().load_tensors(tensors)
        self._forget_graphs()

    def send(self, batch: Arrays) -> Arrays:
        """See `Agent.send`."""
        if self.side is None:
            return batch
        try:
            return Sent(batch, self.fields, self.side, self.device)
        except RuntimeError:
            # No room for two, on the device or in memory that it can read: it is copied when it is
            # its turn, and if the device is broken that is told there. An error here would be told
            # by the thread that draws, and the batch be lost to the next checkpoint.
            return batch

    def update(self, batch: Arrays, unread: Collection[str] = ()) -> Feedback:
        """See `Agent.update`."""
        fields = batch.receive() if isinstance(batch, Sent) else batch
        if self.graphs is None:
            return self.learn(fields, unread, batch).read()
        inputs = {name: self._put(fields[name]) for name in self.fields}
        structure = self.structure, frozenset(unread)
        report = self.graphs.run(structure, lambda kept: self.learn(kept, unread, None), inputs)
        return report.read()

    def _forget_graphs(self) -> None:
        if self.graphs is not None:
            self.graphs.forget()
