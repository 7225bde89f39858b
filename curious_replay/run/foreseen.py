"""What an update will take of a graphics card's memory, found without one.

The update is made with fake tensors, which have shapes and no numbers. What is alive at any moment
is added up as a card would hold it; nothing is computed, so it takes seconds at any size. This
happens in a process of its own, because PyTorch may crash where fake tensors end:

    python -m curious_replay.run.foreseen

It reads a line of settings, and then answers lines of windows.
"""

import json
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from curious_replay import plugins
from curious_replay.agents.interface import Agent
from curious_replay.agents.spaces import Spaces
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.config import Config

MOMENTS = 2  # of Adam, beside each parameter
NO_KERNEL = ("_unsafe_view", "empty", "empty_like", "empty_strided", "new_empty", "detach")
BATCH = "train.batch_size"
Windows = Mapping[str, int]
"""How many windows an update has, by the name of the setting that says so: first those of the
batch, then those of each stream."""


@dataclass(frozen=True)
class CardNeeds:
    """What an update takes of a card: bytes at its most crowded moment, and work."""

    weights: int
    optimisers: int
    batch: int
    activations: int
    """Whatever else is alive then: outputs of layers, gradients."""
    kernels: int = 0
    """Operations that compute; on a card some are several."""
    flops: int = 0
    """Of products and convolutions, forward and backward."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.optimisers + self.batch + self.activations

    @property
    def constant(self) -> int:
        """What does not depend on the batch."""
        return self.weights + self.optimisers


Ask = Callable[[Windows], CardNeeds | None]


def windows_of(config: Config, agent: Agent) -> dict[str, int]:
    """Return the windows that updates of these settings have."""
    streams = {_setting(name): each.windows for name, each in agent.streams.items()}
    return {BATCH: config.train.batch_size, **streams}


@contextmanager
def foreseeing(config: Config, spaces: Spaces) -> Iterator[Ask]:
    """Yield what tells the needs of updates with so many windows.

    Windows that are not named are as many as the settings say. The answer is None if the agent
    cannot be tried so. A precision that is "auto" counts as float32: here is no card to ask.
    """
    own = [[each.what, each.changed] for each in plugins.wanted()]
    told = {"config": config.to_json(), "spaces": asdict(spaces), "plugins": own}
    process = subprocess.Popen(
        [sys.executable, "-m", "curious_replay.run.foreseen"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    said, answers = process.stdin, process.stdout
    assert said is not None and answers is not None

    def tell(line: Any) -> None:
        with suppress(BrokenPipeError):  # it has failed, and will not answer
            print(json.dumps(line), file=said, flush=True)

    def ask(windows: Windows) -> CardNeeds | None:
        tell(windows)
        answer = answers.readline()
        return CardNeeds(**json.loads(answer)) if answer else None

    tell(told)
    try:
        yield ask
    finally:
        process.kill()  # there is nothing that it would have to finish
        process.communicate()


def foresee(config: Config, spaces: Spaces) -> CardNeeds | None:
    """Return what updates of these settings take; None if the agent cannot be tried so."""
    with foreseeing(config, spaces) as ask:
        return ask({})


class _Trial:
    """An agent of fake tensors, and what its updates take."""

    def __init__(self, config: Config, spaces: Spaces) -> None:
        self.config, self.spaces = config, spaces
        self._alive, self._fake = _Alive(), FakeTensorMode(allow_non_fake_inputs=True)
        make = AGENTS[config.choice.agent].make
        # Fake parameters cannot be moved, and need not be: they are on one device.
        with self._faking(), mock.patch.object(nn.Module, "to", lambda module, *_: module):
            self.agent = make(config.agent, spaces, 0, "cpu")
        if config.train.precision != "auto":
            self.agent.compute_in(config.train.precision)
        with self._faking():
            self.agent.update(self._batch({}))  # which makes the moments of Adam

    def needs(self, windows: Windows) -> CardNeeds:
        """Make an update with so many windows; return what it takes."""
        agent, alive, batch = self.agent, self._alive, self._batch(windows)
        alive.peak, alive.kernels, alive.flops = alive.now, 0, 0
        with self._faking():
            agent.update(batch)
        weights = _bytes([*agent.parameters(), *agent.buffers()])
        optimisers = agent.optimisers.values()
        learned = _bytes([p for each in optimisers for p in each.parameters.values()])
        of_batch = sum(array.size * 4 for array in batch.values())
        moments = MOMENTS * learned
        rest = max(alive.peak - weights - moments - of_batch, 0)
        return CardNeeds(weights, moments, of_batch, rest, alive.kernels, alive.flops)

    @contextmanager
    def _faking(self) -> Iterator[None]:
        with self._fake, self._alive, _Answers():
            yield

    def _batch(self, windows: Windows) -> dict[str, np.ndarray]:
        """Return a batch as replay would hand it out, of zeros."""
        spaces, train = self.spaces, self.config.train
        windows = {**windows_of(self.config, self.agent), **windows}
        shapes = {"": (windows[BATCH], train.batch_length)}
        for name, each in self.agent.streams.items():
            shapes[f"{name}/"] = (windows[_setting(name)], each.length)
        made = {}
        for prefix, shape in shapes.items():
            made[f"{prefix}action"] = np.zeros((*shape, spaces.actions), np.float32)
            made[f"{prefix}reward"] = np.zeros(shape, np.float32)
            for flag in ("is_first", "is_last", "is_terminal"):
                made[prefix + flag] = np.zeros(shape, bool)
            if spaces.image is not None:
                made[f"{prefix}image"] = np.zeros((*shape, *spaces.image, 3), np.uint8)
            if spaces.vector:
                made[f"{prefix}vector"] = np.zeros((*shape, spaces.vector), np.float32)
        return made


def _setting(stream: str) -> str:
    """Return the setting that says how many windows a stream has."""
    return f"agent.{stream}"


def _bytes(tensors: Sequence[Tensor]) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


class _Alive(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the memory of all tensors that are made and not gone, and counts operations."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = self.kernels = self.flops = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        name = func.__name__.partition(".")[0]
        computes = func.namespace == "aten" and not (func.is_view or name in NO_KERNEL)
        self.kernels += computes
        if flops := flop_registry.get(func.overloadpacket):
            self.flops += flops(*args, **(kwargs or {}), out_val=made)
        for each in tree_leaves(made):
            if isinstance(each, Tensor):
                self._hold(each.untyped_storage())
        return made

    def _hold(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key not in self._sizes:
            self._sizes[key] = storage.nbytes()
            self.now += self._sizes[key]
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._let_go, key)

    def _let_go(self, key: int) -> None:
        self.now -= self._sizes.pop(key)


class _Answers(TorchFunctionMode):
    """Says 1 whenever a number is read: all is finite, and all parts learn."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "numpy":
            return np.ones(args[0].shape, np.float32)
        if name in ("__int__", "__bool__", "__float__", "item"):
            return name == "__bool__" or 1
        if name == "any":  # asked of first weights: none has to be drawn again
            return False
        return func(*args, **(kwargs or {}))


def main() -> None:
    """Read settings and spaces from standard input, then windows; write what they need."""
    told = json.loads(sys.stdin.readline())
    plugins.load(plugins.Wanted(*each) for each in told["plugins"])
    image = told["spaces"].pop("image")
    spaces = Spaces(**told["spaces"], image=image and tuple(image))
    trial = _Trial(Config.from_json(told["config"]), spaces)
    for line in sys.stdin:
        print(json.dumps(asdict(trial.needs(json.loads(line)))), flush=True)
    os._exit(0)  # without freeing the agent: where it is fake, PyTorch 2.13 may crash


if __name__ == "__main__":
    main()
