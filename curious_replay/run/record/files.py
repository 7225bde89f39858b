"""Files of JSON that a kill leaves whole: replaced in one step, or grown by whole lines.

JSON has no word for numbers that are not finite. They are written as the strings "NaN", "Infinity"
and "-Infinity", which every strict parser accepts and `float` understands, and are numbers again
when read back with `read_json` or `read_lines`.
"""

import contextlib
import json
import math
import os
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from curious_replay import untrusted
from curious_replay.durable import write_bytes
from curious_replay.run_folder import NOT_FINITE


def write_json(path: Path, content: Any) -> None:
    """Write or replace a JSON file in one step, indented for people to read."""
    write_bytes(path, (to_json(content, indent=2) + "\n").encode())


def read_json(path: Path) -> Any:
    """Return what `write_json` wrote."""
    return _with_numbers(untrusted.read_json(path))


def append_line(file: FileIO, content: Mapping[str, Any]) -> None:
    """Hand one JSON line to the operating system: after that, it outlives this process.

    `file` is unbuffered and opened for appending. A line that finds no room is taken back, so that
    no later one is glued to its first half.
    """
    line = to_json(content).encode() + b"\n"
    start = file.seek(0, os.SEEK_END)
    try:
        written = 0
        while written < len(line):
            written += file.write(line[written:])
    except BaseException:
        with contextlib.suppress(OSError):
            file.truncate(start)
        raise


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines; a last line that a killed run could not finish is left out."""
    whole, _, _ = untrusted.read_bytes(path).rpartition(b"\n")
    lines = []
    for number, line in enumerate(whole.split(b"\n") if whole else (), start=1):
        name = f"{path}, line {number}"
        content = _with_numbers(untrusted.parse_json(line, name))
        untrusted.check(content, dict, name)
        lines.append(content)
    return lines


def whole_lines(path: Path) -> int:
    """Return how many bytes of a file are whole lines; 0 if there is no file."""
    return untrusted.read_bytes(path).rfind(b"\n") + 1 if path.exists() else 0


def cut(path: Path, size: int) -> None:
    """Take back all but the first `size` bytes of a file, on disk as well."""
    if path.exists() and path.stat().st_size != size:
        with path.open("rb+") as file:
            file.truncate(size)
            os.fsync(file.fileno())


def to_json(content: Any, indent: int | None = None) -> str:
    """Return strict JSON; NumPy numbers and paths are taken as well."""
    try:
        return json.dumps(content, indent=indent, default=_plain, allow_nan=False)
    except ValueError:  # rare enough to be worth a second pass
        content = _with_strings(content)
        return json.dumps(content, indent=indent, default=_plain, allow_nan=False)


def _plain(value: Any) -> Any:
    """Turn what JSON does not know into what it does."""
    if isinstance(value, np.floating) and not math.isfinite(value):
        return _with_strings(float(value))
    if isinstance(value, np.float32 | np.float16):
        return float(str(value))  # 0.1 rather than 0.10000000149011612
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot be written as JSON")


def _with_strings(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: _with_strings(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_with_strings(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return json.dumps(content)  # one of NOT_FINITE
    return content


def _with_numbers(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _with_numbers(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_with_numbers(value) for value in content]
    return NOT_FINITE.get(content, content) if isinstance(content, str) else content
