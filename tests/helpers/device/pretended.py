"""A pretended device: an accelerator for machines that have none.

A tensor on it holds one of the CPU, and refuses to be used together with any other; so does a
random generator. Every operation passes through here, so that whatever would matter on a real
device is counted with its place, the line of the package that asked for it:

    kernels          operations that compute; views and empty tensors are none
    transfers        copies between host and device, and their bytes
    synchronisations the host waits until the device has done all it was told to: copies that are
                     not from pinned memory, numbers that are read, shapes that depend on numbers

    with pretend() as events:
        agent = DreamerV3(config, spaces, 0, NAME)
        agent.update(batch)
    events.synchronisations  # Counter({"item at agents/feedback.py:18": 1})

Numbers are those of the CPU; so are random ones, but the state of a generator has 16 bytes here, as
on a graphics card, where the CPU's has 5,056.
"""

import hashlib
import sys
import threading
import weakref
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

import torch
from torch.nn import functional as F  # noqa: N812
from torch.overrides import TorchFunctionMode
from torch.utils import _foreach_utils
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

import curious_replay
from helpers.device import autocast
from helpers.device.stand_ins import INSTEAD, Attention

NAME = "pretended"
PACKAGE = str(Path(curious_replay.__file__).parent)
NO_KERNEL = {"_unsafe_view", "_reshape_alias", "empty", "empty_like", "empty_strided", "new_empty",
             "new_empty_strided", "is_pinned", "_has_compatible_shallow_copy_type"}  # fmt: skip
STATE_BYTES = 16
aten = torch.ops.aten


class MixedDevicesError(RuntimeError):
    """An operation was given tensors, or a random generator, of the host and of the device."""


@dataclass
class Events:
    """What happened on the device, by "what at place"."""

    kernels: Counter = field(default_factory=Counter)
    transfers: Counter = field(default_factory=Counter)
    synchronisations: Counter = field(default_factory=Counter)
    bytes: int = 0

    def transfer(self, what, tensor, dtype, waits):
        self.transfers[f"{what} at {place()}"] += 1
        self.bytes += tensor.numel() * dtype.itemsize
        if waits:
            self.synchronise(what)

    def synchronise(self, what):
        self.synchronisations[f"{what} at {place()}"] += 1

    def totals(self):
        counts = (self.synchronisations, self.transfers, self.kernels)
        syncs, transfers, kernels = (each.total() for each in counts)
        return {"synchronisations": syncs, "transfers": transfers, "bytes": self.bytes,
                "kernels": kernels}  # fmt: skip

    def clear(self):
        self.__init__()


