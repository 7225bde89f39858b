"""Memory that an update takes, on tensors that have shapes and no numbers."""

import warnings
import weakref
from contextlib import contextmanager
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from curious_replay.agents import dreamer, feedback, interface
from curious_replay.agents.blocks import latents
from curious_replay.agents.blocks.shortcuts import upscale


class Memory(TorchDispatchMode):
    """Bytes of all tensors that are alive, `now` and at the `peak`."""

    def __init__(self):
        super().__init__()
        self.now = self.peak = 0
        self._known = set()

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        made = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self._note(tensor.untyped_storage())
        return made

    def _note(self, storage):
        key = storage._cdata
        if key not in self._known:
            self._known.add(key)
            self._add(size := storage.nbytes())
            weakref.finalize(storage, self._drop, key, size)

    def _add(self, size):
        self.now += size
        self.peak = max(self.peak, self.now)

    def _drop(self, key, size):
        self._known.discard(key)
        self.now -= size


@contextmanager
def without_numbers():
    """Count the memory of agents that are made and updated here, as if on a graphics card.

    Shortcuts of CPUs are not taken, and nothing is fed back: there are no numbers to feed.
    """
    nothing = mock.Mock(return_value=interface.Feedback({}, {}))
    with (
        mock.patch.object(dreamer, "pays", lambda x: False),
        mock.patch.object(upscale, "REGISTER", 0),
        mock.patch.object(feedback.FiniteCheck, "feedback", nothing),
        mock.patch.object(torch.nn.init, "trunc_normal_", lambda weight, **_: weight),
        mock.patch.object(latents, "draw", lambda shares, _: shares.argmax(-1)),
        mock.patch.object(torch.nn.Module, "to", lambda module, *_: module),
        warnings.catch_warnings(),
        FakeTensorMode(allow_non_fake_inputs=True),
        Memory() as memory,
    ):
        # Copying a network asks where it is, of tensors that are nowhere.
        warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor")
        yield memory
