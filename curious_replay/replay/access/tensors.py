"""Arrays of a batch as tensors of torch, which is imported only when they are asked for."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from curious_replay.replay.fields import Array

if TYPE_CHECKING:
    import torch


def to_tensor(
    device: "str | torch.device | None", pin: bool
) -> "Callable[[str, Array], torch.Tensor]":
    """Return what makes a tensor on `device` of a named array; see `Batch.torch`."""
    import torch  # noqa: PLC0415

    def convert(name: str, array: Array) -> torch.Tensor:
        try:
            tensor = torch.as_tensor(array)  # the same memory
        except (TypeError, ValueError) as error:  # also of a foreign order of bytes
            raise TypeError(f"field {name!r}: torch has no tensors of {array.dtype}") from error
        if pin and not tensor.is_pinned():
            tensor = _page_locked(tensor.pin_memory)
        return tensor if device is None else tensor.to(device, non_blocking=tensor.is_pinned())

    return convert


def pinned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Make an array in page-locked memory, from which a graphics card can read by itself."""
    import torch  # noqa: PLC0415

    count = math.prod(shape) * dtype.itemsize
    block = _page_locked(lambda: torch.empty(count, dtype=torch.uint8, pin_memory=True))
    array: Array = block.numpy().view(dtype).reshape(shape)
    return array


def _page_locked(make: "Callable[[], torch.Tensor]") -> "torch.Tensor":
    try:
        return make()
    except RuntimeError as error:
        raise ValueError(
            "pin: memory can be page-locked only where torch finds a graphics card; "
            f"leave it out here ({error})"
        ) from error