def place():
    """Line of the package that is at work; gradients are made in a thread of their own."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            return f"{frame.f_code.co_filename[len(PACKAGE) + 1 :]}:{frame.f_lineno}"
        frame = frame.f_back
    return "backward"


class OnDevice(torch.Tensor):
    """A tensor on the device; `held` has its numbers."""

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(
            cls, held.size(), strides=held.stride(), storage_offset=held.storage_offset(),
            dtype=held.dtype, device=torch.device(NAME, 0),
        )  # fmt: skip

    def __init__(self, held):
        self.held = held

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        if _Interception.active is None:
            raise RuntimeError("a tensor of the pretended device is used outside of `pretend`")
        return _Interception.active.run(operation, args, kwargs or {})

    def __repr__(self):
        return f"OnDevice({tuple(self.shape)}, {self.dtype})"

    def new_tensor(self, data, **_):
        return torch.tensor(data, dtype=self.dtype).to(self.device)

    def tolist(self):
        return self.cpu().tolist()

    def numpy(self, **_):
        raise TypeError("a tensor of a device has no NumPy array: copy it to the host first")


class _Interception(TorchDispatchMode):
    active = None

    def __init__(self, events):
        super().__init__()
        self.events = events
        self.pinned = set()  # addresses
        self.side = threading.local()  # of each thread: `copies` that it makes later, if any
        self.tape = None  # on which kernels are recorded, if any: helpers/device/tape.py

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        return self.run(operation, args, kwargs or {})

    def run(self, operation, args, kwargs):
        name = operation._schema.name.removeprefix("aten::")
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        there = [isinstance(each, OnDevice) for each in tensors]
        target = kwargs.get("device")
        arrives = target is not None and torch.device(target).type == NAME
        if name == "_to_copy" and target is not None and arrives != there[0]:
            return self.transfer(args[0], **kwargs)
        if name == "copy_" and there[0] != there[1]:
            return self.copy(*args[:2])
        if name in ("is_pinned", "_pin_memory") and not any(there):
            return self.pin(args[0]) if name == "_pin_memory" else args[0].data_ptr() in self.pinned
        refuse_others(name, any(there) or arrives, generators((args, kwargs)))
        if not (any(there) or arrives):
            return operation(*args, **kwargs)
        if any(there) and not all(there):
            shapes = [f"{list(t.shape)} on the {'device' if d else 'host'}"
                      for t, d in zip(tensors, there, strict=True)]  # fmt: skip
            raise MixedDevicesError(f"{name} at {place()}: {', '.join(shapes)}")
        if waits_for_numbers(operation, name, tensors):
            self.events.synchronise(name)
        if name == "_local_scalar_dense":
            self.events.transfer("number to host", args[0], args[0].dtype, waits=False)
            return args[0].held.item()
        if target is not None:
            kwargs = {**kwargs, "device": "cpu"}
        args_held, kwargs_held = tree_map(held_by, (args, kwargs))
        if operation.is_view or name in NO_KERNEL:
            held = operation(*args_held, **kwargs_held)
            if self.tape is not None:
                self.tape.own(held, (args_held, kwargs_held))
        else:
            compute = INSTEAD.get(name, operation)
            held = self.compute(name, compute, args_held, kwargs_held, writes(operation))
        made = tree_map(lambda t: OnDevice(t) if isinstance(t, torch.Tensor) else t, held)
        return return_and_correct_aliasing(operation, args, kwargs, made) if tensors else made

    def compute(self, name, kernel, args=(), kwargs=None, writes=()):
        """Launch a kernel on tensors that are held; `writes` are the arguments that it changes."""
        self.events.kernels[f"{name} at {place()}"] += 1
        launch = partial(kernel, *args, **(kwargs or {}))
        return launch() if self.tape is None else self.tape.add(name, launch, writes)

    def transfer(self, tensor, dtype=None, non_blocking=False, **_):
        dtype = dtype or tensor.dtype
        if isinstance(
            tensor, OnDevice
        ):  # converted there, then copied to memory that nobody pinned
            self.events.transfer("copy to host", tensor, dtype, waits=True)
            return tensor.held.to(dtype, copy=True)
        free = non_blocking and tensor.data_ptr() in self.pinned
        self.events.transfer("copy to device", tensor, dtype, waits=not free)
        copied = tensor.to(dtype, copy=True)
        copies = getattr(self.side, "copies", None)
        if copies is not None:
            copied = torch.full_like(copied, torch.nan) if dtype.is_floating_point else ~copied
            copies.append((copied, tensor))
        return OnDevice(copied)

    def copy(self, target, source):
        what = "copy to device" if isinstance(target, OnDevice) else "copy to host"
        self.events.transfer(what, source, target.dtype, waits=True)
        held_by(target).copy_(held_by(source))
        return target

    def pin(self, tensor):
        pinned = tensor.clone()
        self.pinned.add(pinned.data_ptr())
        return pinned


def writes(operation):
    """Numbers, or names, of the arguments that an operation changes."""
    arguments = operation._schema.arguments
    return [
        each.name if each.kwarg_only else number
        for number, each in enumerate(arguments)
        if each.alias_info is not None and each.alias_info.is_write
    ]


def generators(values):
    return [each for each in tree_leaves(values) if isinstance(each, torch._C.Generator)]


def refuse_others(name, on_device, generators):
    """Refuse random generators of the other device."""
    for each in generators:
        if PretendedGenerator.is_one(each) != on_device:
            raise MixedDevicesError(f"{name} at {place()}: a generator of another device")


def held_by(value):
    return value.held if isinstance(value, OnDevice) else value


def waits_for_numbers(operation, name, tensors):
    """Whether the host has to know numbers before it can go on."""
    if name.startswith("index"):
        return any(each.dtype in (torch.bool, torch.uint8) for each in tensors[1:])
    tags = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
    return bool(tags & {*operation.tags})


class PretendedGenerator(torch.Generator):
    """A generator of the CPU that says it is on the device; its state is a short name for it."""

    states: ClassVar[dict] = {}
    alive: ClassVar[set] = set()  # PyTorch hands objects of its own to operations

    def __new__(cls):
        made = super().__new__(cls)
        cls.alive.add(made._cdata)
        weakref.finalize(made, cls.alive.discard, made._cdata)
        return made

    @classmethod
    def is_one(cls, generator):
        return generator._cdata in cls.alive

    @property
    def device(self):
        return torch.device(NAME, 0)

    def get_state(self):
        return named(super().get_state())

    def set_state(self, state):
        super().set_state(named_by(state))
        return self

    def clone_state(self):
        return PretendedGenerator().set_state(self.get_state())

    def manual_seed(self, seed):
        super().manual_seed(seed)
        return self


def named(state):
    name = hashlib.blake2b(state.numpy().tobytes(), digest_size=STATE_BYTES).digest()
    PretendedGenerator.states[name] = state
    return torch.tensor([*name], dtype=torch.uint8)


def named_by(name):
    if name.numel() != STATE_BYTES:
        raise RuntimeError(f"RNG state is wrong size: {name.numel()}, not {STATE_BYTES} bytes")
    return PretendedGenerator.states[bytes(name.tolist())]


class _Module(_DummyBackendModule):
    """What PyTorch asks the module of a device for."""

    def get_amp_supported_dtype(self):
        return [torch.bfloat16, torch.float16]

    def get_rng_state(self, device=None):
        return named(torch.default_generator.get_state())

    def set_rng_state(self, state, device=None):
        torch.default_generator.set_state(named_by(state))

    def manual_seed(self, seed):
        torch.default_generator.manual_seed(seed)


class _FusedAttention(TorchFunctionMode):
    """PyTorch knows fused attention by the device; of an unknown one it makes six kernels."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is F.scaled_dot_product_attention and isinstance(args[0], OnDevice):
            places, (look, dropout) = args[:3], (*args[3:], None, 0.0)[:2]
            if torch.is_autocast_enabled(NAME):
                places = autocast.cast(places, torch.get_autocast_dtype(NAME), NAME)
            compute = _Interception.active.compute
            return Attention.apply(compute, OnDevice, look, dropout or 0.0, *places)
        return function(*args, **(kwargs or {}))


def _register():
    """Make the device known to this process, for good, and before it computes any gradient.

    From then on no process that is forked from this one can train.
    """
    _setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    _foreach_utils._foreach_supported_types.append(OnDevice)
    library = torch.library.Library("aten", "IMPL")

    def never(*_, **__):
        raise AssertionError("operations on the device are intercepted before")

    # A card has a kernel for it; PyTorch would take it apart for a device that has none.
    library.impl("silu_backward", never, "PrivateUse1")
    autocast.install(library, NAME)
    return library


_LIBRARY = _register()


@contextmanager
def pretend():
    """Let there be the device, and yield its `Events`."""
    real, before, events = torch.Generator, _Interception.active, Events()

    class Generator(real):
        def __new__(cls, device="cpu"):
            kind = PretendedGenerator if torch.device(device).type == NAME else real
            return kind.__new__(kind)

    torch.Generator = Generator
    try:
        with (
            autocast.kept_until_cleared(),
            _FusedAttention(),
            _Interception(events) as _Interception.active,
        ):
            yield events
    finally:
        torch.Generator, _Interception.active = real, before
