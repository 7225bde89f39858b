"""How different two pictures look (LPIPS): distances between what a VGG16 network sees in them.

Its weights are not part of this package. They are read from two files, either safetensors or
what `torch.save` wrote: the network's own, named as in torchvision (`features.0.weight`, ...), and
the five linear layers of LPIPS (`lin0.model.1.weight`, ...).
"""

from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.weights import read_tensors
from curious_replay.errors import UsageError
from curious_replay.untrusted import UnreadableError

# Convolutions of VGG16 by stage: their numbers in torchvision, and the channels they end with.
STAGES = (
    ((0, 2), 64),
    ((5, 7), 128),
    ((10, 12, 14), 256),
    ((17, 19, 21), 512),
    ((24, 26, 28), 512),
)
SHIFT, SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)
TINY = 1e-20  # keeps the gradient finite where nothing is seen


class PerceptualLoss:
    """Weights that never change; no part of an agent's state, so no checkpoint has them."""

    def __init__(self, vgg: str, lpips: str, device: torch.device) -> None:
        wanted: dict[str, tuple[int, ...]] = {}
        inputs = 3
        for numbers, channels in STAGES:
            for number in numbers:
                wanted[f"features.{number}.weight"] = (channels, inputs, 3, 3)
                wanted[f"features.{number}.bias"] = (channels,)
                inputs = channels
        self._convs = _read("vgg", vgg, wanted, device)
        linear: dict[str, tuple[int, ...]] = {
            f"lin{stage}.model.1.weight": (1, channels, 1, 1)
            for stage, (_, channels) in enumerate(STAGES)
        }
        self._linear = [*_read("lpips", lpips, linear, device).values()]
        self._shift = torch.tensor(SHIFT, device=device).view(3, 1, 1)
        self._scale = torch.tensor(SCALE, device=device).view(3, 1, 1)

    def __call__(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the mean distance between pictures [N, H, W, 3] from -1 to 1."""
        x = torch.cat([left, right]).permute(0, 3, 1, 2)
        x = (x - self._shift) / self._scale
        total = x.new_zeros(())
        for stage, (numbers, _) in enumerate(STAGES):
            if stage:
                x = F.max_pool2d(x, 2)
            for number in numbers:
                weight, bias = (self._convs[f"features.{number}.{n}"] for n in ("weight", "bias"))
                x = F.relu(F.conv2d(x, weight, bias, padding=1))
            unit = x / (x.square().sum(1, keepdim=True) + TINY).sqrt()
            apart = (unit[: len(left)] - unit[len(left) :]).square()
            total = total + F.conv2d(apart, self._linear[stage]).mean()
        return total


def _read(
    setting: str, path: str, wanted: dict[str, tuple[int, ...]], device: torch.device
) -> dict[str, Tensor]:
    """Return the wanted tensors of a file; other ones in it are left aside."""
    if not Path(path).is_file():
        raise UsageError(f"{setting}: there is no file {path}")
    try:
        found = read_tensors(Path(path).resolve())  # which may lie in a cache made of links
    except UnreadableError as error:
        raise UsageError(f"{setting}: {error}") from error
    read = {}
    for name, shape in wanted.items():
        tensor = found.get(name)
        if tensor is None:
            raise UsageError(f"{setting}: {path} has no tensor {name}")
        if tensor.shape != shape:
            raise UsageError(
                f"{setting}: {name} in {path} must have the shape {list(shape)}, "
                f"got {list(tensor.shape)}"
            )
        if not (tensor.is_floating_point() and tensor.layout is torch.strided):
            raise UsageError(f"{setting}: {name} in {path} must be a plain array of floats")
        read[name] = tensor.to(device, torch.float32)
    return read
