"""What an agent is told of its world; worlds are made with it too, in processes without PyTorch."""

from dataclasses import dataclass

IMAGE_SIZES = (16, 32, 64, 128)
"""Pixels per side that convolutions can halve down to 4."""


@dataclass(frozen=True)
class Spaces:
    """What is observed and done."""

    actions: int
    """Number of discrete actions, or of continuous dimensions."""
    discrete: bool
    image: tuple[int, int] | None = (64, 64)
    """Height and width in pixels; None if nothing is seen."""
    vector: int = 0
    """Numbers observed beside the image."""
