"""Tasks on this machine: as many at once as there are cores or graphics cards for them.

Each task is a process of its own. They are copies of one process that has imported PyTorch already,
so that a task begins at once. When whoever started them is gone, they save and stop.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess

from curious_replay.run.loop.stop import repeats_ignored
from curious_replay.sweep.task import Task
from curious_replay.sweep.work import STOP_SECONDS, Ended, run_task

PRELOADED = [
    "curious_replay.run.training",
    "curious_replay.sweep.local",
    "torch._dynamo",  # which the first optimiser imports, for seconds
]


class LocalLauncher:
    """Carries out tasks side by side, in the order in which they come."""

    def __init__(self, at_once: int, cards: Sequence[str] = ()) -> None:
        """Prepare to spread the tasks over graphics cards; `cards` are their names for CUDA."""
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)
        self._at_once, self._cards = at_once, cards
        self._waiting: deque[Task] = deque()
        self._processes: dict[str, tuple[ForkServerProcess, str | None]] = {}

    def submit(self, tasks: list[Task]) -> None:
        """See `Launcher`. Branches go before trunks that wait, so that seeds end one by one."""
        self._waiting.extend(tasks)
        self._waiting = deque(sorted(self._waiting, key=lambda task: task.trunk is None))
        self._fill()

    def running(self) -> set[str]:
        """See `Launcher`. What waits begins here, and not where a trunk's end makes room for it."""
        self._fill()
        return set(self._processes)

    def ended(self) -> list[Ended]:
        """See `Launcher`."""
        found = []
        for name, (process, _) in list(self._processes.items()):
            code = process.exitcode
            if code is None:
                continue
            del self._processes[name]
            killed = f"killed by {signal.Signals(-code).name}" if code < 0 else ""
            found.append(Ended(name, code, killed))
        return found

    def stop(self) -> None:
        """See `Launcher`."""
        self._waiting.clear()
        for process, _ in self._processes.values():
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process, _ in self._processes.values():
            process.join(max(deadline - time.monotonic(), 0))
            if process.exitcode is None:
                process.kill()
                process.join()

    def _fill(self) -> None:
        while self._waiting and len(self._processes) < self._at_once:
            task = self._waiting.popleft()
            tasks_of = Counter(card for _, card in self._processes.values())
            card = min(self._cards, key=lambda card: tasks_of[card], default=None)
            process = self._context.Process(target=_work, args=(task, card), name=task.name)
            _start(process)
            self._processes[task.name] = process, card


def _start(process: ForkServerProcess) -> None:
    """Start it, by a server that does not hear SIGTERM: without it nobody knows who still saves."""
    resource_tracker.ensure_running()  # or else it would be started below, and end the holding back
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _work(task: Task, card: str | None) -> None:
    """Run a task in its own process, and exit with its code."""
    # The server that forks it was started by one who held these back.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
    if card is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = card
    os.setsid()  # Ctrl-C reaches the sweep alone, which then stops its tasks
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    task.folder.parent.mkdir(parents=True, exist_ok=True)
    with task.log.open("ab") as log:  # whatever libraries print
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
    with repeats_ignored():
        sys.exit(run_task(task))


def _stop_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
