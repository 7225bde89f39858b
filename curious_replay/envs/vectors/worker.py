"""One environment in a process of its own, which may crash or hang without taking others along.

Observations travel through Gymnasium's shared memory, all else through a pipe, and so do failures:
an exception comes back as a traceback, a dead process as its exit code, and a process that does not
answer in time is known by its silence and can be killed.
"""

import contextlib
import multiprocessing
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.util import Finalize
from typing import Any

import gymnasium
from gymnasium.vector.utils import CloudpickleWrapper, write_to_shared_memory

MakeEnv = Callable[[], gymnasium.Env]

FOR_THE_MAIN_PROCESS = {signal.SIGTERM, signal.SIGUSR2}
"""What schedulers send to all processes of a job; SIGUSR2 is how submitit says it is time."""
HELD_BACK = {*FOR_THE_MAIN_PROCESS, signal.SIGINT}
"""The same and Ctrl-C, from a worker that is only being born."""


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
        # These signals reach all processes; only the main one decides what follows. So they are
        # held back from the worker until it can ignore them, and from the server that forks it.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        child_pipe.close()
        # At exit multiprocessing sends SIGTERM and waits: who ignores that must be gone before.
        self._end = Finalize(self, self.process.kill, exitpriority=10)

    def send(self, command: str, data: Any = None) -> None:
        """Ask for something; if the process is dead, `receive` will say so."""
        with contextlib.suppress(OSError):
            self.pipe.send((command, data))

    def receive(self) -> Any:
        """Return the answer to what was sent, or a `Failure`."""
        try:
            answer, success = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(timeout=5)
            return Failure(f"its process ended with exit code {self.process.exitcode}")
        return answer if success else Failure(answer)

    def join(self, timeout: float) -> None:
        """Wait for the process to end, up to `timeout` seconds."""
        self.process.join(timeout)

    def kill(self) -> None:
        """End the process at once; what it was doing is lost."""
        self._end()
        self.process.join()


class LocalWorker:
    """The same without a process: quicker for a single cheap environment.

    An exception is a failure as ever, but a crash or a hang takes the main process along.
    """

    pipe = None

    def __init__(self, index: int, make_env: MakeEnv, memory: Any) -> None:
        self.index, self._make_env, self._memory = index, make_env, memory
        self._env: gymnasium.Env | None = None
        self._reply: Any = None
        self.start()

    def start(self) -> None:
        """Make a new environment; if that fails, the next reply will say so."""
        try:
            self._env = self._make_env()
        except Exception:
            self._reply = Failure(traceback.format_exc())

    def send(self, command: str, data: Any = None) -> None:
        """Do what is asked at once and keep the reply."""
        if command == "close":
            self.kill()
        elif self._env is not None:  # else the reply is still the failure that ended it
            try:
                self._reply = _answer(self._env, self.index, self._memory, command, data)
            except Exception:
                self._reply = Failure(traceback.format_exc())
                self.kill()

    def receive(self) -> Any:
        """Return the answer to what was sent, or a `Failure`."""
        return self._reply

    def join(self, timeout: float) -> None:
        """Do nothing: there is nothing to wait for."""

    def kill(self) -> None:
        """Close the environment; what goes wrong in it no longer matters."""
        if self._env is not None:
            with contextlib.suppress(Exception):
                self._env.close()
        self._env = None


AnyWorker = Worker | LocalWorker


def receive_all(workers: Sequence[AnyWorker], timeout: float) -> list[Any]:
    """Return the answers of these workers, in order.

    `Failure` stands for who needs over `timeout` seconds.
    """
    answers = {worker.index: worker.receive() for worker in workers if worker.pipe is None}
    waiting = {worker.pipe: worker for worker in workers if worker.pipe is not None}
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


def _run(
    index: int, make_env: MakeEnv, pipe: Connection, parent_pipe: Connection, memory: Any
) -> None:
    """Run the process of a worker: answer requests until told to close."""
    # Ctrl-C reaches all processes of a terminal; only the main one decides what follows.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A handler, for what is ignored would be ignored by programs that an environment starts, too.
    for number in FOR_THE_MAIN_PROCESS:
        signal.signal(number, lambda number, frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
    parent_pipe.close()
    try:
        env = make_env()
        try:
            while (request := pipe.recv())[0] != "close":
                pipe.send((_answer(env, index, memory, *request), True))
        finally:
            env.close()
    except EOFError:
        pass  # the main process is gone
    except Exception:
        with contextlib.suppress(OSError):
            pipe.send((traceback.format_exc(), False))


def _answer(env: gymnasium.Env, index: int, memory: Any, command: str, data: Any) -> Any:
    """Do what is asked; observations go into the shared memory, the rest is returned."""
    match command:
        case "reset":
            observation, info = env.reset(**data)
            write_to_shared_memory(env.observation_space, index, observation, memory)
            return info
        case "step":
            observation, *outcome = env.step(data)
            write_to_shared_memory(env.observation_space, index, observation, memory)
            return outcome
        case "call":
            name, args, kwargs = data
            attribute = env.get_wrapper_attr(name)
            return attribute(*args, **kwargs) if callable(attribute) else attribute
        case "set":
            return env.set_wrapper_attr(*data)
        case "spaces":
            return env.observation_space, env.action_space
        case _:
            raise ValueError(f"unknown request {command!r}")
