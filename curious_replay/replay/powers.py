"""c·β^v without computing it: visits are small whole numbers, so a table holds all the results.

A power costs more than the rest of a priority, and beyond some 2,000 visits, where β^v underflows,
several times as much.
"""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

_COUNTS = 4096

Floats = npt.NDArray[np.float64]


@functools.lru_cache(maxsize=64)
def _table(scale: float, base: float) -> Floats:
    return scale * np.power(base, np.arange(_COUNTS, dtype=np.float64))


def scaled_power(scale: float, base: float, counts: npt.NDArray[Any]) -> Floats:
    """`scale * base ** counts`, for whole `counts` from 0 on."""
    try:
        found: Floats = _table(scale, base).take(counts)  # in half the time of [counts]
        return found
    except IndexError:  # a count beyond the table
        return scale * np.power(base, counts.astype(np.float64))
