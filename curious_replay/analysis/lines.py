"""Files of JSON lines as columns."""

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curious_replay.run_folder import NOT_FINITE
from curious_replay.untrusted import parse_json, read_bytes

Array = npt.NDArray[Any]
NUMBERS = {
    "frame", "step", "update", "session", "steps_per_second", "return", "length", "ahead", "mse",
    "mse_object", "object_pixels",
}  # fmt: skip
"""Columns that are numbers, as are all that have a group ("loss/image"): text in them is none."""
LONGEST = 1000
"""Characters of a text that are kept: a column takes as much room as its longest text, each row."""


class Columns(Mapping[str, Array]):
    """Columns of equal length, by name.

    Whole numbers are int64, other numbers float64 with NaN where a line has none, text is str with
    "" where a line has none. A column that no line has is all NaN.
    """

    def __init__(self, columns: Mapping[str, Array], rows: int) -> None:
        self._columns = dict(columns)
        self.rows = rows

    def __getitem__(self, name: str) -> Array:
        found = self._columns.get(name)
        if found is None or (found.dtype.kind == "U" and ("/" in name or name in NUMBERS)):
            return np.full(self.rows, np.nan)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def where(self, mask: Array) -> "Columns":
        """Return the rows for which `mask` [rows] is true."""
        chosen = {name: column[mask] for name, column in self._columns.items()}
        return Columns(chosen, int(np.count_nonzero(mask)))

    def last(self, name: str) -> Any:
        """Return what the last row has under a name; NaN if that is nothing, or without rows."""
        return self[name][-1] if self.rows else math.nan


def read_columns(path: Path) -> Columns:
    """Read a file of JSON lines; a file that is not there is an empty table.

    A last line that a killed run could not finish is left out; any other line that cannot be read
    is left out with a warning.
    """
    if not path.exists():
        return Columns({}, 0)
    *whole, _ = read_bytes(path).split(b"\n")
    lines = list(_parsed(path, whole))
    names = dict.fromkeys(name for line in lines for name in line)
    columns = {name: _column([line.get(name) for line in lines]) for name in names}
    return Columns(columns, len(lines))


def read_last(path: Path) -> dict[str, Any]:
    """Read the last line of a file of JSON lines that can be read; empty if there is none."""
    *whole, _ = read_bytes(path).split(b"\n") if path.exists() else (b"",)
    for line in reversed(whole):
        with suppress(ValueError):
            content = parse_json(line, "it")
            if isinstance(content, dict):
                return content
    return {}


def _parsed(path: Path, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, start=1):
        try:
            content = parse_json(line, "it")
            if not isinstance(content, dict):
                raise ValueError("it is no object")
        except ValueError as error:
            message = f"{path}: line {number} cannot be read and is left out: {error}"
            warnings.warn(message, stacklevel=2)
            continue
        yield content


def _column(values: Sequence[Any]) -> Array:
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            return np.array(values, np.int64)
        except OverflowError:
            return np.array([_float(value) for value in values])
    if kinds == {str} and not NOT_FINITE.keys() & set(values):
        return np.array([value[:LONGEST] for value in values])
    if kinds <= {float, int, bool, type(None)}:
        return np.array([math.nan if value is None else _float(value) for value in values])
    numbers = [NOT_FINITE.get(v, v) if isinstance(v, str) else v for v in values]
    if all(isinstance(value, float | int | None) for value in numbers):
        return _column(numbers)
    texts = ("" if v is None else v if isinstance(v, str) else str(v) for v in values)
    return np.array([text[:LONGEST] for text in texts])


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf if value > 0 else -math.inf
