"""Signals that ask a run to stop: SIGTERM and Ctrl-C."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, ClassVar


class Stop:
    """Notes the first such signal, for the run to end in order; a second one ends it at once.

    Use as a context manager. Outside of the main thread Python has no signals to listen to.
    """

    patient: ClassVar[bool] = False
    """Whether a second one does nothing instead; see `repeats_ignored`."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __bool__(self) -> bool:
        return self.signal is not None

    def __enter__(self) -> "Stop":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal is None:
            self.signal = signal.Signals(number)
        elif not self.patient:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


@contextmanager
def repeats_ignored() -> Iterator[None]:
    """Let only the first signal count in here.

    This is for the runs of a sweep, which may hear it twice. Whoever signals all processes also
    reaches the sweep, which then stops its runs. It ends those that do not stop in time.
    """
    before, Stop.patient = Stop.patient, True
    try:
        yield
    finally:
        Stop.patient = before
