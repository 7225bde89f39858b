"""The graphics card of a run: what it is, what it has free, and what to do when that is too little.

Everything here is about the card that a run was given; on a CPU there is none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from curious_replay.agents.precision import DTYPES
from curious_replay.errors import UsageError
from curious_replay.machine import nvidia_cards
from curious_replay.run import precision
from curious_replay.run.settings.config import Config
from curious_replay.run.settings.config_io import knows, option
from curious_replay.run_folder import CONFIG

# Settings that make updates smaller, where an agent has them.
SMALLER = ("size", "dreamer.size", "starts", "dreamer.starts", "pictures")


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


def named(device: torch.device) -> str:
    """Return the device in words: "cpu", or "cuda, NVIDIA A100"."""
    card = find(device)
    return device.type if card is None else f"{device.type}, {card.name}"


def smaller(config: Config, device: torch.device, *, resumed: bool) -> str:
    """Return options that make an update of these settings smaller.

    A run that is `resumed` may have another precision and no graphs; the rest is for a new run.
    """
    now = []
    if precision.pick(config.train.precision, device) not in DTYPES:
        small = precision.pick("auto", device)
        now.append(f"--train.precision {small if small in DTYPES else 'float16'}")
    if config.train.graphs:
        now.append("--train.no-graphs (nothing else has to fit beside a recorded update then)")
    own = [f"agent.{name}" for name in SMALLER if knows(type(config.agent), name)]
    new = [f"a smaller {option(each)}" for each in ("train.batch_size", *own)]
    if not resumed:
        return f"less is taken with {', '.join([*new, *now])}"
    for_new = f"a new run can have {', '.join(new)}"
    return f"less is taken with {', '.join(now)}; {for_new}" if now else for_new


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
def advising(config: Config, device: torch.device, folder: Path) -> Iterator[None]:
    """Turn a lack of the card's memory into an error that says what would help.

    It depends on whether there is a run in the folder by then.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        card = find(device)
        where = "" if card is None else f" of {card.name} ({card.memory / 1e9:.1f} GB)"
        begun = (folder / CONFIG).exists()
        way_on = "The run goes on with --resume" if begun else "Nothing was begun"
        raise CardMemoryError(
            f"the memory{where} is used up: {smaller(config, device, resumed=begun)}. {way_on}; "
            f"--train.device cpu needs no card. PyTorch says: {error}"
        ) from error
