"""Updates that a device is told once and then repeats by itself (CUDA graphs).

A host that launches thousands of small kernels one by one is slower than a card that computes them.
So the kernels of an update are recorded with the addresses of all they read and write, and from
then on one call launches them all. This works because an update reads nothing on the way, and
because what changes from one update to the next is on the device:

    the batch           is copied into tensors that stay where they are
    parameters, moments, averages, counters   are written in their places
    random numbers      are counted by the generators, which are told to the graph
    feedback            is one row of numbers in its place, read when all is done

What the host decides is the `structure`: if it changes, or tensors were loaded or replaced, the
next updates are made as without graphs, to warm up, and then one is recorded anew.
"""

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

WARM_UPS = 3
"""Updates before one is recorded: libraries choose algorithms in them, and ask for memory."""
Result = TypeVar("Result")


class Capture(Protocol):
    """Something that records what the device is told."""

    def aside(self) -> AbstractContextManager[None]:
        """Return a context in which the device works in the stream that will be recorded."""

    def record(self, work: Callable[[], Result]) -> tuple[Result, Callable[[], None]]:
        """Record what `work` tells the device, which does none of it yet.

        Returns what it returned, tensors whose numbers are not there yet, and what repeats it: the
        same kernels on the same tensors, with new random numbers.
        """


class Graphs(Generic[Result]):
    """Repeats work on inputs of one structure at a time."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self.forget()

    def forget(self) -> None:
        """Record anew, because tensors are no longer where they were."""
        self._structure: Hashable = None
        self._inputs: dict[str, Tensor] = {}
        self._warm_ups = 0
        self._recorded: tuple[Result, Callable[[], None]] | None = None

    def run(
        self,
        structure: Hashable,
        work: Callable[[Mapping[str, Tensor]], Result],
        inputs: Mapping[str, Tensor],
    ) -> Result:
        """Do `work` with the numbers of `inputs`, on tensors that stay where they are.

        What it returns has the numbers of this time until the next. `structure` is all that the
        host decides by in it; shapes of the inputs are added here.
        """
        shapes = tuple((name, each.shape, each.dtype) for name, each in inputs.items())
        if (structure, shapes) != self._structure:
            self.forget()
            self._structure = structure, shapes
            self._inputs = {name: torch.empty_like(each) for name, each in inputs.items()}
        for name, each in inputs.items():
            self._inputs[name].copy_(each)
        if self._warm_ups < WARM_UPS:
            self._warm_ups += 1
            with self._capture.aside():
                return work(self._inputs)
        if self._recorded is None:
            self._recorded = self._capture.record(lambda: work(self._inputs))
        result, repeat = self._recorded
        repeat()
        return result
