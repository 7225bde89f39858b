"""Tasks on a Ray cluster, whose machines share the folder of the runs.

Ray queues the tasks, and starts a task anew on another machine if the one it ran on is lost; the
task then goes on from its last checkpoint.
"""

import signal
import socket

import ray
from ray.exceptions import RayError

from curious_replay.errors import UsageError
from curious_replay.run.loop.stop import repeats_ignored
from curious_replay.sweep.task import Task
from curious_replay.sweep.work import STOP_SECONDS, Ended, describe, run_task

LOST = 5
"""How often a task may lose its machine."""
CONNECT_SECONDS = 10.0


class RayLauncher:
    """Hands tasks to a cluster; use as a context manager."""

    def __init__(self, address: str, threads: int, gpus: float) -> None:
        """Prepare for tasks of `threads` and `gpus` each; Ray runs as many tasks as fit."""
        self._address, self._threads, self._gpus = address, threads, gpus
        self._tasks: dict[ray.ObjectRef[int], str] = {}

    def __enter__(self) -> "RayLauncher":
        self._ours = not ray.is_initialized()
        if self._ours:
            before = signal.getsignal(signal.SIGTERM)
            self._connect()
            # Ray ends the process at this signal; a sweep lets its runs save first.
            signal.signal(signal.SIGTERM, before)
        # A worker serves one task only: each begins with a process as fresh as on one machine.
        self._run = ray.remote(
            num_cpus=self._threads, num_gpus=self._gpus, max_retries=LOST, max_calls=1
        )(_work)
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours:
            ray.shutdown()

    def submit(self, tasks: list[Task]) -> None:
        """See `Launcher`."""
        for task in tasks:
            self._tasks[self._run.options(name=task.name).remote(task)] = task.name

    def running(self) -> set[str]:
        """See `Launcher`. Ray does not tell cheaply which tasks wait: all count as under way."""
        return set(self._tasks.values())

    def ended(self) -> list[Ended]:
        """See `Launcher`."""
        if not self._tasks:
            return []
        done, _ = ray.wait([*self._tasks], num_returns=len(self._tasks), timeout=0)
        found = []
        for reference in done:
            name = self._tasks.pop(reference)
            try:
                found.append(Ended(name, ray.get(reference)))
            except RayError as error:  # its machines were lost too often, or it ran out of memory
                found.append(Ended(name, 1, describe(error)))
        return found

    def stop(self) -> None:
        """See `Launcher`."""
        for reference in self._tasks:
            ray.cancel(reference, force=False)  # as Ctrl-C would: a run saves and stops
        if not self._tasks:
            return
        _, deaf = ray.wait([*self._tasks], num_returns=len(self._tasks), timeout=STOP_SECONDS)
        for reference in deaf:
            ray.cancel(reference, force=True)  # Ray may lose a request to stop

    def _connect(self) -> None:
        if self._address not in ("auto", "local") and not _answers(self._address):
            raise UsageError(
                f"--ray.address: there is no Ray cluster at {self._address}; leave it out to use "
                "the one this machine belongs to, or else this machine alone"
            )
        if self._address == "local":
            _start_here()
            return
        try:
            ray.init(address=self._address, log_to_driver=False)
        except ConnectionError:
            if self._address != "auto":
                raise
            _start_here()


def _work(task: Task) -> int:
    """Run a task in a worker; return the code of `Ended`."""
    with repeats_ignored():
        return run_task(task)


def _start_here() -> None:
    """Start Ray on this machine, without its page, which others on the network could open."""
    ray.init(address="local", log_to_driver=False, include_dashboard=False)


def _answers(address: str) -> bool:
    """Return whether somebody listens there; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True
