"""Where else a run is shown while it runs: TensorBoard and Weights & Biases.

Both are views. The record is the JSON lines, from which a view can always be made again, so nothing
here is ever read back.
"""

import importlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

Scalars = Mapping[str, float]


class Sink(Protocol):
    """Something that shows numbers and films. `line` counts what was sent since the run began."""

    def scalars(self, frame: int, line: int, values: Scalars) -> None:
        """Show numbers measured at a frame."""

    def film(self, frame: int, line: int, name: str, path: Path) -> None:
        """Show a film that lies in a file."""

    def flush(self) -> None:
        """Hand over everything shown so far, such that a kill cannot take it back."""

    def close(self) -> None:
        """Show nothing more."""


class TensorBoard:
    """Events of one session; TensorBoard joins the sessions of a run by their order in time.

    The x-axis counts frames. TensorBoard's own thread writes. It is imported with the first number
    (0.2 to 0.5 s), which keeps the start of a run quick. Films are left to their files: TensorBoard
    would need them as GIFs, of which one takes longer than several updates of a small agent.
    """

    def __init__(self, folder: Path, purge_from: int | None = None) -> None:
        self.folder = folder
        self.purge_from = purge_from
        self._writer: Any = None
        self._protos: Any = None

    def scalars(self, frame: int, line: int, values: Scalars) -> None:
        """Write one event that holds all the numbers."""
        if self._writer is None:
            self._open()
        event, summary = self._protos
        numbers = [summary.Summary.Value(tag=tag, simple_value=v) for tag, v in values.items()]
        self._writer.add_event(
            event.Event(wall_time=time.time(), step=frame, summary=summary.Summary(value=numbers))
        )

    def film(self, frame: int, line: int, name: str, path: Path) -> None:
        """Leave the film where it is."""

    def flush(self) -> None:
        """Wait until all events are in the file."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()

    def _open(self) -> None:
        proto = "tensorboard.compat.proto"
        event = importlib.import_module(f"{proto}.event_pb2")
        summary = importlib.import_module(f"{proto}.summary_pb2")
        writer = importlib.import_module("tensorboard.summary.writer.event_file_writer")
        self._protos = event, summary
        self._writer = writer.EventFileWriter(str(self.folder), max_queue_size=1000, flush_secs=10)
        if self.purge_from is not None:
            # Tells TensorBoard to forget what earlier sessions wrote from this frame on.
            start = event.SessionLog(status=event.SessionLog.START)
            self._writer.add_event(
                event.Event(wall_time=time.time(), step=self.purge_from, session_log=start)
            )


class WeightsAndBiases:
    """One W&B run, continued under the same id after a resume.

    W&B cannot forget. Lines are therefore numbered, and after a resume those that it has seen are
    not sent again: the run repeats them exactly.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any], identity: str) -> None:
        try:
            self._wandb = importlib.import_module("wandb")
        except ImportError as error:
            raise ImportError(
                "Weights & Biases is not installed; "
                'run `pip install "curious-replay[wandb]"`, or leave it off'
            ) from error
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

    def film(self, frame: int, line: int, name: str, path: Path) -> None:
        """Send a film."""
        film = self._wandb.Video(str(path), format=path.suffix[1:])
        self._log(line, {"frame": frame, f"videos/{name}": film})

    def flush(self) -> None:
        """Do nothing: W&B sends from a process of its own."""

    def close(self) -> None:
        """Wait until W&B has everything."""
        self._run.finish()

    def _log(self, line: int, values: dict[str, Any]) -> None:
        if line >= self._seen:
            self._run.log(values, step=line)
