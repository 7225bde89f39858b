"""What a step consists of: named arrays of fixed dtype and shape, nested dicts made flat."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

FLAGS = ("is_first", "is_last", "is_terminal")


@dataclass(frozen=True)
class Field:
    """One array of a step: its path ("observation/image"), dtype and shape without leading axes."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @cached_property
    def nbytes(self) -> int:
        """Bytes of one step."""
        return self.dtype.itemsize * math.prod(self.shape)

    @cached_property
    def is_log(self) -> bool:
        """Whether the field is kept for analysis only (`log_*`) and left out of batches."""
        return any(part.startswith("log_") for part in self.name.split("/"))

    def __str__(self) -> str:
        return f"{self.dtype} of shape {list(self.shape)}"


class Layout:
    """The fields of every step in a buffer, fixed by the first one."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self.fields = fields
        self._names = frozenset(field.name for field in fields)
        self._wanted: dict[tuple[int, ...], list[tuple[str, np.dtype[Any], Any]]] = {}
        self.flags = (self.find("is_first"), self.find("is_last"))
        self.terminal = self.find("is_terminal")
        shown = [i for i, field in enumerate(fields) if not field.is_log]
        self.in_batches = [fields[i].name for i in shown], shown  # names and positions

    @classmethod
    def of(cls, arrays: Mapping[str, Array], leading: tuple[int, ...]) -> "Layout":
        """Read the layout from a flat step whose arrays all begin with the axes `leading`."""
        for flag in FLAGS:
            if flag not in arrays:
                raise ValueError(f"a step needs the field {flag!r}; it has {sorted(arrays)}")
        fields = []
        for name, array in arrays.items():
            if array.dtype.hasobject or array.dtype.kind in "USV":
                raise ValueError(
                    f"field {name!r}: cannot store {array.dtype}; numbers and booleans can be"
                )
            if array.shape[: len(leading)] != leading:
                raise ValueError(
                    f"field {name!r}: expected the leading axes {list(leading)} (num_envs), "
                    f"got shape {list(array.shape)}"
                )
            field = Field(name, array.dtype, array.shape[len(leading) :])
            if name in FLAGS and field.shape:
                raise ValueError(f"field {name!r}: expected one flag a step, got {field}")
            if name in FLAGS and array.dtype.kind not in "biu":
                raise ValueError(
                    f"field {name!r}: a flag is a boolean or 0 or 1, got {array.dtype}; "
                    "convert it with .astype(bool)"
                )
            fields.append(field)
        return cls(tuple(fields))

    def take(self, step: Mapping[str, Any], leading: tuple[int, ...]) -> list[Array]:
        """Return the arrays of a step in the order of the fields, after checking each of them."""
        arrays: list[Array] = []
        plain = np.ndarray
        for name, dtype, shape in self._wanted.get(leading) or self._expect(leading):
            array = step.get(name)
            if type(array) is not plain or array.dtype is not dtype or array.shape != shape:
                break
            arrays.append(array)
        else:
            if len(step) == len(arrays):
                return arrays  # the usual case: a flat dict of the right arrays
        flat = flatten(step)
        self._check(flat, leading)
        return [flat[field.name] for field in self.fields]

    def check_ends(self, arrays: list[Array]) -> None:
        """Refuse a step, as `take` returned it, that is_terminal says ends and is_last does not."""
        last, terminal = (arrays[i].astype(bool) for i in (self.flags[1], self.terminal))
        alone = terminal & ~last
        if alone.any():
            where = f" in environment {int(np.argmax(alone))}" if alone.ndim else ""
            raise ValueError(
                f"is_terminal without is_last{where}: a step at which the episode truly ends is "
                "also its last one; set both"
            )

    def _expect(self, leading: tuple[int, ...]) -> list[tuple[str, np.dtype[Any], Any]]:
        self._wanted[leading] = [(f.name, f.dtype, leading + f.shape) for f in self.fields]
        return self._wanted[leading]

    def _check(self, arrays: Mapping[str, Array], leading: tuple[int, ...]) -> None:
        """Raise an error that names the first field that is missing, unknown or of another kind."""
        for field in self.fields:
            array = arrays.get(field.name)
            if array is None:
                raise ValueError(
                    f"field {field.name!r} is missing: expected {field}; got {sorted(arrays)}"
                )
            if array.dtype != field.dtype or array.shape != leading + field.shape:
                came = Field(field.name, array.dtype, array.shape[len(leading) :])
                if array.shape[: len(leading)] != leading:
                    raise ValueError(
                        f"field {field.name!r}: expected the leading axes {list(leading)} "
                        f"(num_envs), got shape {list(array.shape)}"
                    )
                raise ValueError(f"field {field.name!r}: expected {field}, got {came}")
        if len(arrays) > len(self.fields):
            unknown = sorted(set(arrays) - self._names)
            raise ValueError(f"unknown fields {unknown}: the first step had {sorted(self._names)}")

    def find(self, name: str) -> int:
        """Return the position of the field `name`."""
        for position, field in enumerate(self.fields):
            if field.name == name:
                return position
        raise KeyError(f"no field {name!r}; there are {sorted(self._names)}")

    def to_json(self) -> list[dict[str, Any]]:
        """Return the layout as JSON values."""
        return [{"name": f.name, "dtype": f.dtype.str, "shape": list(f.shape)} for f in self.fields]

    @classmethod
    def from_json(cls, values: list[dict[str, Any]]) -> "Layout":
        """Make the layout again from what `to_json` gave."""
        return cls(tuple(Field(v["name"], np.dtype(v["dtype"]), tuple(v["shape"])) for v in values))


def flatten(step: Mapping[str, Any], prefix: str = "") -> dict[str, Array]:
    """Make {"a": {"b": x}} into {"a/b": array(x)}."""
    return dict(_leaves(step, prefix))


def _leaves(step: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Array]]:
    for name, value in step.items():
        if "/" in name:
            raise ValueError(f"field {prefix + name!r}: names must not contain '/', nest dicts")
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}/")
        else:
            yield prefix + name, as_array(value)


def as_array(values: Any) -> Array:
    """Return an array of an array, of numbers, or of a tensor: of any dtype and device, detached.

    What NumPy has no dtype for, such as bfloat16, becomes float32, which holds all its values.
    """
    if type(values) is np.ndarray:
        return values
    if not hasattr(values, "detach"):
        return np.asarray(values)
    try:
        return np.asarray(values.numpy(force=True))
    except TypeError:
        return np.asarray(values.float().numpy(force=True))


def nest(flat: Mapping[str, Array]) -> dict[str, Any]:
    """Make {"a/b": x} into {"a": {"b": x}}: the inverse of `flatten`."""
    nested: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, name = path.split("/")
        inner = nested
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[name] = value
    return nested


def map_leaves(function: Callable[[str, Any], Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Make {"a": {"b": x}} into {"a": {"b": function("a/b", x)}}."""

    def inner(fields: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        return {
            name: inner(value, f"{prefix}{name}/")
            if isinstance(value, Mapping)
            else function(prefix + name, value)
            for name, value in fields.items()
        }

    return inner(fields, "")
