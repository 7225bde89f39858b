"""How precisely a run computes: what was asked for, and what its device has."""

import torch

from curious_replay.agents.interface import Agent
from curious_replay.agents.precision import Precision
from curious_replay.errors import UsageError
from curious_replay.run.settings.config import Precision as Asked

TF32_SINCE = 8  # generation of NVIDIA's cards, that of the A100


def pick(asked: Asked, device: torch.device) -> Precision:
    """Return the precision to use on a device, "auto" resolved.

    TF32 only allows a card to round what it multiplies: where there is no such unit it is float32.
    """
    card = device.type == "cuda"
    rounds = card and torch.cuda.is_bf16_supported(including_emulation=False)
    if asked == "auto":
        asked = "bfloat16" if rounds else "tf32"
    if asked == "tf32" and not (card and torch.cuda.get_device_capability(device)[0] >= TF32_SINCE):
        return "float32"
    if asked == "bfloat16" and card and not rounds:
        raise UsageError(
            f"--train.precision bfloat16: {torch.cuda.get_device_name(device)} has no units for "
            "it; use float16 or float32"
        )
    return asked


def apply(agent: Agent, asked: Asked) -> None:
    """Let an agent compute as precisely as asked for."""
    agent.compute_in(pick(asked, agent.device))
    if agent.device.type == "cuda":
        # For all of the process; by default, convolutions would be rounded and products not.
        torch.backends.cuda.matmul.allow_tf32 = agent.precision == "tf32"
        torch.backends.cudnn.allow_tf32 = agent.precision == "tf32"
