"""Videos as files: H.264 that plays everywhere, or GIF where there is no ffmpeg."""

import math
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np

from curious_replay.durable import replacing
from curious_replay.envs.drawing.video import write_gif

Array = np.ndarray


class EncodeError(RuntimeError):
    """ffmpeg is not here, or could not write the video."""


def write_video(pictures: Iterable[Array], path: Path, fps: float) -> Path:
    """Write `path`.mp4, or `path`.gif where there is no encoder; returns the file.

    Pictures are uint8 [height, width, 3] and are taken one at a time, so that a long video need not
    fit into memory. The file appears whole or not at all.
    """
    if not (fps > 0 and math.isfinite(fps)):
        raise ValueError(f"a video needs a positive number of pictures per second, got {fps}")
    pictures = _checked(pictures)
    if why_no_mp4() is None:
        target = path.with_name(f"{path.name}.mp4")
        with replacing(target) as temporary:
            _write_mp4(pictures, temporary, fps)
    else:
        target = path.with_name(f"{path.name}.gif")
        with replacing(target) as temporary:
            write_gif(np.stack(list(pictures)), temporary, zoom=1, pictures_per_second=fps)
    return target


@cache
def why_no_mp4() -> str | None:
    """Return why videos cannot be written as MP4 here; None if they can, which is tried once."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            _write_mp4(iter([np.zeros((16, 16, 3), np.uint8)]), Path(folder) / "try.mp4", 1)
        except EncodeError as error:
            return str(error)
    return None


def _write_mp4(pictures: Iterator[Array], path: Path, fps: float) -> None:
    first = next(pictures)
    height, width, _ = first.shape
    command = [
        _ffmpeg(), "-y", "-loglevel", "error",
        "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps:g}",
        "-i", "-", "-an",
        # 4:2:0 is all that browsers play, and it needs even sides.
        "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p",
        "-c:v", "libx264", "-preset", "veryfast", "-crf", "18", "-movflags", "+faststart",
        str(path),
    ]  # fmt: skip
    with tempfile.TemporaryFile() as complaints:
        process = _start(command, complaints)
        try:
            _feed(process, chain([first], pictures))
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()
        if process.returncode:
            complaints.seek(0)
            said = complaints.read().decode(errors="replace").strip()
            raise EncodeError(f"ffmpeg stopped with code {process.returncode}: {said[-500:]}")


def _start(command: list[str], complaints: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        with _deaf_to_stops():
            return subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=complaints
            )
    except OSError as error:
        raise EncodeError(f"ffmpeg cannot be started: {error}") from error


@contextmanager
def _deaf_to_stops() -> Iterator[None]:
    """Let processes that begin here not hear Ctrl-C, nor the signals of schedulers.

    Terminals and schedulers send them to all processes of a run. They are for the run itself, which
    will want to finish this video.
    """
    stops = {signal.SIGINT, signal.SIGTERM, signal.SIGUSR2}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _feed(process: subprocess.Popen[bytes], pictures: Iterator[Array]) -> None:
    """Send all pictures, or as many as ffmpeg takes: if it gives up, its complaints say why."""
    assert process.stdin is not None
    try:
        for picture in pictures:
            process.stdin.write(np.ascontiguousarray(picture).data)
    except BrokenPipeError:
        pass
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()


def _checked(pictures: Iterable[Array]) -> Iterator[Array]:
    """Refuse pictures that are no pictures, or not all of one size."""
    shape = None
    for picture in pictures:
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
            found = f"{picture.dtype} {list(picture.shape)}"
            raise ValueError(f"a video is made of uint8 [height, width, 3], got {found}")
        if shape not in (None, picture.shape):
            raise ValueError(f"the pictures of a video have one size, got {shape}, {picture.shape}")
        shape = picture.shape
        yield picture
    if shape is None:
        raise ValueError("a video needs at least one picture")


def _ffmpeg() -> str:
    try:
        import imageio_ffmpeg  # type: ignore[import-untyped]  # noqa: PLC0415  # may be missing

        with _deaf_to_stops():  # it is tried there
            return str(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError) as error:
        raise EncodeError("no ffmpeg was found (pip install imageio-ffmpeg)") from error
