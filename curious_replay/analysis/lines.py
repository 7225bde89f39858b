"""Files of JSON lines as columns, read one column at a time.

A file of a thousand lines has some forty thousand names and numbers, and an analysis asks for five
columns of it: parsing the rest takes most of the time. As the record writes them, lines are flat
and begin alike, so a column can be cut out of the text. Files of any other kind, and damaged ones,
are parsed line by line.
"""

import json
import math
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curious_replay.run_folder import NOT_FINITE
from curious_replay.untrusted import parse_json, read_bytes

Array = npt.NDArray[Any]
FIRST = b'{"frame": '
"""How every line of a record begins."""
NAME = re.compile(rb'"([^"]*)": ')
QUOTE = ord('"')
NEAR = 40
"""Bytes by which a value may have moved from one line to the next to be found at once."""
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

    @classmethod
    def of(cls, lines: Sequence[Mapping[str, Any]]) -> "Columns":
        """Return columns from lines, each a dictionary."""
        return _LineColumns(lines)

    def __getitem__(self, name: str) -> Array:
        found = self._find(name)
        if found is None or (found.dtype.kind == "U" and ("/" in name or name in NUMBERS)):
            return np.full(self.rows, np.nan)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def where(self, mask: Array) -> "Columns":
        """Return the rows for which `mask` [rows] is true."""
        return _Selected(self, mask)

    def last(self, name: str) -> Any:
        """Return what the last row has under a name; NaN if that is nothing, or without rows."""
        return self[name][-1] if self.rows else math.nan

    def _find(self, name: str) -> Array | None:
        return self._columns.get(name)

    def _names(self) -> Collection[str]:
        return self._columns


class _LineColumns(Columns):
    """Lines of any kind; a column is made when it is asked for, as each line may have its own."""

    def __init__(self, lines: Sequence[Mapping[str, Any]]) -> None:
        super().__init__({}, len(lines))
        self._lines = lines
        self._all = dict.fromkeys(name for line in lines for name in line)

    def _find(self, name: str) -> Array | None:
        if name not in self._columns and name in self._all:
            self._columns[name] = _column([line.get(name) for line in self._lines])
        return self._columns.get(name)

    def _names(self) -> Collection[str]:
        return self._all


class _Selected(Columns):
    """Some rows of a table; a column is selected when it is asked for."""

    def __init__(self, whole: Columns, mask: Array) -> None:
        super().__init__({}, int(np.count_nonzero(mask)))
        self._whole, self._mask = whole, mask

    def _find(self, name: str) -> Array | None:
        return self._whole[name][self._mask] if name in self._whole else None

    def _names(self) -> Collection[str]:
        return list(self._whole)


class _FileColumns(Columns):
    """A file whose lines are flat and begin alike.

    Text takes several times the room of its numbers, so of all tables only the one used last keeps
    its lines; others read their file again. A run that is not finished writes on: only what was
    there at first is read.
    """

    _last: "tuple[_FileColumns, list[bytes]] | None" = None

    def __init__(self, path: Path, size: int, lines: list[bytes]) -> None:
        super().__init__({}, len(lines))
        self._path, self._size = path, size
        self._absent: set[str] = set()
        self._end = lines[-1]
        _FileColumns._last = self, lines

    def last(self, name: str) -> Any:
        """Return what the last row has under a name, without looking at the others."""
        try:
            found = parse_json(self._end, "").get(name, math.nan)
        except ValueError:
            return math.nan
        return NOT_FINITE.get(found, found)

    def _find(self, name: str) -> Array | None:
        if name not in self._columns and name not in self._absent:
            found = self._cut_out(name, self._read())
            if found is None:
                self._absent.add(name)
            else:
                self._columns[name] = found
        return self._columns.get(name)

    def _names(self) -> Collection[str]:
        found = dict.fromkeys(NAME.findall(b"\n".join(self._read())))
        return [name.decode() for name in found]

    def _read(self) -> list[bytes]:
        last = _FileColumns._last
        if last is not None and last[0] is self:
            return last[1]
        with self._path.open("rb") as file:
            lines = file.read(self._size).split(b"\n")[: self.rows]
        _FileColumns._last = self, lines
        return lines

    def _cut_out(self, name: str, lines: list[bytes]) -> Array | None:
        rows, values = _values(name, lines)
        if not values:
            return None
        kinds = (np.int64, np.float64) if len(values) == self.rows else (np.float64,)
        for kind in kinds if max(map(len, values)) < LONGEST else ():
            try:
                found = np.array(values).astype(kind)
            except (ValueError, OverflowError):
                continue
            if len(found) == self.rows:
                return found
            column = np.full(self.rows, np.nan)
            column[rows] = found
            return column
        parsed: list[Any] = [None] * self.rows
        for row, value in zip(rows, values, strict=True):
            try:
                # Nothing is escaped in a plain file: text is what stands between its quotes.
                is_text = value[:1] == b'"'
                parsed[row] = value[1:-1].decode() if is_text else parse_json(value, "")
            except ValueError:
                message = f"{self._path}: line {row + 1}: {name} cannot be read: {value[:40]!r}"
                warnings.warn(message, stacklevel=4)
        return _column(parsed)


def read_columns(path: Path) -> Columns:
    """Read a file of JSON lines; a file that is not there is an empty table.

    A last line that a killed run could not finish is left out; any other line that cannot be read
    is left out with a warning.
    """
    if not path.exists():
        return Columns({}, 0)
    text = read_bytes(path)
    if not text.endswith(b"\n"):
        text = text[: text.rfind(b"\n") + 1]
    lines = text.split(b"\n")[:-1]
    if lines and _is_plain(text, lines):
        return _FileColumns(path, len(text), lines)
    return Columns.of(list(_one_by_one(path, lines)))


def _is_plain(text: bytes, lines: list[bytes]) -> bool:
    """Return whether lines are flat, begin alike and end as they should.

    Then columns can be cut out.
    """
    return (
        text.count(b"{") == text.count(b"}") == len(lines)
        and b"\\" not in text
        and b"[" not in text
        and text.isascii()
        and all(line.startswith(FIRST) and line.endswith(b"}") for line in lines)
    )


def _values(name: str, lines: list[bytes]) -> tuple[Sequence[int], list[bytes]]:
    """Return rows that have a value under a name, and these values as they are written."""
    key = b"%s: " % json.dumps(name).encode()
    width, near = len(key), 0
    values: list[bytes] = []
    without: set[int] = set()
    for row, line in enumerate(lines):  # the inner loop of loading: as little as possible
        at = line.find(key, near)  # about where it was in the line before
        if at < 0 < near:
            at = line.find(key)
        if at < 0:
            without.add(row)
            continue
        start = at + width
        stop = line.find(b",", start)  # if there is none it is the last: all but the brace
        if line[start] == QUOTE:
            stop = line.find(b'"', start + 1) + 1
        values.append(line[start:stop])
        near = at - NEAR if at > NEAR else 0
    rows = range(len(lines))
    return [row for row in rows if row not in without] if without else rows, values


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


def _one_by_one(path: Path, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
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
