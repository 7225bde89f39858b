"""Other libraries behind one face, so that they can be timed side by side with ours.

Trees offer sample(count) and set(indices, values); buffers offer sample(), update() and add() of
the work that a Dreamer asks for. Each is used the fastest way its interface allows.
"""

import importlib
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from curious_replay.replay import Curious, ReplayBuffer
from curious_replay.replay.sumtree import SumTree

Array = npt.NDArray[Any]
Step = TypeVar("Step")

WINDOWS, LENGTH = 16, 64  # a Dreamer's batch
ACTIONS = 17


class Tree(Protocol):
    """A priority tree."""

    def sample(self, count: int) -> object:
        """Draw `count` indices."""

    def set(self, indices: Array, values: Array) -> object:
        """Give `indices` new values."""


class Buffer(Protocol):
    """A filled buffer of images."""

    def sample(self) -> object:
        """Draw 16 windows of 64 steps, or what comes nearest."""

    def update(self) -> object:
        """Give 1,024 steps new priorities."""

    def add(self) -> object:
        """Add one step."""


def load(name: str) -> Any:
    """Import a peer.

    TorchRL's library is built for one release of torch. Bound lazily, it also loads beside another
    one: what differs is not used here.
    """
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_LAZY)
    try:
        return importlib.import_module(name)
    finally:
        sys.setdlopenflags(flags)


class CuriousTree:
    """Ours."""

    def __init__(self, capacity: int, rng: np.random.Generator) -> None:
        self._tree, self._rng = SumTree(capacity), rng

    def sample(self, count: int) -> object:  # noqa: D102
        return self._tree.sample(count, self._rng)

    def set(self, indices: Array, values: Array) -> object:  # noqa: D102
        self._tree.set(indices, values)
        return None


class TorchRLTree:
    """The C++ segment tree below TorchRL's samplers, in float32 (its default) or float64."""

    def __init__(self, capacity: int, rng: np.random.Generator, kind: str, dtype: type) -> None:
        load("torchrl")
        self._tree = getattr(load("torchrl._torchrl"), kind)(capacity)
        self._capacity, self._rng, self._dtype = capacity, rng, dtype

    def sample(self, count: int) -> object:  # noqa: D102
        mass = self._rng.random(count) * self._tree.query(0, self._capacity)
        return self._tree.scan_lower_bound(mass.astype(self._dtype))

    def set(self, indices: Array, values: Array) -> object:  # noqa: D102
        self._tree[indices] = values.astype(self._dtype)
        return None


class StarrTree:
    """The tree of the paper's own DreamerV2 code."""

    def __init__(self, capacity: int, rng: np.random.Generator) -> None:
        self._tree = load("starr").SumTreeArray(capacity, dtype="float64")

    def sample(self, count: int) -> object:  # noqa: D102
        return self._tree.sample(count)

    def set(self, indices: Array, values: Array) -> object:  # noqa: D102
        self._tree[indices] = values
        return None


class TianshouTree:
    """A binary tree in Numba."""

    def __init__(self, capacity: int, rng: np.random.Generator) -> None:
        self._tree, self._rng = load("tianshou.data").SegmentTree(capacity), rng

    def sample(self, count: int) -> object:  # noqa: D102
        return self._tree.get_prefix_sum_idx(self._rng.random(count) * self._tree.reduce())

    def set(self, indices: Array, values: Array) -> object:  # noqa: D102
        self._tree[indices] = values
        return None


class CpprbTree:
    """Cpprb has no tree of its own to call: a prioritised buffer of one number a step."""

    def __init__(self, capacity: int, rng: np.random.Generator) -> None:
        cpprb = load("cpprb")
        self._buffer = cpprb.PrioritizedReplayBuffer(capacity, {"x": {}}, alpha=1.0)
        self._buffer.add(x=np.zeros(capacity))

    def sample(self, count: int) -> object:  # noqa: D102
        return self._buffer.sample(count)

    def set(self, indices: Array, values: Array) -> object:  # noqa: D102
        return self._buffer.update_priorities(indices, values)


