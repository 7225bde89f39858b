"""Batches drawn ahead, in a thread.

While you learn from a batch, the next one is drawn. That draw holds the buffer's lock from before
you get your batch until it is complete. So whatever you do with the buffer meanwhile, telling it
about your batch or adding steps, happens after the draw: the course of events does not depend on
which of the two is faster. What else is to be done with a batch before it is used (`finish`) needs
no lock and is done in that thread, too.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from curious_replay.replay.batch import Batch

Finished = TypeVar("Finished")


class Prefetch(Iterator[Finished], Generic[Finished]):
    """Batches without end, each drawn by `draw` under `lock` while the one before is in use.

    `finish` makes of each what is handed out.
    """

    def __init__(
        self,
        draw: Callable[[], Batch],
        lock: threading.RLock,
        finish: Callable[[Batch], Finished],
    ) -> None:
        self._draw, self._lock, self._finish = draw, lock, finish
        self._thread = ThreadPoolExecutor(1, "next-batch")
        self._future: Future[Finished] | None = None
        self._kept: Finished | None = None

    def __next__(self) -> Finished:
        batch = self.ahead or self._finish(self._draw())
        self._kept = None
        begun = threading.Event()
        self._future = self._thread.submit(self._draw_alone, begun)
        begun.wait()
        return batch

    @property
    def ahead(self) -> Finished | None:
        """The batch that comes next, once it is complete; None if it is yet to be drawn.

        It is not part of the buffer's saves: to go on exactly, keep it and put it back.
        """
        if self._future is not None:
            future, self._future = self._future, None
            # What could not be drawn is drawn when it is its turn, where an error can be seen.
            self._kept = None if future.exception() else future.result()
        return self._kept

    @ahead.setter
    def ahead(self, batch: Finished | None) -> None:
        _ = self.ahead  # wait for a draw under way
        self._kept = batch

    def close(self) -> None:
        """End the thread; the batch ahead stays."""
        self._thread.shutdown()

    def _draw_alone(self, begun: threading.Event) -> Finished:
        with self._lock:
            begun.set()
            batch = self._draw()
        return self._finish(batch)
