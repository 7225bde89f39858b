"""Files with bytes changed at random: what a broken disk, or a first attempt at harm, leaves."""

import random

NUMBERS = [
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63,
    2**64 - 1,
]
"""At the edges of what fits."""


def mutate_bytes(data: bytes, rng: random.Random, other: bytes = b"") -> bytes:
    """The data after one to four changes; `other` is what pieces may be taken from."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        rng.choice(CHANGES)(changed, rng, other)
    return bytes(changed)


def _place(data: bytearray, rng: random.Random) -> int:
    """Anywhere, but headers and ends (where archives have their lists) more often."""
    size = len(data)
    near = rng.choice([size, size, min(size, 64), -min(size, 128)])
    return rng.randrange(near + 1) if near >= 0 else size + near + rng.randrange(-near)


def _flip(data: bytearray, rng: random.Random, other: bytes) -> None:
    if data:
        data[min(_place(data, rng), len(data) - 1)] ^= 1 << rng.randrange(8)


def _put_number(data: bytearray, rng: random.Random, other: bytes) -> None:
    at, number = _place(data, rng), rng.choice(NUMBERS)
    size = rng.choice([1, 2, 4, 8])
    data[at : at + size] = (number % 256**size).to_bytes(size, rng.choice(["little", "big"]))


def _cut_off(data: bytearray, rng: random.Random, other: bytes) -> None:
    del data[_place(data, rng) :]


def _take_out(data: bytearray, rng: random.Random, other: bytes) -> None:
    at = _place(data, rng)
    del data[at : at + rng.choice([1, 2, 8, 100])]


def _insert(data: bytearray, rng: random.Random, other: bytes) -> None:
    at = _place(data, rng)
    data[at:at] = rng.choice([rng.randbytes(rng.randint(1, 16)), b"\0" * 64, b"[" * 99, b"9" * 400])


def _repeat(data: bytearray, rng: random.Random, other: bytes) -> None:
    at = _place(data, rng)
    data[at:at] = data[at : at + rng.randint(1, 200)] * rng.randint(1, 3)


def _splice(data: bytearray, rng: random.Random, other: bytes) -> None:
    at, start = _place(data, rng), rng.randrange(len(other) + 1)
    data[at : at + rng.choice([0, 50])] = other[start : start + rng.randint(1, 200)]


CHANGES = (_flip, _flip, _put_number, _cut_off, _take_out, _insert, _repeat, _splice)
