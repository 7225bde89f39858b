"""All that is asked of CUDA itself. Nobody has run this file yet; tests have stand-ins for it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from curious_replay.agents.device.copies import SideStream
from curious_replay.agents.device.graphs import Capture, Result
from curious_replay.errors import UsageError


def side_stream(device: torch.device) -> SideStream | None:
    """Return a stream beside the one that computes; None if the device is no graphics card."""
    return CudaStream(device) if device.type == "cuda" else None


def capture(device: torch.device, generator: torch.Generator) -> Capture:
    """Return what records graphs on a graphics card, with the random numbers of `generator`."""
    if device.type != "cuda":
        raise UsageError(
            f"--train.graphs needs a graphics card, and this run computes on the {device.type}: "
            "leave it out, or use --train.device cuda"
        )
    return CudaCapture(device, generator)


class CudaStream:
    """See `SideStream`."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    @contextmanager
    def beside(self) -> Iterator[None]:
        """See `SideStream.beside`; for the present thread, on the card of the stream."""
        with torch.cuda.stream(self._stream):
            yield

    def mark(self) -> torch.cuda.Event:
        """See `SideStream.mark`."""
        mark: torch.cuda.Event = self._stream.record_event()
        return mark

    def wait(self, mark: torch.cuda.Event, tensors: Iterable[Tensor]) -> None:
        """See `SideStream.wait`; the host does not wait."""
        here = torch.cuda.current_stream(self._stream.device)
        here.wait_event(mark)
        for each in tensors:
            each.record_stream(here)


class CudaCapture:
    """See `Capture`."""

    def __init__(self, device: torch.device, generator: torch.Generator) -> None:
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._generator = generator

    @contextmanager
    def aside(self) -> Iterator[None]:
        """See `Capture.aside`; what came before is waited for, and what comes after waits."""
        here = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(here)
        try:
            with torch.cuda.stream(self._stream):
                yield
        finally:  # who saves after an error reads what is still being computed
            here.wait_stream(self._stream)

    def record(self, work: Callable[[], Result]) -> tuple[Result, Callable[[], None]]:
        """See `Capture.record`."""
        graph = torch.cuda.CUDAGraph()
        # Beside PyTorch's own generator, which is always told. Each repeat goes on in both.
        graph.register_generator_state(self._generator)
        # Other threads may ask for memory meanwhile: one of them pins and copies the next batch.
        recording = torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local")
        here = torch.cuda.current_stream(self._stream.device)
        failed: Exception | None = None
        try:
            with recording:
                try:
                    result = work()
                except Exception as error:
                    failed = error
                    raise
        except RuntimeError as error:
            # Where a recording is spoiled, its end raises an error of its own, before it has gone
            # back to the stream it came from.
            torch.cuda.set_stream(here)
            cause = failed or error
            cause.add_note("An update was being recorded: --train.no-graphs does without that.")
            raise cause from None
        return result, graph.replay
