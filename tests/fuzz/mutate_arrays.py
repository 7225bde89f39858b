"""NumPy archives and safetensors files whose headers and numbers are not what they should be."""

import io
import json
import os
import pickle
import random
import struct
import zipfile
from contextlib import suppress

import numpy as np
from mutate_json import mutate_json

NUMBERS = [-1, 0, 1, 2, 10**6, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [*map(float, NUMBERS), float("nan"), float("inf"), -float("inf"), 1e290, 1e308, 5e-324]
SHAPES = ["()", "(0,)", "(1,)", "(-1,)", "(9999999999,)", "(10000000000000000000,)", "(2, -3)",
          "(1.5,)", "'x'", "[2]", "(" + "1, " * 40 + ")", "(" * 90 + ")" * 90]  # fmt: skip
DESCRS = ["'|O'", "'|V8'", "'<f8'", "'<i8'", "'>i8'", "'|b1'", "'<U5'", "'|S3'", "'<U0'", "'<f16'",
          "'<i3'", "'<M8[s]'", "[('a', '|O')]", "[('a', '<i4'), ('b', '<f8')]", "'i4,O'",
          "'<U999999999'", "1", "None", "__import__('os').system('exit')"]  # fmt: skip


class Harm:
    """Unpickling this would call `os.system`, which the fuzzer sees."""

    def __reduce__(self):
        return os.system, ("true",)


def mutate_archive(data: bytes, rng: random.Random) -> bytes:
    """A .npz with one to three of its members changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    kind = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    for _ in range(rng.choice([1, 1, 2, 3])):
        name = rng.choice([*members])
        match rng.randrange(12):
            case 0:
                del members[name]
            case 1:
                members[rng.choice(["x.npy", "../x.npy", "/etc/x.npy", "x", ""])] = members[name]
            case 2:
                members[name] = members[rng.choice([*members])]
            case 3:
                members[name] = _npy(pickle.dumps(np.array([Harm()], object)), "'|O'", "(1,)")
            case 4:
                members[name] = b"\0" * rng.choice([0, 10, 2_000_000])
            case 5 | 6 | 7:
                members[name] = _other_header(members[name], rng)
            case _:
                members[name] = _other_numbers(members[name], rng)
        if not members:
            break
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, kind)
    return out.getvalue()


def _npy(content: bytes, descr: str, shape: str, order: str = "False") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content


def _other_header(data: bytes, rng: random.Random) -> bytes:
    try:
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except (ValueError, MemoryError):  # changed before
        return data
    descr = rng.choice([repr(array.dtype.str), rng.choice(DESCRS)])
    shape = rng.choice([repr(array.shape), rng.choice(SHAPES), repr((*array.shape, 1))])
    return _npy(array.tobytes(), descr, shape, rng.choice(["False", "True", "7"]))


def _other_numbers(data: bytes, rng: random.Random) -> bytes:
    """One or all numbers are others; or all of them are of another dtype or length."""
    try:
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False).copy()
    except (ValueError, MemoryError):  # changed before
        return data
    out = io.BytesIO()
    match rng.randrange(5):
        case 0 if array.size and array.dtype.kind != "U":
            with suppress(ValueError, TypeError, RuntimeError):  # not all can be others too
                array = array.astype(rng.choice(["i8", "f8", "f4", "u1", "U3", "?"]))
        case 1:
            array = rng.choice([array[None], array.reshape(-1)[:-1], np.tile(array, 2), array.T])
        case 2 if array.dtype.kind == "b" and array.size:
            array.reshape(-1).view(np.uint8)[rng.randrange(array.size)] = rng.randrange(256)
        case _ if array.size and array.dtype.kind in "iuf":
            kind = array.dtype.kind
            number = rng.choice(FLOATS if kind == "f" else NUMBERS)
            if kind != "f":
                limits = np.iinfo(array.dtype)
                number = min(max(number, limits.min), limits.max)
            flat = array.reshape(-1)
            if rng.random() < 0.3:
                flat[:] = number
            else:
                flat[rng.randrange(array.size)] = number
            array = flat.reshape(array.shape)
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


def mutate_tensors(data: bytes, rng: random.Random) -> bytes:
    """A safetensors file with another header, or another length of it."""
    (length,) = struct.unpack("<Q", data[:8])
    header, rest = json.loads(data[8 : 8 + length]), data[8 + length :]
    names = [name for name in header if name != "__metadata__"]
    if rng.random() < 0.5 and names:  # offsets and shapes, which must fit each other
        entry = header[rng.choice(names)]
        key = rng.choice(["data_offsets", "shape", "dtype"])
        entry[key] = (
            rng.choice(["F64", "I8", "BOOL", "F8_E4M3", "F4", "C64", "U16", "X", 3, None])
            if key == "dtype"
            else [rng.choice([0, 1, 8, 2**31, 2**63, -1, len(rest)]) for _ in range(2)]
        )
        text = json.dumps(header).encode()
    else:
        text = mutate_json(header, rng)
    size = rng.choice([len(text), len(text), len(text), 0, 2**40, 2**64 - 1, len(text) + 9])
    return struct.pack("<Q", size) + text + rng.choice([rest, rest, rest[:-1], rest + b"\0" * 8])
