"""The record of a run: one folder that holds everything which analyses will ever see.

    config.json     all settings                      meta.json       versions, commit, seed, host
    metrics.jsonl   losses and the like               episodes.jsonl  one line for each episode
    probe.jsonl     model error on test scenes        speed.jsonl     whatever depends on the clock
    events/         the same for TensorBoard, without the probe
    videos/         videos
    checkpoints/, snapshots/    not ours: what resuming needs, and what replay held at times

Each line begins with the counters: frame, step, update. A line is with the operating system when
the call returns, so a kill loses none. A checkpoint keeps `position()`; `open` goes back to it, and
as the resumed run writes the same lines again, no line is lost or doubled. For that, nothing in
metrics.jsonl or episodes.jsonl may depend on the clock. speed.jsonl does, so its lines are never
taken back: they name the session (1, and one more with each resume) that wrote them.
"""

import os
import re
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from curious_replay.durable import UNFINISHED, sync_folder
from curious_replay.run.record.encode import EncodeError, why_no_mp4, write_video
from curious_replay.run.record.files import (
    append_line,
    cut,
    read_json,
    read_lines,
    whole_lines,
    write_json,
)
from curious_replay.run.record.meta import describe, new_id
from curious_replay.run.record.record_files import (
    COUNTERS,
    REPEATABLE,
    TAGS,
    RecordError,
    check_reaches,
    locked,
    read_meta,
    refuse_strange_files,
    sizes_at,
)
from curious_replay.run.record.sinks import Sink, TensorBoard, WeightsAndBiases
from curious_replay.run_folder import (
    CHECKPOINTS,
    CONFIG,
    EPISODES,
    EVENTS,
    META,
    METRICS,
    PROBE,
    SPEED,
    VIDEOS,
)

Array = np.ndarray
Counters = Mapping[str, int]
Values = Mapping[str, float | int | str]


class Record:
    """One run folder, open for writing; made by `create` or `open`."""

    def __init__(
        self, folder: Path, lock: FileIO, position: Mapping[str, Any], sinks: list[Sink]
    ) -> None:
        self.folder = folder
        self.note: Callable[[str], None] = lambda text: print(text, file=sys.stderr)
        """How to tell the user something; may be replaced."""
        self._lock = lock
        self._session = 1 + len(read_meta(folder)["resumes"])
        self._frame = int(position.get("frame", 0))
        self._line = int(position.get("line", 0))
        self._sinks = sinks
        self._gif_noted = False
        for name in (EVENTS, VIDEOS, CHECKPOINTS):
            (folder / name).mkdir(exist_ok=True)
        for unfinished in (folder / VIDEOS).glob(f"{UNFINISHED}*"):
            unfinished.unlink()
        self._files = {name: (folder / name).open("ab", buffering=0) for name in TAGS}
        sync_folder(folder)

    @classmethod
    def create(
        cls,
        folder: Path,
        config: Mapping[str, Any],
        *,
        seed: int,
        wandb: bool = False,
        tensorboard: bool = True,
    ) -> "Record":
        """Begin a run in a folder that holds none."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder) as lock:
            found = [name for name in (CONFIG, *TAGS) if (folder / name).exists()]
            if found:
                raise RecordError(
                    f"{folder} holds a run already (it has {', '.join(found)}): "
                    "continue that one with --resume, or choose another folder"
                )
            about = {"seed": seed, "id": new_id(), **describe(), "resumes": []}
            write_json(folder / META, about)
            sinks: list[Sink] = [_start_wandb(folder, config)] if wandb else []
            # Last, since it is what makes the folder a run: a kill before this leaves none behind.
            write_json(folder / CONFIG, config)
            if tensorboard:
                sinks.append(TensorBoard(folder / EVENTS))
            return cls(folder, lock, {}, sinks)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        position: Mapping[str, Any],
        lock: FileIO | None = None,
        remarks: Mapping[str, Any] | None = None,
        wandb: bool = False,
        tensorboard: bool = True,
    ) -> "Record":
        """Continue a run from where `position` was taken; `{}` is its very beginning.

        `lock`: that of the folder (see `locked`), if it is taken already. `remarks` are kept with
        what else meta.json tells of this resume.
        """
        folder = Path(folder)
        missing = [name for name in (CONFIG, META) if not (folder / name).is_file()]
        if missing:
            raise RecordError(f"{folder} holds no run to resume: it has no {missing[0]}")
        refuse_strange_files(folder)
        with nullcontext(lock) if lock else locked(folder) as held:
            sizes = sizes_at(folder, position)
            for name, size in sizes.items():  # all are judged before one is changed
                check_reaches(folder / name, size)
            sinks: list[Sink] = []
            if wandb:
                sinks.append(_start_wandb(folder, read_json(folder / CONFIG)))
            for name, size in sizes.items():
                cut(folder / name, size)
            cut(folder / SPEED, whole_lines(folder / SPEED))
            frame = int(position.get("frame", 0))
            if tensorboard:
                sinks.append(_continue_tensorboard(folder, frame))
            resume = {**describe(), "frame": frame, **(remarks or {})}
            _add_meta(folder, resumes=[*read_meta(folder)["resumes"], resume])
            return cls(folder, held, position, sinks)

    def metrics(self, counters: Counters, values: Values) -> None:
        """Add a line of numbers; the same run must write the same line, so none from the clock."""
        self._write(METRICS, counters, values)

    def episode(self, counters: Counters, values: Values) -> None:
        """Add a line for an episode that has ended; the same rule holds."""
        self._write(EPISODES, counters, values)

    def probe(self, counters: Counters, values: Values) -> None:
        """Add a line of the model's error on a test scene; the same rule holds."""
        self._write(PROBE, counters, values)

    def speed(self, counters: Counters, values: Values) -> None:
        """Add a line of whatever depends on the clock."""
        self._write(SPEED, counters, values, session=self._session)

    def video(
        self, name: str, counters: Counters, pictures: Array | Iterable[Array], fps: float
    ) -> None:
        """Write a video of pictures uint8 [time, height, width, 3] as videos/`name`-<frame>.mp4.

        Pictures may also come one at a time. Where there is no ffmpeg, the video is a GIF. A video
        that cannot be written is no reason to end a run: it is noted.
        """
        if not re.fullmatch(r"[\w-]+", name):
            raise ValueError(f"a video is named with letters, digits, '_' and '-', got {name!r}")
        self._line += 1
        frame = int(counters["frame"])
        try:
            path = write_video(pictures, self.folder / VIDEOS / f"{name}-{frame:09d}", fps)
        except (EncodeError, OSError) as error:
            self.note(f"the video {name} of frame {frame} was not written: {error}")
            return
        if path.suffix == ".gif" and not self._gif_noted:
            self._gif_noted = True
            self.note(f"videos are written as GIF, since there is no H.264: {why_no_mp4()}")
        for sink in self._sinks:
            sink.video(frame, self._line - 1, name, path)

    def remember(self, **values: Any) -> None:
        """Add to meta.json what was not known at the start, as the camera that is in use."""
        _add_meta(self.folder, **values)

    def position(self) -> dict[str, Any]:
        """Return what `open` needs to come back to this moment, after everything is on disk."""
        for sink in self._sinks:
            sink.flush()
        for file in self._files.values():
            os.fsync(file.fileno())
        sizes = {name: os.fstat(self._files[name].fileno()).st_size for name in REPEATABLE}
        return {"frame": self._frame, "line": self._line, "bytes": sizes}

    def close(self) -> None:
        """Finish all files; a second call does nothing."""
        try:
            while self._sinks:
                self._sinks.pop().close()
        finally:
            for file in (*self._files.values(), self._lock):
                file.close()

    def __enter__(self) -> "Record":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, file: str, counters: Counters, values: Values, **unshown: int) -> None:
        missing = [name for name in COUNTERS if name not in counters]
        if missing:
            raise ValueError(f"a line needs the counters {', '.join(COUNTERS)}; {missing} missing")
        twice = sorted(counters.keys() & values.keys())
        if twice:
            raise ValueError(f"{', '.join(twice)} cannot be counter and value of the same line")
        head = {name: int(counters[name]) for name in COUNTERS}
        tail = {**{name: counters[name] for name in counters if name not in head}, **values}
        append_line(self._files[file], {**head, **unshown, **tail})
        line = self._line
        if file != SPEED:  # how many lines speed has is up to the clock: they have no numbers
            self._line += 1
        self._frame = head["frame"]
        for sink in self._sinks if file != PROBE else ():  # hundreds of lines each time
            sink.scalars(self._frame, line, _scalars(file, tail))


