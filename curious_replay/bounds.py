"""Bounds of settings, which stand in the type of the field that they are of.

discount: Share = 0.99
members: Annotated[int, Within(2, 1000)] = 10
"""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True)
class Within:
    """Least and most value of a number; if `most` is None, it has no upper bound."""

    least: float
    most: float | None = None


Share = Annotated[float, Within(0.0, 1.0)]
Positive = Annotated[float, Within(1e-30, 1e30)]
NotNegative = Annotated[float, Within(0.0, 1e30)]
