"""Tensors from files that nobody vouches for."""

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from curious_replay.untrusted import UnreadableError, open_file


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file: safetensors, or what `torch.save` wrote (any other suffix).

    Neither runs code: of the latter, nothing but tensors and plain values is taken.
    """
    open_file(path).close()  # refuses what is no file
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # both name no list of what they raise
        raise UnreadableError(
            f"{path} is neither safetensors nor weights that torch.save wrote: {error}"
        ) from error
    if not isinstance(found, dict):
        raise UnreadableError(
            f"{path} must hold tensors by name, it holds a {type(found).__name__}"
        )
    return {name: each for name, each in found.items() if isinstance(each, Tensor)}
