"""What every agent offers to whoever runs it, and what it must be told.

A step holds what was observed and the action that was chosen *after* seeing it:

    image        uint8 [H, W, 3]     and / or
    vector       float32 [V]         everything observed that is no image
    action       float32 [A]         one-hot, or in [-1, 1]; zeros on the last step of an episode
    reward       float32             received on arriving here; 0 on the first step
    is_first, is_last, is_terminal   bool; a time limit is `is_last` without `is_terminal`

Agents see batches of such steps, [B, T, ...] each. An agent whose parts learn from windows of their
own asks for these as `streams`; their steps are in the batch too, as "stream/image" and so on.
"""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.precision import LossScale, Precision, autocast
from curious_replay.agents.spaces import Spaces
from curious_replay.errors import UsageError

Arrays = Mapping[str, np.ndarray]
CPU_STATE, CARD_STATE = torch.Generator().get_state().numel(), 16  # bytes of a generator's state
PolicyState = dict[str, Tensor]
"""What a policy remembers from step to step: tensors with a leading axis of environments."""


@dataclass(frozen=True)
class Stream:
    """Windows of steps that an update needs beside its batch."""

    windows: int
    length: int


@dataclass(frozen=True)
class Feedback:
    """What an update has to say: per step to replay, and in sum to a log."""

    signals: dict[str, np.ndarray]
    """float32 [B, T] each; NaN where a signal is not defined, as "td" on the first step of a
    window. Empty if nothing that is predicted was learned from the batch: it then counts as no
    visit either."""
    metrics: dict[str, float]


class NonFiniteError(ArithmeticError):
    """A loss or gradient is infinite or not a number; the parameters it concerns are unchanged."""

    def __init__(self, term: str) -> None:
        super().__init__(f"{term} is not finite")
        self.term = term


class Agent(nn.Module, ABC):
    """A world model and what acts in it.

    All of its state is in its parameters and buffers, its `optimisers` and its random `generator`;
    `tensors` and `load_tensors` move all three.
    """

    def __init__(self, spaces: Spaces, seed: int, device: str) -> None:
        super().__init__()
        self.spaces = spaces
        self.device = torch.device(device)
        self.optimisers: dict[str, Optimiser] = {}
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.precision: Precision = "float32"

    def compute_in(self, precision: Precision) -> None:
        """Let networks compute so precisely from now on; float16 gives optimisers a loss scale."""
        self.precision = precision
        for optimiser in self.optimisers.values():
            optimiser.loss_scale = LossScale(self.device) if precision == "float16" else None

    def autocast(self) -> AbstractContextManager[None]:
        """Return a context in which networks compute as `precision` says."""
        return autocast(self.device, self.precision)

    @property
    def streams(self) -> Mapping[str, Stream]:
        """What an update needs beside its batch, by name."""
        return {}

    @property
    def remarks(self) -> Mapping[str, str]:
        """What the record of a run should say about this agent, beside its settings."""
        return {}

    def check_sharing(self, processes: int, windows: int, length: int) -> None:
        """Refuse a batch [windows, length] that so many `processes` share, if that cannot be.

        An agent can share it if its optimisers are `Optimiser`, and whatever else looks at all
        windows asks `together`: losses over a count, statistics, random numbers.
        """
        raise UsageError(
            f"{type(self).__name__} cannot learn in {processes} processes from parts of a batch: "
            "it does not say that it can (`check_sharing`). Start one process, or one run per card"
        )

    def use_graphs(self, unread: Collection[str]) -> None:
        """Tell the device updates without `unread` signals once, and let it repeat them.

        Refuses that where it cannot be.
        """
        raise UsageError(
            f"--train.graphs: {type(self).__name__} does not say that its updates can be recorded "
            "(`use_graphs`): leave it out"
        )

    @abstractmethod
    def start(self, num_envs: int) -> PolicyState:
        """Return the memory of a policy that has seen nothing."""

    @abstractmethod
    def act(
        self, state: PolicyState, observation: Arrays, generator: torch.Generator, explore: bool
    ) -> tuple[np.ndarray, PolicyState]:
        """Choose actions, float32 [N, A], one-hot or within [-1, 1].

        `observation` has the observed fields and "is_first", [N, ...] each; memory of rows where
        it is true is wiped first. `explore=False` asks for the policy to be evaluated.
        """

    def send(self, batch: Arrays) -> Arrays:
        """Return a batch that `update` will be given, perhaps on its way to the device already.

        This may happen in another thread, while the agent learns from the batch before.
        """
        return batch

    @abstractmethod
    def update(self, batch: Arrays, unread: Collection[str] = ()) -> Feedback:
        """Make one gradient update of everything. Raises `NonFiniteError` where that cannot be.

        Signals that are `unread`, those that nobody needs, may be left out where they cost. This
        decides nothing else.
        """

    @abstractmethod
    def open_loop(self, batch: Arrays, context: int) -> np.ndarray:
        """Return images, uint8 [B, T, H, W, 3], as the model sees them.

        The first `context` steps are seen through the model, the others predicted from the actions.
        Nothing is changed by it, nor is anything drawn at random.
        """

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that decides what this agent does next, by name."""
        tensors = {f"network.{name}": value for name, value in self.state_dict().items()}
        for name, optimiser in self.optimisers.items():
            tensors |= {f"{name}.{key}": value for key, value in optimiser.tensors().items()}
        tensors["generator"] = self.generator.get_state()
        return tensors

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Become the agent that `tensors` came from.

        If it was on another kind of device, its random numbers cannot go on: they begin anew, from
        a seed that their state there decides on.
        """
        self.load_state_dict(_below("network.", tensors))
        for name, optimiser in self.optimisers.items():
            optimiser.load_tensors(_below(f"{name}.", tensors))
        state = tensors["generator"]
        if self.crosses_devices(tensors):
            self.generator.manual_seed(zlib.crc32(state.cpu().numpy().tobytes()))
        else:
            self.generator.set_state(state)

    def crosses_devices(self, tensors: Mapping[str, Tensor]) -> bool:
        """Return whether `tensors` came from an agent on another kind of device."""
        foreign = CARD_STATE if self.device.type == "cpu" else CPU_STATE
        return tensors["generator"].numel() == foreign

    def _load(self, field: np.ndarray | Tensor) -> Tensor:
        """Copy any array, or what is on the device already, there as float32.

        It is contiguous, and begins where tensors do.
        """
        tensor = self._put(field)
        return tensor.to(torch.float32, copy=True, memory_format=torch.contiguous_format)

    def _put(self, field: np.ndarray | Tensor) -> Tensor:
        """Return any array, or what is on the device already, there as it is."""
        tensor = torch.from_numpy(field) if isinstance(field, np.ndarray) else field
        if tensor.device.type != self.device.type:
            # Few bytes, from memory that the device can read while the host goes on.
            tensor = tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
