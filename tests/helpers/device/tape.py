"""Graphs of the pretended device: its kernels on a tape, which repeats them without any Python.

As on a card, nothing is computed while a graph is recorded: what kernels changed is put back. A
repeat launches the same kernels on the same tensors, whatever names these have by then, and draws
new random numbers. So all that an update leaves to the host (a count, a tensor that replaces
another, a choice by what was read) is missing from it, and shows in its numbers.
"""

from collections import Counter
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

from helpers.device.pretended import _Interception


class NotRecordableError(RuntimeError):
    """The host waited for the device, or copied something, while a graph was recorded."""


class Tape:
    """Kernels in order, and what they have changed."""

    def __init__(self):
        self.kernels = []  # (name, shapes)
        self._launches = []  # (launch, what it made)
        self._made = set()  # memory that belongs to the tape
        self._before = {}  # other memory that was changed, and what was in it
        self._states = {torch.default_generator: torch.default_generator.get_state()}

    def add(self, name, launch, writes):
        given = {**dict(enumerate(launch.args)), **launch.keywords}
        generator = given.get("generator")
        if generator is not None and generator not in self._states:
            self._states[generator] = generator.get_state()
        for tensor in tensors([given[key] for key in writes if key in given]):
            memory = tensor.untyped_storage()
            if memory._cdata not in self._made and memory._cdata not in self._before:
                self._before[memory._cdata] = memory, memory.clone()
        made = launch()
        changed = {each.untyped_storage()._cdata for each in tensors(list(given.values()))}
        self._made |= {each.untyped_storage()._cdata for each in tensors(made)} - changed
        self.kernels.append((name, [tuple(each.shape) for each in tensors(list(given.values()))]))
        self._launches.append((launch, made))
        return made

    def put_back(self):
        for memory, before in self._before.values():
            memory.copy_(before)
        for generator, state in self._states.items():
            generator.set_state(state)

    @torch.no_grad()
    def repeat(self):
        with _disable_current_modes():
            for launch, made in self._launches:
                for old, new in zip(tensors(made), tensors(launch()), strict=True):
                    if old.data_ptr() != new.data_ptr():
                        old.copy_(new)


class TapeCapture:
    """See `Capture`."""

    def __init__(self):
        self.tapes = []
        self.warm_ups = 0

    @contextmanager
    def aside(self):
        self.warm_ups += 1
        yield

    def record(self, work):
        device, tape = _Interception.active, Tape()
        events = device.events
        before = events.synchronisations + events.transfers
        device.tape = tape
        try:
            result = work()
        finally:
            device.tape = None
            tape.put_back()
        if found := (events.synchronisations + events.transfers) - Counter(before):
            raise NotRecordableError(f"while a graph was recorded: {dict(found)}")
        self.tapes.append(tape)
        return result, tape.repeat


def tensors(values):
    return [each for each in tree_leaves(values) if isinstance(each, torch.Tensor)]
