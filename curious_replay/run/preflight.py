"""What a run will need, told before it begins; what cannot work is refused."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from curious_replay.agents.interface import Agent
from curious_replay.errors import UsageError
from curious_replay.machine import free_memory
from curious_replay.replay import Mixture
from curious_replay.run.settings.config import Config
from curious_replay.run.worlds.environments import EnvFacts

# Bytes a step beside its fields: priority and tree (17), visits (8), four signals (16), end (1).
BOOKKEEPING = 42
SECOND_RULE = 17  # more of them in a mixture
TRAINING_COPIES = 4  # parameters, gradients and two moments of Adam
SAVED_COPIES = 3  # the same without gradients
CHECKPOINTS = 3  # the last two are there while a third is written


class PreflightError(UsageError):
    """The run cannot work on this machine as it is set up."""


@dataclass(frozen=True)
class Needs:
    """Bytes that a run takes when its buffer is full."""

    steps: int
    step_bytes: int
    parameters: int
    replay_memory: int
    agent_memory: int
    replay_disk: int
    agent_disk: int

    @property
    def memory(self) -> int:
        """Of the main memory, without activations and libraries."""
        return self.replay_memory + self.agent_memory

    @property
    def disk(self) -> int:
        """Of the run folder's disk: checkpoints, and steps if they are kept there."""
        return self.replay_disk + self.agent_disk

    def lines(self) -> list[str]:
        """Return the lines that tell a person what is needed."""
        return [
            f"replay: {self.steps:,} steps of {size(self.step_bytes)}, {size(self.replay_memory)} "
            "of memory",
            f"agent: {self.parameters:,} parameters, {size(self.agent_memory)} of memory with its "
            "optimisers",
            f"disk: {size(self.disk)} with checkpoints",
        ]


def needs(config: Config, facts: EnvFacts, agent: Agent) -> Needs:
    """Return what the run will take at most."""
    parameters = sum(parameter.numel() for parameter in agent.parameters())
    steps = min(config.replay.capacity, config.train.steps * 2)  # ends of episodes are stored too
    mixed = isinstance(config.replay.rule(), Mixture)
    bookkeeping = (BOOKKEEPING + (SECOND_RULE if mixed else 0)) * config.replay.capacity
    fields = steps * facts.step_bytes
    in_memory = config.replay.storage == "memory"
    kept = len(config.record.keep_at)
    checkpoints = CHECKPOINTS + kept
    # A checkpoint that is kept may hold steps that replay has dropped since.
    saved = min(config.train.steps * 2, config.replay.capacity * (1 + kept)) * facts.step_bytes
    return Needs(
        steps=steps,
        step_bytes=facts.step_bytes,
        parameters=parameters,
        replay_memory=bookkeeping + (fields if in_memory else 0),
        agent_memory=4 * parameters * TRAINING_COPIES,
        replay_disk=saved + bookkeeping * checkpoints,
        agent_disk=4 * parameters * SAVED_COPIES * checkpoints,
    )


def check(needed: Needs, folder: Path, storage: str) -> None:
    """Refuse a run that would end for want of memory or disk, or that may not write at all."""
    existing = folder
    while not existing.exists():
        existing = existing.parent
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PreflightError(
            f"{existing} cannot be written to: choose another --logdir, or change its permissions"
        )
    free = free_memory()
    if free is not None and needed.memory > free:
        advice = "choose a smaller --replay.capacity"
        if storage == "memory" and needed.memory - needed.steps * needed.step_bytes <= free:
            advice += " or --replay.storage disk"
        raise PreflightError(
            f"this run needs {size(needed.memory)} of memory: {size(needed.replay_memory)} for "
            f"replay and {size(needed.agent_memory)} for the agent; {size(free)} are free: {advice}"
        )
    free_disk = shutil.disk_usage(existing).free
    missing = needed.disk - used_disk(folder)
    if missing > free_disk:
        raise PreflightError(
            f"this run needs {size(missing)} of disk in {folder} for replay and checkpoints; "
            f"{size(free_disk)} are free: choose a smaller --replay.capacity or another --logdir"
        )


def used_disk(folder: Path) -> int:
    """Return the bytes that a run folder takes already.

    Files that several checkpoints share count once.
    """
    seen: dict[tuple[int, int], int] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            facts = path.stat()
            seen[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
    return sum(seen.values())


def size(count: float) -> str:
    """Return bytes in words: 12.3 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
