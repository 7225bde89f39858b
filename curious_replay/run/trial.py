"""A short measurement of updates, to be sent to others: is a machine as fast as expected?"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from curious_replay.agents.spaces import Spaces
from curious_replay.errors import UsageError
from curious_replay.run import card, precision
from curious_replay.run.estimate import seconds_per_update
from curious_replay.run.record.files import write_json
from curious_replay.run.saved_run import pick_device
from curious_replay.run.settings.config import Choice
from curious_replay.run.settings.presets import preset
from curious_replay.run.training import prepare_torch

SIDE = 4096  # of matrices that are multiplied on a card
SMALL_SIDE = 512  # and on a CPU


def write_report(path: Path, findings: Sequence[dict[str, Any]]) -> None:
    """Write one file: what was found of the machine, and what updates take on it."""
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--report {path}: the folder {path.absolute().parent} does not exist")
    write_json(path, {"findings": [*findings], **measure()})


def measure() -> dict[str, Any]:
    """Return the device, seconds of an update at two scales, and TFLOP/s of a matrix product.

    Updates are computed as those of a run, in the precision that is told. Where there is a card,
    the bytes that were taken of it are told too.
    """
    device = torch.device(pick_device("auto"))
    updates = {}
    for scale in ("debug", "mini"):
        config = preset(Choice(env="crafter", agent="dreamerv3", replay="curious", scale=scale))
        pixels = config.env.image_size
        prepare_torch(config)
        spaces = Spaces(17, discrete=True, image=(pixels, pixels))
        updates[f"dreamerv3 {scale}"] = seconds_per_update(config, spaces, time.perf_counter)
    return {
        **card.remarks(device),
        "torch": torch.__version__,
        "precision": precision.pick("auto", device),
        "seconds_per_update": updates,
        "tflops": {str(each): _tflops(device, each) for each in (torch.float32, torch.bfloat16)},
        **card.memory(device),
    }


def _tflops(device: torch.device, dtype: torch.dtype, repeats: int = 5) -> float:
    side = SMALL_SIDE if device.type == "cpu" else SIDE
    x = torch.ones(side, side, dtype=dtype, device=device)
    (x @ x).sum().item()
    begun = time.perf_counter()
    for _ in range(repeats):
        y = x @ x
    y.sum().item()  # which waits for a card to be done
    return repeats * 2 * side**3 / (time.perf_counter() - begun) / 1e12
