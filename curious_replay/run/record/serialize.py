"""States of any kind as JSON and NumPy arrays: nothing that is read back can run code.

Strings, numbers, lists and dictionaries become JSON. Arrays are set aside under numbers and
referred to; so are the scalars of NumPy, which keep their dtype that way. Tuples, and dictionaries
whose keys are no strings, are marked, so that what comes back is what was given.
"""

import math
from typing import Any

import numpy as np

ARRAY, SCALAR, TUPLE, PAIRS, FLOAT = "$array", "$scalar", "$tuple", "$pairs", "$float"


def pack(value: Any, arrays: dict[str, np.ndarray], path: str = "state") -> Any:  # noqa: PLR0911
    """Return JSON of `value`; its arrays are added to `arrays`."""
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {FLOAT: str(value)}
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind not in "biufcSU":  # no other can be read back
            raise TypeError(f"{path} is {value.dtype}, which cannot be saved; numbers can be")
        name = str(len(arrays))
        arrays[name] = np.asarray(value)
        return {SCALAR if isinstance(value, np.generic) else ARRAY: name}
    if isinstance(value, list):
        return [pack(each, arrays, f"{path}[{i}]") for i, each in enumerate(value)]
    if isinstance(value, tuple):
        return {TUPLE: [pack(each, arrays, f"{path}[{i}]") for i, each in enumerate(value)]}
    if isinstance(value, dict):
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: pack(each, arrays, f"{path}.{key}") for key, each in value.items()}
        pairs = [[pack(k, arrays, path), pack(v, arrays, f"{path}.{k}")] for k, v in value.items()]
        return {PAIRS: pairs}
    raise TypeError(
        f"{path} is a {type(value).__name__}, which cannot be saved; numbers, strings, arrays, "
        "lists and dictionaries can be"
    )


def unpack(value: Any, arrays: dict[str, np.ndarray]) -> Any:  # noqa: PLR0911
    """Return what `pack` was given."""
    if isinstance(value, list):
        return [unpack(each, arrays) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, inner),) = value.items()
        match key:
            case "$array":
                return arrays[inner]
            case "$scalar":
                return arrays[inner][()]
            case "$tuple":
                return tuple(unpack(each, arrays) for each in inner)
            case "$pairs":
                return {unpack(k, arrays): unpack(v, arrays) for k, v in inner}
            case "$float":
                return float(inner)
    return {key: unpack(each, arrays) for key, each in value.items()}
