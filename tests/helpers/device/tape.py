"""Graphs of the pretended device: its kernels on a tape, which repeats them without any Python.

As on a card, nothing is computed while a graph is recorded: what kernels changed is put back. A
repeat launches the same kernels on the same tensors, whatever names these have by then, and draws
new random numbers. So all that an update leaves to the host (a count, a tensor that replaces
another, a choice by what was read) is missing from it, and shows in its numbers.

Two faults would show in no number here, and are looked for: random numbers of a generator that the
graph was not told of, and memory that was there before the recording and is freed by a repeat. A
graph knows addresses only, so the tape keeps nothing but what it has made itself.
"""

from collections import Counter
from contextlib import contextmanager

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from helpers.device.pretended import _Interception, generators, place


class NotRecordableError(RuntimeError):
    """A graph cannot have this: a wait of the host, a copy, another random generator."""


class FreedMemoryError(RuntimeError):
    """A repeated kernel uses memory that was not made in the recording, and is freed by now."""


class Outside:
    """A tensor of memory that is not the tape's, which does not keep it."""

    def __init__(self, tensor, user):
        self._memory = StorageWeakRef(tensor.untyped_storage())
        self._dtype = tensor.dtype
        self._layout = tensor.storage_offset(), tensor.size(), tensor.stride()
        self._user = user

    def find(self):
        memory = torch.UntypedStorage._new_with_weak_ptr(self._memory.cdata)
        if memory is None:
            raise FreedMemoryError(
                f"{self._user} uses a tensor {[*self._layout[1]]} of {self._dtype} that was made "
                "before the recording and is gone: keep it as long as the graph, or make it there"
            )
        return torch.empty(0, dtype=self._dtype).set_(memory, *self._layout)


class Tape:
    """Kernels in order, and what they have changed."""

    def __init__(self, generator):
        self.kernels = []  # (name, shapes)
        self._launches = []  # (kernel, arguments, what it made of its own)
        self._made = set()  # memory that belongs to the tape
        self._before = {}  # other memory that was changed, and what was in it
        self._known = [torch.default_generator, generator]
        self._states = [each.get_state() for each in self._known]

    def add(self, name, launch, writes):
        given = {**dict(enumerate(launch.args)), **launch.keywords}
        user = f"{name} at {place()}"
        self._refuse_others([*given.values()], user)
        for tensor in tensors([given[key] for key in writes if key in given]):
            memory = tensor.untyped_storage()
            if memory._cdata not in self._made and memory._cdata not in self._before:
                self._before[memory._cdata] = memory, memory.clone()
        arguments = tree_map(
            lambda each: each if self._keeps(each) else Outside(each, user),
            (launch.args, launch.keywords),
        )
        made = launch()
        self.own(made, given)
        self.kernels.append((name, [tuple(each.shape) for each in tensors(list(given.values()))]))
        kept = [each if self._keeps(each) else None for each in tensors(made)]
        self._launches.append((launch.func, arguments, kept))
        return made

    def _refuse_others(self, given, user):
        known = {each._cdata for each in self._known}  # PyTorch gives objects of its own for them
        if {each._cdata for each in generators(given)} - known:
            raise NotRecordableError(f"{user} draws from a generator that the graph does not know")

    def own(self, made, given):
        """Let memory be the tape's that came with the tensors `made` of those that were given."""
        known = {each.untyped_storage()._cdata for each in tensors(given)}
        self._made |= {each.untyped_storage()._cdata for each in tensors(made)} - known

    def _keeps(self, value):
        known = not isinstance(value, torch.Tensor)
        return known or value.untyped_storage()._cdata in self._made

    def put_back(self):
        for memory, before in self._before.values():
            memory.copy_(before)
        self._before.clear()
        for generator, state in zip(self._known, self._states, strict=True):
            generator.set_state(state)

    @torch.no_grad()
    def repeat(self):
        with _disable_current_modes():
            for kernel, arguments, kept in self._launches:
                given, named = tree_map(
                    lambda each: each.find() if isinstance(each, Outside) else each, arguments
                )
                for old, new in zip(kept, tensors(kernel(*given, **named)), strict=True):
                    if old is not None and old.data_ptr() != new.data_ptr():
                        old.copy_(new)


class Recordings:
    """All that was recorded, and how often that was prepared for; `capture` is that of `cuda`."""

    def __init__(self):
        self.tapes = []
        self.warm_ups = 0

    def capture(self, device, generator):
        return TapeCapture(self, generator)


class TapeCapture:
    """See `Capture`; what is recorded may draw from `generator`."""

    def __init__(self, recordings, generator):
        self._recordings = recordings
        self._generator = generator

    @contextmanager
    def aside(self):
        self._recordings.warm_ups += 1
        yield

    def record(self, work):
        device, tape = _Interception.active, Tape(self._generator)
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
        self._recordings.tapes.append(tape)
        return result, tape.repeat


def tensors(values):
    return [each for each in tree_leaves(values) if isinstance(each, torch.Tensor)]
