"""c·β^v without computing it: visits are small whole numbers, so a table holds all the results.

A power costs more than the rest of a priority, and beyond some 2,000 visits, where β^v underflows,
several times as much.
"""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

_COUNTS = 4096
_TINY = float(np.finfo(np.float64).tiny)

Floats = npt.NDArray[np.float64]


@functools.lru_cache(maxsize=64)
def _table(scale: float, base: float) -> tuple[Floats, bool]:
    """Return the results for the first counts, and whether they have come to 0, where they stay."""
    results = scale * np.power(base, np.arange(_COUNTS, dtype=np.float64))
    results[results < _TINY] = 0.0  # what is smaller makes each sum with it slow
    return results, bool(results[-1] == 0.0)


def scaled_power(scale: float, base: float, counts: npt.NDArray[Any]) -> Floats:
    """Return `scale * base ** counts` [N], for whole `counts` [N] >= 0. Next to 0 it may be 0."""
    results, complete = _table(scale, base)
    try:
        found: Floats = results.take(counts, mode="clip" if complete else "raise")
        return found
    except IndexError:  # a count beyond the table
        return scale * np.power(base, counts.astype(np.float64))
