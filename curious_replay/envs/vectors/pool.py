"""A row of workers, and what is done when one of them fails.

A failed worker is replaced after a pause that doubles with each failure in a row; after too many
the run is to stop, with the traceback of the last one.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from curious_replay.envs.vectors.worker import AnyWorker, Failure, receive_all

logger = logging.getLogger(__name__)

Request = tuple[str, Any]
"""A command of the worker (reset, step, call, set, spaces) and its data."""


class WorkerError(RuntimeError):
    """An environment failed for good; the message holds its traceback."""


@dataclass(frozen=True)
class Restarts:
    """When a worker counts as failed and what is done about it. Times in seconds."""

    step_timeout: float = 60.0  # for a step, or the reset that follows the end of an episode
    start_timeout: float = 300.0  # to make an environment and reset it, or for a call
    limit: int = 5  # failures of one worker in a row; one more stops the run
    in_all: int | None = None  # restarts of all workers; one more failure stops the run
    forgive_after: int = 10_000  # steps without a failure that end such a row
    first_pause: float = 0.5
    longest_pause: float = 30.0

    def pause(self, failures: int) -> float:
        """Return how long to wait before the restart that follows this many failures in a row."""
        return min(self.longest_pause, self.first_pause * 2.0 ** (failures - 1))


DEFAULT_RESTARTS = Restarts()


class WorkerPool:
    """Workers 0 to n - 1, their failures and restarts."""

    def __init__(self, workers: Sequence[AnyWorker], policy: Restarts) -> None:
        self.policy = policy
        self.restarts = np.zeros(len(workers), np.int64)
        self._workers = workers
        self._failures = np.zeros(len(workers), np.int64)  # in a row
        self._healthy_steps = np.zeros(len(workers), np.int64)

    def send(self, index: int, request: Request) -> None:
        """Ask one worker."""
        self._workers[index].send(*request)

    def receive(self, indices: Sequence[int], timeout: float) -> dict[int, Any]:
        """Return the answers of these workers, each perhaps a `Failure`."""
        answers = receive_all([self._workers[index] for index in indices], timeout)
        return dict(zip(indices, answers, strict=True))

    def ask(self, what: str, requests: Sequence[Request]) -> tuple[Any, ...]:
        """Ask every worker; a failure raises `WorkerError`, for it is the caller's to see."""
        for worker, request in zip(self._workers, requests, strict=True):
            worker.send(*request)
        answers = receive_all(self._workers, self.policy.start_timeout)
        failures = {i: answer for i, answer in enumerate(answers) if isinstance(answer, Failure)}
        for index in failures:
            # An answer that came late would be taken for that of the next request.
            self._workers[index].kill()
        if failures:
            index = min(failures)
            raise WorkerError(f"environment {index} failed in {what}: {failures[index].reason}")
        return tuple(answers)

    def restart(self, index: int, failure: Failure, requests: Sequence[Request]) -> Any:
        """Replace a failed worker, make these requests, and return the answer to the last."""
        worker = self._workers[index]
        while True:
            self._failures[index] += 1
            self._healthy_steps[index] = 0
            if self._failures[index] > self.policy.limit:
                raise WorkerError(
                    f"environment {index} failed {self._failures[index]} times in a row, "
                    f"the last time: {failure.reason}"
                )
            if self.policy.in_all is not None and self.restarts.sum() >= self.policy.in_all:
                raise WorkerError(
                    f"environment {index} failed, and --env.max-restarts allows "
                    f"{self.policy.in_all} restarts in all, which were made: {failure.reason}"
                )
            pause = self.policy.pause(int(self._failures[index]))
            logger.warning(
                "environment %d failed and is restarted in %g s: %s", index, pause, failure.reason
            )
            worker.kill()
            time.sleep(pause)
            worker.start()
            self.restarts[index] += 1
            for request in requests:
                worker.send(*request)
                (answer,) = receive_all([worker], self.policy.start_timeout)
                if isinstance(answer, Failure):
                    failure = answer
                    break
            else:
                return answer

    def note_step(self, failed: np.ndarray) -> None:
        """Count a step of all workers, of which some failed (bool [workers]).

        Enough steps without a failure end a row of failures.
        """
        self._healthy_steps[~failed] += 1
        self._failures[self._healthy_steps >= self.policy.forgive_after] = 0

    def close(self) -> None:
        """End all processes: together they get five seconds to close their environments."""
        for worker in self._workers:
            worker.send("close")
        deadline = time.monotonic() + 5.0
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))
            worker.kill()
