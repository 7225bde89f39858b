"""One environment in a process of its own, which may crash or hang without taking others along.

The process runs Gymnasium's own worker loop and writes observations into Gymnasium's own shared
memory. Added are the ways it can fail: an exception comes back as a traceback through the same
pipe, a dead process as its exit code, and a process that does not answer is killed.
"""

import contextlib
import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode
from gymnasium.vector.async_vector_env import _async_worker
from gymnasium.vector.utils import CloudpickleWrapper

MakeEnv = Callable[[], gymnasium.Env]


@dataclass(frozen=True)
class Failure:
    """Why a worker gave no answer: a traceback, or a sentence."""

    reason: str


class Worker:
    """A process with one environment, and the pipe to it.

    `memory` is the block made by `gymnasium.vector.utils.create_shared_memory`; the worker writes
    its observations into row `index`. `context` is a start method of `multiprocessing`.
    """

    def __init__(self, index: int, make_env: MakeEnv, memory: Any, context: str) -> None:
        self.index, self._make_env, self._memory = index, make_env, memory
        self._context: Any = multiprocessing.get_context(context)
        self.pipe: Any = None
        self.start()

    def start(self) -> None:
        """Begin with a new process and a new environment."""
        if self.pipe is not None:
            self.pipe.close()
        self.pipe, child_pipe = self._context.Pipe()
        self.process = self._context.Process(
            target=_run,
            name=f"environment-{self.index}",
            args=(self.index, CloudpickleWrapper(self._make_env), child_pipe, self.pipe,
                  self._memory),
            daemon=True,
        )  # fmt: skip
        self.process.start()
        child_pipe.close()

    def send(self, command: str, data: Any = None) -> None:
        """Ask for something; if the process is dead, `receive` will say so."""
        with contextlib.suppress(OSError):
            self.pipe.send((command, data))

    def receive(self) -> Any:
        """The answer to what was sent, or a `Failure`."""
        try:
            answer, success = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(timeout=5)
            return Failure(f"its process ended with exit code {self.process.exitcode}")
        return answer if success else Failure(answer)

    def kill(self) -> None:
        """End the process at once; what it was doing is lost."""
        self.process.kill()
        self.process.join()


def receive_all(workers: Sequence[Worker], timeout: float) -> list[Any]:
    """The answers of these workers, in order; `Failure` for who needs over `timeout` seconds."""
    answers: dict[int, Any] = {}
    waiting = {worker.pipe: worker for worker in workers}
    deadline = time.monotonic() + timeout
    while waiting:
        ready = wait(list(waiting), max(0.0, deadline - time.monotonic()))
        if not ready:
            break
        for pipe in ready:
            worker = waiting.pop(pipe)
            answers[worker.index] = worker.receive()
    silence = Failure(f"it gave no answer for {timeout:g} seconds")
    return [answers.get(worker.index, silence) for worker in workers]


class _Reporter:
    """Stands before the pipe and for the error queue in the process of a worker.

    Gymnasium's worker puts its traceback into a queue that all workers share, and then sends
    (None, False). A killed process could leave that queue locked, so the traceback takes the pipe.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._trace = ""
        self.recv = pipe.recv

    def put(self, error: tuple[int, type, BaseException, str]) -> None:
        self._trace = error[3]

    def send(self, message: tuple[Any, bool]) -> None:
        answer, success = message
        self._pipe.send((answer, True) if success else (self._trace, False))


def _run(
    index: int, make_env: MakeEnv, pipe: Connection, parent_pipe: Connection, memory: Any
) -> None:
    # Ctrl-C reaches all processes of a terminal; only the main one decides what follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    reporter: Any = _Reporter(pipe)
    try:
        # The parent decides about resets (see vector.py), so the worker's own are switched off.
        _async_worker(
            index, make_env, reporter, parent_pipe, memory, reporter, AutoresetMode.DISABLED, None
        )
    except Exception:
        # Outside the worker's own handling: making the environment, or closing it.
        pipe.send((traceback.format_exc(), False))
