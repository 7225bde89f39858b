"""Batches drawn ahead, in a thread.

While you learn from a batch, the next one is drawn. That draw holds the buffer's lock from before
you get your batch until it is complete. So whatever you do with the buffer meanwhile, telling it
about your batch or adding steps, happens after the draw: the course of events does not depend on
which of the two is faster.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from curious_replay.replay.batch import Batch


class Prefetch(Iterator[Batch]):
    """Batches without end, each drawn by `draw` under `lock` while the one before is in use."""

    def __init__(self, draw: Callable[[], Batch], lock: threading.RLock) -> None:
        self._draw, self._lock = draw, lock
        self._thread = ThreadPoolExecutor(1, "next-batch")
        self._future: Future[Batch] | None = None
        self._kept: Batch | None = None

    def __next__(self) -> Batch:
        batch = self.ahead or self._draw()
        self._kept = None
        begun = threading.Event()
        self._future = self._thread.submit(self._draw_alone, begun)
        begun.wait()
        return batch

    @property
    def ahead(self) -> Batch | None:
        """The batch that comes next, once it is complete; None if it is yet to be drawn.

        It is not part of the buffer's saves: to go on exactly, keep it and put it back.
        """
        if self._future is not None:
            future, self._future = self._future, None
            # What could not be drawn is drawn when it is its turn, where an error can be seen.
            self._kept = None if future.exception() else future.result()
        return self._kept

    @ahead.setter
    def ahead(self, batch: Batch | None) -> None:
        _ = self.ahead  # wait for a draw under way
        self._kept = batch

    def close(self) -> None:
        """End the thread; the batch ahead stays."""
        self._thread.shutdown()

    def _draw_alone(self, begun: threading.Event) -> Batch:
        with self._lock:
            begun.set()
            return self._draw()