def _add_meta(folder: Path, **values: Any) -> None:
    write_json(folder / META, {**read_meta(folder), **values})


def _start_wandb(folder: Path, config: Mapping[str, Any]) -> WeightsAndBiases:
    """Begin a W&B run, or continue the one whose id the folder remembers."""
    identity = read_meta(folder).get("wandb")
    if not isinstance(identity, str):
        identity = secrets.token_hex(8)
        _add_meta(folder, wandb=identity)
    return WeightsAndBiases(folder, config, identity)


def _continue_tensorboard(folder: Path, frame: int) -> TensorBoard:
    """Let TensorBoard forget what came after the checkpoint.

    It forgets whole frames only, so what belongs to the last frame is shown again; all of it where
    nothing was shown before, as in a fork. Speed has no place to go back to; its points of that one
    frame are only in speed.jsonl.
    """
    (folder / EVENTS).mkdir(exist_ok=True)
    nothing_shown = not any((folder / EVENTS).glob("events.out.tfevents.*"))
    board = TensorBoard(folder / EVENTS, purge_from=frame)
    for file in (METRICS, EPISODES):
        for line in read_lines(folder / file) if (folder / file).exists() else ():
            at = line.get("frame")
            if at == frame or (nothing_shown and isinstance(at, int)):
                values = {name: line[name] for name in line if name not in COUNTERS}
                board.scalars(at, 0, _scalars(file, values))
    return board


def _scalars(file: str, values: Values) -> dict[str, float]:
    """Return the numbers among the values, under names with a group.

    Where values have a "mode", as episodes of training and of evaluation have, each mode has its
    own group: they are not one curve.
    """
    group = f"{values['mode']}_{TAGS[file]}" if "mode" in values else TAGS[file]
    return {
        name if "/" in name else f"{group}/{name}": float(value)
        for name, value in values.items()
        if isinstance(value, int | float)
    }