TREES: dict[str, Callable[[int, np.random.Generator], Tree]] = {
    "curious": CuriousTree,
    "torchrl float32": lambda n, r: TorchRLTree(n, r, "SumSegmentTreeFp32", np.float32),
    "torchrl float64": lambda n, r: TorchRLTree(n, r, "SumSegmentTreeFp64", np.float64),
    "starr": StarrTree,
    "tianshou": TianshouTree,
    "cpprb": CpprbTree,
}


class Stream:
    """Random steps as a Dreamer stores them, and random feedback, the same for all buffers."""

    def __init__(self, steps: int, rng: np.random.Generator) -> None:
        self.steps, self.rng = steps, rng
        self.images = rng.integers(0, 256, (64, 64, 64, 3), np.uint8)
        self.action = rng.random(ACTIONS, np.float32)
        self.losses = rng.random((WINDOWS, LENGTH), np.float32) * 300
        starts = rng.integers(0, steps - LENGTH, (1000, WINDOWS, 1))
        self._windows = itertools.cycle(starts + np.arange(LENGTH))

    def cycle(self, make: Callable[[Array], Step]) -> Iterator[Step]:
        """Return steps without end, made once from each image: making them is not timed."""
        return itertools.cycle([make(image) for image in self.images])

    def windows(self) -> Array:
        """Return indices [16, 64] of the next random windows: drawing them is not timed."""
        return next(self._windows)


class CopyLimit:
    """No buffer at all: NumPy copies the same fields of windows out of plain arrays."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        one = {"image": stream.images[0], "action": stream.action}
        one |= {name: flag[0] for name, flag in FLAGS.items()}
        self._fields = {
            name: np.zeros((stream.steps, *np.shape(value)), value.dtype)
            for name, value in one.items()
        }
        for start in range(0, stream.steps, len(stream.images)):
            part = self._fields["image"][start : start + len(stream.images)]
            part[:] = stream.images[: len(part)]

    def sample(self) -> object:
        """Copy 16 windows of 64 steps."""
        windows = self._stream.windows()
        return {name: field[windows] for name, field in self._fields.items()}


class CuriousBuffer:
    """Ours, as a Dreamer uses it: formula and visits included."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._buffer = ReplayBuffer(stream.steps, LENGTH, rule=Curious())
        self._steps = stream.cycle(
            lambda image: {"image": image[None], "action": stream.action[None], **FLAGS}
        )
        for _ in range(stream.steps):
            self.add()
        # Many, as in use: steps visited thousands of times are not what is to be timed.
        self._ids = itertools.cycle([self._buffer.sample(WINDOWS).ids for _ in range(1000)])

    def sample(self) -> object:  # noqa: D102
        return self._buffer.sample(WINDOWS)

    def sample_apart(self) -> object:
        """Draw as `sample` does, without repeats."""
        self._buffer.repeats = False
        batch = self._buffer.sample(WINDOWS)
        self._buffer.repeats = True
        return batch

    def update(self) -> object:  # noqa: D102
        self._buffer.update(next(self._ids), {"model": self._stream.losses})
        return None

    def add(self) -> object:  # noqa: D102
        return self._buffer.add(next(self._steps))


FLAGS = {
    "reward": np.zeros(1, np.float32),
    "is_first": np.zeros(1, bool),
    "is_last": np.zeros(1, bool),
    "is_terminal": np.zeros(1, bool),
}


