"""The processes of one run, as torchrun starts them: one leads, the others learn with it.

The leader, rank 0, has everything of the run: worlds, replay, folder, and a batch for each update.
It hands every process the same number of windows, and all of them make the update together
(`agents/together.py`). The others have an agent and nothing else, and do as they are told.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from torch import distributed

from curious_replay import launch
from curious_replay.agents.interface import Agent, Arrays, Feedback, NonFiniteError
from curious_replay.agents.spaces import Spaces
from curious_replay.agents.together import Several, learning
from curious_replay.errors import UsageError
from curious_replay.run.settings.config import Config

# Between two updates there may be a long evaluation. Who dies is noticed at once all the same.
PATIENCE = timedelta(days=30)


class CrewError(RuntimeError):
    """Another process of the run is gone."""


class Crew:
    """A process that is alone."""

    size = 1

    def check(self, agent: Agent, config: Config) -> None:
        """Refuse a batch that cannot be shared evenly."""

    def begin(self, agent: Agent, config: Config) -> None:
        """Let all processes have this agent."""

    def send(self, agent: Agent, batch: Arrays) -> Arrays:
        """Begin to copy a batch to the device, ahead of its update; see `Agent.send`."""
        return agent.send(batch)

    def update(self, agent: Agent, batch: Arrays, unread: Collection[str]) -> Feedback:
        """Make one update of the agent from the batch, in all processes; see `Agent.update`."""
        return agent.update(batch, unread)


@dataclass(frozen=True)
class Begin:
    """The leader says: make this agent; its tensors follow, each with this shape and type."""

    config: dict[str, Any]
    spaces: Spaces
    tensors: dict[str, tuple[torch.Size, torch.dtype]]


@dataclass(frozen=True)
class Update:
    """The leader says: learn; your windows follow, each field with this shape and type."""

    fields: dict[str, tuple[tuple[int, ...], np.dtype[Any]]]
    unread: Collection[str]


@dataclass(frozen=True)
class End:
    """The leader says: that is all."""


class Leader(Crew):
    """The process that has the run, of several."""

    def __init__(self) -> None:
        self.size = distributed.get_world_size()
        self.in_step = True
        """Whether the others wait for what is told next."""

    def check(self, agent: Agent, config: Config) -> None:
        """See `Crew.check`."""
        windows, length = config.train.batch_size, config.train.batch_length
        shared = {"--train.batch-size": windows}
        shared |= {f"--agent.{name}": each.windows for name, each in agent.streams.items()}
        for option, number in shared.items():
            if number % self.size:
                raise UsageError(
                    f"{option} must be a multiple of {self.size}, the number of processes, got "
                    f"{number}: {number - number % self.size or self.size} would be one"
                )
        if config.train.graphs:
            raise UsageError(
                f"--train.graphs is for one process, and here are {self.size}: leave it out, or "
                "start one run per card"
            )
        agent.check_sharing(self.size, windows, length)
        here, cards = launch.processes_here(), torch.cuda.device_count()
        if agent.device.type == "cuda" and cards < here:
            raise UsageError(
                f"--nproc-per-node {here}: there are {cards} graphics cards here, and each process "
                f"needs one: start {cards}, or use --train.device cpu"
            )

    def begin(self, agent: Agent, config: Config) -> None:
        """See `Crew.begin`."""
        tensors = {name: each.detach().cpu() for name, each in agent.tensors().items()}
        facts = {name: (each.shape, each.dtype) for name, each in tensors.items()}
        with self._told(Begin(config.to_json(), agent.spaces, facts)):
            for each in tensors.values():
                distributed.broadcast(each.contiguous(), 0)

    def send(self, agent: Agent, batch: Arrays) -> Arrays:
        """Leave the batch with the host, from where windows are handed out."""
        return batch

    def update(self, agent: Agent, batch: Arrays, unread: Collection[str]) -> Feedback:
        """See `Crew.update`."""
        facts = {name: (array.shape, array.dtype) for name, array in batch.items()}
        with self._told(Update(facts, [*unread])):
            parts = {name: _scatter(*facts[name], array) for name, array in batch.items()}
            return _learn(agent, parts, unread)

    def end(self) -> None:
        """Let the others go, unless they have gone already."""
        if self.in_step:
            with suppress(CrewError), self._told(End()):
                pass

    @contextmanager
    def _told(self, order: Begin | Update | End) -> Iterator[None]:
        """Tell the others, and do one's own part in here."""
        self.in_step = False
        try:
            distributed.broadcast_object_list([order], 0, device=torch.device("cpu"))
            yield
        except NonFiniteError:  # all know of it
            self.in_step = True
            raise
        except RuntimeError as error:
            if isinstance(error, distributed.DistError) or "gloo" in str(error):
                raise CrewError(
                    f"another process of this run has ended; what it said is above ({error})"
                ) from error
            raise
        self.in_step = True


def orders() -> Iterator[Begin | Update]:
    """Yield what the leader says, to one of the others."""
    while True:
        told: list[Any] = [None]
        distributed.broadcast_object_list(told, 0, device=torch.device("cpu"))
        if isinstance(told[0], End):
            return
        yield told[0]


def take_over(agent: Agent, order: Begin) -> None:
    """Become the leader's agent, whose tensors follow."""
    tensors = {
        name: torch.empty(*facts[:1], dtype=facts[1]) for name, facts in order.tensors.items()
    }
    for each in tensors.values():
        distributed.broadcast(each, 0)
    agent.load_tensors(tensors)


def join_in(agent: Agent, order: Update) -> None:
    """Learn from one's own windows, which follow."""
    parts = {name: _scatter(*facts) for name, facts in order.fields.items()}
    with suppress(NonFiniteError):  # of which the leader makes what is to be made
        _learn(agent, parts, order.unread)


def _learn(agent: Agent, parts: Arrays, unread: Collection[str]) -> Feedback:
    with learning(Several(len(parts["is_first"]))):
        return agent.update(parts, unread)


def _scatter(
    shape: tuple[int, ...], dtype: np.dtype[Any], array: np.ndarray | None = None
) -> np.ndarray:
    """Return this process's windows of `array`, which the leader has."""
    size = distributed.get_world_size()
    own = np.empty((shape[0] // size, *shape[1:]), dtype)
    parts = None
    if array is not None:
        whole = np.ascontiguousarray(array)
        parts = [torch.from_numpy(each.view(np.uint8)) for each in np.split(whole, size)]
    distributed.scatter(torch.from_numpy(own.view(np.uint8)), parts, 0)
    return own


@contextmanager
def connected() -> Iterator[None]:
    """Meet the other processes; each has the graphics card of its number, where there are any."""
    cards = torch.cuda.is_available()
    if cards and launch.number_here() < torch.cuda.device_count():
        torch.cuda.set_device(launch.number_here())
    backend = "cpu:gloo,cuda:nccl" if cards else "gloo"
    distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        yield
    finally:
        distributed.destroy_process_group()


@contextmanager
def gathered() -> Iterator[Crew]:
    """Yield the processes of this run: those that torchrun started, or this one alone."""
    if launch.processes() == 1:
        yield Crew()
        return
    with connected():
        leader = Leader()
        try:
            yield leader
        finally:
            leader.end()
