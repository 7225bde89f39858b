"""One process that runs `curious train`, to be watched, stopped and killed.

Processes come from a server that has imported everything already: with fresh interpreters a soak
would mostly import PyTorch.
"""

import atexit
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from notes import ELSEWHERE, Trace

PRELOADED = [
    "victim", "curious_replay.cli", "curious_replay.commands.train", "curious_replay.run",
    "torch._dynamo", "torch.distributed.tensor",
]  # fmt: skip
KILL, TERM, BOTH = "SIGKILL", "SIGTERM", "SIGTERM, then SIGKILL"
WAYS = (KILL, TERM, BOTH)
GRACE = 0.3  # seconds at most between the two signals
UNKNOWN = 1.0  # seconds that an activity may take which was never seen whole
PATIENCE = 120.0  # seconds that a process may take to come to where it stops, or to its end
MEGABYTE = 2**20


@dataclass(frozen=True)
class Size:
    """What a process takes at one moment."""

    memory: float
    """Resident, in MB."""
    files: int
    """Open file descriptors."""


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until the end of the block."""
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


class Victim:
    """A run of `curious` with some arguments; its words go to `output`, its notes to `trace`."""

    def __init__(
        self,
        arguments: Sequence[str],
        output: Path,
        trace: Path,
        aim: str | None = None,
        passes: int = 0,
    ) -> None:
        self.output = output
        self.trace = Trace(trace)
        self.trace.begin(aim, passes)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self._process = context.Process(target=_run, args=(list(arguments), output, trace))
        self._process.start()
        self._pid = self._process.pid or 0

    def wait_until_stopped(self) -> bool:
        """Whether the process came to where it was to stop itself; else it ends, or hangs."""
        deadline = time.monotonic() + PATIENCE
        while self._process.is_alive() and time.monotonic() < deadline:
            if self.trace.reached and self._state() == "T":
                return True
            time.sleep(0.002)
        return False

    def kill(self, way: str, rng: random.Random) -> str | None:
        """Let a stopped process go on for a moment, then kill it; returns what it was doing.

        The moment is anything up to the time that the activity took before. None if the process
        had come to its end by then.
        """
        delay = rng.random() * (self.trace.seconds(self.trace.activity) or UNKNOWN)
        os.kill(self._pid, signal.SIGCONT)
        time.sleep(delay)
        with suppress(ProcessLookupError):
            if way == KILL:
                os.kill(self._pid, signal.SIGKILL)
                return None if self.end() == 0 else self.trace.activity
            os.kill(self._pid, signal.SIGSTOP)
            activity = self.trace.activity
            # Its environments get it too, as from a terminal or a scheduler.
            os.killpg(self._pid, signal.SIGTERM)
            os.kill(self._pid, signal.SIGCONT)
            if way == BOTH:
                time.sleep(rng.random() * GRACE)
                self._process.kill()  # which does nothing if it is gone
            return activity
        return None

    def end(self) -> int | None:
        """Wait for the end; returns the exit code, None if the process had to be killed."""
        self._process.join(PATIENCE)
        if self._process.is_alive():
            self.destroy()
            return None
        return self._process.exitcode

    def destroy(self) -> None:
        """End the process at once, whatever it does."""
        self._process.kill()
        self._process.join()

    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.is_alive()

    def size(self) -> Size | None:
        """What it takes now; None if it is gone."""
        try:
            pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1])
            files = len(os.listdir(f"/proc/{self._pid}/fd"))  # noqa: PTH208
        except (OSError, IndexError):
            return None
        return Size(pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE, files)

    def orphans(self, patience: float = 60.0) -> list[str]:
        """Processes of the run that outlive it by more than `patience` seconds; they are ended."""
        deadline = time.monotonic() + patience
        while (left := _session(self._pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        words = [f"outlived by process {pid}: {_command(pid)}" for pid in left]
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return words

    def last_words(self) -> str:
        """The end of what it printed."""
        return self.output.read_text()[-2000:] if self.output.exists() else ""

    def _state(self) -> str:
        try:
            return Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return ""


def _session(leader: int) -> list[int]:
    """Processes of the session that a process began, without itself."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z" and int(path.parent.name) != leader:
                found.append(int(path.parent.name))
    return found


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:120]
    return ""


def _run(arguments: list[str], output: Path, trace: Path) -> None:
    """What the process does."""
    from curious_replay import cli  # noqa: PLC0415  # takes long, and only here
    from curious_replay.run.loop import trainer as loop  # noqa: PLC0415
    from curious_replay.run.loop.driver import Driver  # noqa: PLC0415
    from curious_replay.run.loop.learner import Learner  # noqa: PLC0415
    from curious_replay.run.record import snapshots  # noqa: PLC0415
    from curious_replay.run.record.record import Record  # noqa: PLC0415

    os.setsid()
    # As if started by itself: what its environments import first is this, and not the soak.
    sys.modules["__main__"] = cli
    with output.open("ab") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    notes = Trace(trace)
    notes.note(Driver, "send", "collecting")
    notes.note(Driver, "receive", "collecting")
    notes.note(Learner, "update", "updating")
    notes.note(loop.Trainer, "_save", "saving")
    notes.note(loop.Trainer, "_evaluate", "evaluating")
    notes.note(loop.Trainer, "_video", "filming")
    notes.note(Record, "video", "filming")
    notes.note(Record, "_write", "writing logs")
    notes.note(snapshots, "write", "writing logs")
    notes.note(loop.Trainer, "run", ELSEWHERE)
    notes.enter("starting")
    code = cli.main(arguments)
    atexit._run_exitfuncs()  # a process of multiprocessing leaves them out, an interpreter does not
    sys.exit(code)