class TorchRLBuffer:
    """PrioritizedSliceSampler over a tensor storage: the library's own way to replay windows."""

    def __init__(self, stream: Stream) -> None:
        torch, data = load("torch"), load("torchrl.data")
        self._dict = load("tensordict").TensorDict
        self._stream, self._torch = stream, torch
        self._buffer = data.TensorDictReplayBuffer(
            storage=data.LazyTensorStorage(stream.steps),
            sampler=self._sampler(),
            batch_size=WINDOWS * LENGTH,
        )
        self._steps = stream.cycle(lambda image: self._rows(image[None])[0])
        for start in range(0, stream.steps, len(stream.images)):
            self._buffer.extend(self._rows(stream.images[: stream.steps - start]))
        self._losses = torch.from_numpy(stream.losses.reshape(-1))

    def _sampler(self) -> Any:
        return load("torchrl.data").PrioritizedSliceSampler(
            max_capacity=self._stream.steps, alpha=0.7, beta=0.0, slice_len=LENGTH, end_key="done"
        )

    def _rows(self, images: Array) -> Any:
        torch, count = self._torch, len(images)
        return self._dict(
            {
                "image": torch.from_numpy(images),
                "action": torch.from_numpy(self._stream.action).expand(count, ACTIONS).clone(),
                "reward": torch.zeros(count, 1),
                "done": torch.zeros(count, 1, dtype=torch.bool),
            },
            batch_size=[count],
        )

    def sample(self) -> object:  # noqa: D102
        return self._buffer.sample()

    def draw(self) -> Any:
        """Draw the index of 16 windows of 64 steps, without the steps themselves."""
        return self._buffer.sampler.sample(self._buffer.storage, WINDOWS * LENGTH)

    def update(self) -> object:  # noqa: D102
        return self._buffer.update_priority(self._stream.windows().reshape(-1), self._losses)

    def add(self) -> object:  # noqa: D102
        return self._buffer.add(next(self._steps))


class CuriousInTorchRL(TorchRLBuffer):
    """TorchRL's buffer and storage with our sampler: visits and formula included."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        # It takes feedback for steps that were drawn, and these are not to be the same few.
        self._drawn = itertools.cycle([self.draw()[0][0] for _ in range(1000)])

    def _sampler(self) -> Any:
        module = load("curious_replay.torchrl")
        return module.CuriousSampler(Curious(), slice_len=LENGTH, end_key="done")

    def update(self) -> object:  # noqa: D102
        return self._buffer.update_priority(next(self._drawn), self._losses)


class TianshouBuffer:
    """Prioritised steps; the windows that begin at them are taken by index."""

    def __init__(self, stream: Stream) -> None:
        data = load("tianshou.data")
        self._stream, self._batch = stream, data.Batch
        self._buffer = data.PrioritizedReplayBuffer(
            stream.steps, alpha=0.7, beta=0.4, ignore_obs_next=True
        )
        flags = {"terminated": False, "truncated": False, "done": False, "obs_next": 0, "info": {}}
        self._steps = stream.cycle(
            lambda image: self._batch(obs=image, act=stream.action, rew=0.0, **flags)
        )
        for _ in range(stream.steps):
            self.add()

    def sample(self) -> object:  # noqa: D102
        starts = self._buffer.sample_indices(WINDOWS)
        return self._buffer[(starts[:, None] + np.arange(LENGTH)) % self._stream.steps]

    def update(self) -> object:  # noqa: D102
        windows = self._stream.windows().reshape(-1)
        return self._buffer.update_weight(windows, self._stream.losses.reshape(-1))

    def add(self) -> object:  # noqa: D102
        return self._buffer.add(next(self._steps))


class CpprbBuffer:
    """Prioritised single steps, 1,024 of them: it has no windows."""

    def __init__(self, stream: Stream) -> None:
        fields = {
            "image": {"shape": (64, 64, 3), "dtype": np.uint8},
            "action": {"shape": ACTIONS},
            "reward": {},
            "done": {},
        }
        self._stream = stream
        self._buffer = load("cpprb").PrioritizedReplayBuffer(stream.steps, fields, alpha=0.7)
        self._steps = stream.cycle(
            lambda image: {"image": image, "action": stream.action, "reward": 0.0, "done": 0.0}
        )
        for _ in range(stream.steps):
            self.add()

    def sample(self) -> object:  # noqa: D102
        return self._buffer.sample(WINDOWS * LENGTH)

    def update(self) -> object:  # noqa: D102
        windows = self._stream.windows().reshape(-1)
        return self._buffer.update_priorities(windows, self._stream.losses.reshape(-1))

    def add(self) -> object:  # noqa: D102
        return self._buffer.add(**next(self._steps))


BUFFERS: dict[str, Callable[[Stream], Buffer]] = {
    "curious": CuriousBuffer,
    "curious in torchrl": CuriousInTorchRL,
    "torchrl": TorchRLBuffer,
    "tianshou": TianshouBuffer,
    "cpprb (single steps)": CpprbBuffer,
}
