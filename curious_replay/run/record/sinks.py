"""Where else a run is shown while it runs: TensorBoard and Weights & Biases.

Both are views. The record is the JSON lines, from which a view can always be made again, so nothing
here is ever read back.
"""

import importlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, Protocol

from curious_replay.extras import explained

Scalars = Mapping[str, float]


class Sink(Protocol):
    """Something that shows numbers and videos. `line` counts what was sent since the run began."""

    def scalars(self, frame: int, line: int, values: Scalars) -> None:
        """Show numbers measured at a frame."""

    def video(self, frame: int, line: int, name: str, path: Path) -> None:
        """Show a video that lies in a file."""

    def flush(self) -> None:
        """Hand over everything shown so far, such that a kill cannot take it back."""

    def close(self) -> None:
        """Show nothing more."""


class TensorBoardError(OSError):
    """Events could not be written."""


class TensorBoard:
    """Events of one session; TensorBoard joins the sessions of a run by the names of their files.

    Those names are numbered: the usual ones go by the second, which is too coarse for a run that is
    killed and resumed at once. The x-axis counts frames. Everything happens in a thread, including
    the import of TensorBoard (0.2 to 0.5 s) when there is something to write; if it fails, the next
    call says so. Videos are left to their files: TensorBoard would need them as GIFs, of which one
    takes longer to make than several updates of a small agent.
    """

    def __init__(self, folder: Path, purge_from: int | None = None) -> None:
        self.folder = folder
        self.purge_from = purge_from
        self._queue: Queue[tuple[float, int, Scalars] | None] = Queue()
        self._thread = Thread(target=self._work, name="TensorBoard", daemon=True)
        self._error: Exception | None = None

    def scalars(self, frame: int, line: int, values: Scalars) -> None:
        """Write one event that holds all the numbers."""
        self._check()
        if self._thread.ident is None:
            self._thread.start()
        self._queue.put((time.time(), frame, values))

    def video(self, frame: int, line: int, name: str, path: Path) -> None:
        """Leave the video where it is."""

    def flush(self) -> None:
        """Wait until all events are in the file."""
        if self._thread.ident is not None:
            self._queue.join()
        self._check()

    def close(self) -> None:
        """Finish the file."""
        if self._thread.ident is not None:
            self._queue.put(None)
            self._thread.join()
        self._check()

    def _check(self) -> None:
        if self._error is not None:
            raise TensorBoardError(f"TensorBoard cannot be written: {self._error}") from self._error

    def _work(self) -> None:
        """Write what comes; after an error only take it, so that nobody waits for ever."""
        file = None
        for item in iter(self._queue.get, None):
            try:
                if self._error is None:
                    file = file or _EventFile(self.folder, self.purge_from)
                    file.write(*item)
                    if self._queue.empty():
                        file.flush()
            except Exception as error:
                self._error = error
            self._queue.task_done()
        if file is not None:
            file.close()


class _EventFile:
    """The next file of events in a folder."""

    def __init__(self, folder: Path, purge_from: int | None) -> None:
        self._event = importlib.import_module("tensorboard.compat.proto.event_pb2")
        self._summary = importlib.import_module("tensorboard.compat.proto.summary_pb2")
        records = importlib.import_module("tensorboard.summary.writer.record_writer")
        numbers = [int(path.suffix[1:]) for path in folder.glob("events.out.tfevents.*")]
        path = folder / f"events.out.tfevents.{1 + max(numbers, default=0):010d}"
        self._file = path.open("xb")
        self._records = records.RecordWriter(self._file)
        self._put(self._event.Event(wall_time=time.time(), file_version="brain.Event:2"))
        if purge_from is not None:
            # Tells TensorBoard to forget what earlier sessions wrote from this frame on.
            start = self._event.SessionLog(status=self._event.SessionLog.START)
            now = time.time()
            self._put(self._event.Event(wall_time=now, step=purge_from, session_log=start))

    def write(self, wall_time: float, frame: int, values: Scalars) -> None:
        """Add one event."""
        numbers = [self._summary.Summary.Value(tag=k, simple_value=v) for k, v in values.items()]
        summary = self._summary.Summary(value=numbers)
        self._put(self._event.Event(wall_time=wall_time, step=frame, summary=summary))

    def flush(self) -> None:
        """Hand everything to the operating system."""
        self._file.flush()

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    def _put(self, event: Any) -> None:
        self._records.write(event.SerializeToString())


class WeightsAndBiases:
    """One W&B run, continued under the same id after a resume.

    W&B cannot forget. Lines are therefore numbered, and after a resume those that it has seen are
    not sent again: the run repeats them exactly.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], identity: str) -> None:
        with explained("Weights & Biases"):
            self._wandb = importlib.import_module("wandb")
        self._run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", "curious-replay"),
            id=identity,
            resume="allow",
            name=folder.resolve().name,
            config=dict(config),
            dir=str(folder),
        )
        self._run.define_metric("*", step_metric="frame")
        self._seen = int(self._run.step or 0)

    def scalars(self, frame: int, line: int, values: Scalars) -> None:
        """Send the numbers of one line."""
        self._log(line, {"frame": frame, **values})

    def video(self, frame: int, line: int, name: str, path: Path) -> None:
        """Send a video."""
        video = self._wandb.Video(str(path), format=path.suffix[1:])
        self._log(line, {"frame": frame, f"videos/{name}": video})

    def flush(self) -> None:
        """Do nothing: W&B sends from a process of its own."""

    def close(self) -> None:
        """Wait until W&B has everything."""
        self._run.finish()

    def _log(self, line: int, values: dict[str, Any]) -> None:
        if line >= self._seen:
            self._run.log(values, step=line)
