"""The graphics card of a run: what it is, what it has free, and what to do when that is too little.

Everything here is about the card that a run was given; on a CPU there is none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch

from curious_replay.errors import UsageError
from curious_replay.machine import nvidia_cards

SMALLER = (
    "a smaller --train.batch-size or --agent.size, imagination from fewer states (--agent.starts), "
    "or --train.precision bfloat16 take less"
)
RECORDED = "; with --train.no-graphs, nothing else has to fit beside a recorded update"


class CardMemoryError(UsageError):
    """The card has no memory left for this run."""


@dataclass(frozen=True)
class Card:
    """A graphics card as PyTorch sees it; sizes in bytes."""

    name: str
    memory: int
    capability: str
    """Generation of the card, as in "8.0"; bfloat16 units begin there."""
    cuda: str | None
    """Version of CUDA that PyTorch was built with."""


def find(device: torch.device) -> Card | None:
    """Return the card that a device is; None for a CPU."""
    if device.type != "cuda":
        return None
    facts = torch.cuda.get_device_properties(device)
    return Card(
        name=facts.name,
        memory=facts.total_memory,
        capability=f"{facts.major}.{facts.minor}",
        cuda=torch.version.cuda,
    )


def smaller(graphs: bool) -> str:
    """Return options that make an update fit, of a run with graphs or without."""
    return SMALLER + RECORDED if graphs else SMALLER


def remarks(device: torch.device) -> dict[str, Any]:
    """Return what a run remembers of where it computes: the device and, if it is one, the card.

    The driver, which all cards share, is None where NVIDIA's tool does not tell.
    """
    card = find(device)
    if card is None:
        return {"device": device.type, "card": None}
    driver = next((version for (version,) in nvidia_cards("driver_version")), None)
    return {"device": device.type, "card": {**asdict(card), "driver": driver}}


def free(device: torch.device) -> int | None:
    """Return the bytes that a card has free just now; None for a CPU."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None


def memory(device: torch.device) -> dict[str, float]:
    """Return what tensors take of the card, now and at most since the start, for `speed.jsonl`."""
    if device.type != "cuda":
        return {}
    return {
        "card_bytes": torch.cuda.memory_allocated(device),
        "card_peak_bytes": torch.cuda.max_memory_allocated(device),
    }


def shown(device: torch.device) -> dict[str, float]:
    """Return the most that was taken of the card and what it has, in GB, for a display."""
    card = find(device)
    if card is None:
        return {}
    peak = memory(device)["card_peak_bytes"]
    return {"card/peak_GB": peak / 1e9, "card/memory_GB": card.memory / 1e9}


@contextmanager
def advising(device: torch.device, graphs: bool) -> Iterator[None]:
    """Turn a lack of the card's memory into an error that says what would help."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        card = find(device)
        where = "" if card is None else f" of {card.name} ({card.memory / 1e9:.1f} GB)"
        raise CardMemoryError(
            f"the memory{where} is used up: {smaller(graphs)}. The run goes on from its last "
            f"checkpoint with --resume. PyTorch says: {error}"
        ) from error
