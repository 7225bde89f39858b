"""Reading files that nobody vouches for: whatever is in them, the worst is an `UnreadableError`.

A run folder, a checkpoint or a saved buffer may be damaged, or come from somebody else. So nothing
read here can run code, lead out of its folder through a symbolic link, wait for a pipe, or take
more memory than a file of its size can hold. Errors name the file and what would be right.
"""

import errno
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from curious_replay.errors import UsageError

DEEPEST = 64
"""Lists and objects within each other in a JSON file; ours have less than ten."""
LARGEST = 10**300
"""Whole numbers stay below, so that each can become a float."""
DEFLATE = 1032
"""Bytes that a byte of a compressed file can stand for, at most."""
_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufcSU]\d{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)
# Windows has only the last of them. There a link is looked for beforehand, pipes have no names
# among files, and without O_BINARY a file would end at its first byte 26.
_FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_KINDS = {
    int: "a whole number", float: "a number", str: "text", bool: "true or false", dict: "an object",
    list: "a list", type(None): "null",
}  # fmt: skip


class UnreadableError(UsageError):
    """A file is damaged, or is not what it should be."""


@contextmanager
def raised_as(kind: type[ValueError]) -> Iterator[None]:
    """Let what cannot be read be an error of this kind."""
    try:
        yield
    except UnreadableError as error:
        if isinstance(error, kind):
            raise
        raise kind(str(error)) from error


def of_the_disk(error: BaseException) -> bool:
    """Return whether a file could not be read at all.

    That is so if a server is away; the file may be whole.
    """
    cause: BaseException | None = error
    while isinstance(cause, ValueError):
        cause = cause.__cause__
    return isinstance(cause, OSError) and cause.errno not in (errno.ENOENT, errno.ELOOP)


def open_file(path: Path) -> BufferedReader:
    """Open a file for reading bytes; it must be a file itself, not a link, folder, pipe or device.

    A link could lead out of the folder that is being read, and reading a pipe might never end.
    """
    flags = os.O_RDONLY
    for name in _FLAGS:
        flags |= getattr(os, name, 0)
    try:
        if not hasattr(os, "O_NOFOLLOW") and Path(path).is_symlink():
            raise OSError(errno.ELOOP, "it is a link")
        descriptor = os.open(path, flags)
    except FileNotFoundError as error:
        raise UnreadableError(f"{path} is missing") from error
    except (OSError, ValueError) as error:
        if Path(path).is_symlink():
            raise UnreadableError(f"{path} is a symbolic link; it must be a file itself") from error
        raise UnreadableError(f"{path} cannot be opened: {error}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableError(f"{path} must be a file; it is a folder, pipe or device")
    return os.fdopen(descriptor, "rb")


def read_bytes(path: Path) -> bytes:
    """Read all of a file; see `open_file`."""
    with open_file(path) as file:
        return file.read()


def folder_itself(path: Path) -> Path:
    """Return the folder, which must not be a symbolic link: that could lead anywhere."""
    try:
        linked = path.is_symlink()
    except OSError as error:  # its name may be longer than names can be
        raise UnreadableError(f"{path} cannot be opened: {error}") from error
    if linked:
        raise UnreadableError(f"{path} is a symbolic link; it must be a folder itself")
    return path


def read_json(path: Path) -> Any:
    """Read what a JSON file holds."""
    return parse_json(read_bytes(path), str(path))


def read_object(path: Path) -> dict[str, Any]:
    """Read what a JSON file holds, which must be an object."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise UnreadableError(f"{path} must hold a JSON object, it holds {_shown(content)}")
    return content


def parse_json(text: bytes, name: str) -> Any:
    """Return what JSON text holds; `name` says in errors where it is from."""
    try:
        decoded = text.decode()
        content = json.loads(decoded, parse_int=_whole)
        if decoded.count("[") + decoded.count("{") > DEEPEST and _depth(content) > DEEPEST:
            raise ValueError(f"lists and objects are nested deeper than {DEEPEST}")
        if _SURROGATE.search(decoded):  # half a character: no text can be written with it
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{name} is damaged or no JSON: {error}") from error
    return content


def check(value: Any, wanted: Any, name: str) -> None:
    """Refuse a JSON value that is not as `wanted`, naming what is wrong.

    int, float, str, bool, dict, None   a value of that kind; a float may be written as whole number
    (a, b)                              as one of these
    [a]                                 a list of such values
    {"x": a, ...}                       an object with these names and no others
    """
    if isinstance(wanted, dict) and isinstance(value, dict):
        if missing := wanted.keys() - value.keys():
            raise UnreadableError(f"{name} has no {min(missing)!r}")
        if unknown := value.keys() - wanted.keys():
            raise UnreadableError(f"{name} has an unknown {min(unknown)!r}")
        for key, each in wanted.items():
            check(value[key], each, f"{name}, {key}")
    elif isinstance(wanted, list) and isinstance(value, list):
        for i, each in enumerate(value):
            check(each, wanted[0], f"{name}[{i}]")
    elif isinstance(wanted, tuple):
        for each in wanted[:-1]:
            try:
                return check(value, each, name)
            except UnreadableError:
                continue
        check(value, wanted[-1], name)
    else:
        kind = (
            type(None) if wanted is None else wanted if isinstance(wanted, type) else type(wanted)
        )
        fits = type(value) is kind or (kind is float and type(value) is int)
        if not fits or isinstance(wanted, list | dict):
            raise UnreadableError(f"{name} must be {_KINDS[kind]}, got {_shown(value)}")
    return None


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of a NumPy archive (.npz) that `numpy.savez` or `savez_compressed` wrote.

    Numbers, booleans and text only: what would have to be unpickled is refused.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                _check_sizes(archive.infolist(), size)
                return {
                    member.filename.removesuffix(".npy"): _array(archive.read(member))
                    for member in archive.infolist()
                }
        except Exception as error:  # zipfile has no list of what it raises
            reason = str(error) or type(error).__name__
            raise UnreadableError(f"{path} is damaged or no NumPy archive: {reason}") from error


def _check_sizes(members: Sequence[zipfile.ZipInfo], size: int) -> None:
    """Refuse what says that it is larger than the file can hold, before room is made for it."""
    names = [member.filename for member in members]
    if len({*names}) < len(names):
        raise ValueError("a name occurs twice in it")
    if sum(member.compress_size for member in members) > size:
        raise ValueError("its parts overlap")
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("it is compressed in another way than NumPy does it")
        most = 1 if member.compress_type == zipfile.ZIP_STORED else DEFLATE
        if member.file_size > most * member.compress_size:
            raise ValueError(f"{member.filename} cannot hold {member.file_size} bytes")


def _array(data: bytes) -> npt.NDArray[Any]:
    """Return the array in the bytes of a .npy file."""
    if data[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError("an array in it is of another version than 1.0, or none")
    start = 10 + int.from_bytes(data[8:10], "little")
    header = _HEADER.fullmatch(data[10:start])
    if header is None:
        raise ValueError("an array in it is not of plain numbers or text")
    dtype = np.dtype(header[1].decode())
    shape = tuple(int(each) for each in header[3].split(b",") if each.strip())
    wanted = math.prod(shape) * dtype.itemsize
    if wanted != len(data) - start or not dtype.itemsize:
        raise ValueError(f"an array in it has {len(data) - start} bytes instead of {wanted}")
    order: Any = "F" if header[2] == b"True" else "C"
    found = np.ndarray(shape, dtype, bytearray(memoryview(data)[start:]), order=order)
    check_bytes(found, "an array in it")
    return found


def check_bytes(array: npt.NDArray[Any], name: str) -> None:
    """Refuse bytes that NumPy itself would never write, and relies on not to be there.

    A boolean is 0 or 1: others make it count wrongly, and then write beyond its memory. Text is
    made of characters: Python cannot show others.
    """
    if array.dtype.kind == "b" and np.any(array.view(np.uint8) > 1):
        raise UnreadableError(f"{name} has booleans that are neither true nor false")
    if array.dtype.kind == "U" and array.size:
        codes = array.reshape(-1).view(f"{array.dtype.str[0]}u4")
        if np.any((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))):
            raise UnreadableError(f"{name} has text of numbers that are no characters")


def check_arrays(
    arrays: Mapping[str, npt.NDArray[Any]], wanted: Mapping[str, tuple[str, tuple[int, ...]]],
    path: Path,
) -> None:  # fmt: skip
    """Refuse arrays that are missing or not of the `wanted` dtype and shape."""
    for name, (dtype, shape) in wanted.items():
        array = arrays.get(name)
        if array is None:
            raise UnreadableError(f"{path} has no array {name!r}")
        if array.dtype != np.dtype(dtype) or array.shape != shape:
            raise UnreadableError(
                f"{path}: {name} must be {dtype} of shape {list(shape)}, "
                f"got {array.dtype} of shape {list(array.shape)}"
            )


def _whole(text: str) -> int:
    number = int(text)
    if not -LARGEST < number < LARGEST:
        raise ValueError(f"the number {text[:20]}... is too large")
    return number


def _depth(content: Any) -> int:
    """Return how deep lists and objects are nested.

    It does so without recursion, which has a limit of its own.
    """
    depth, level = 0, [content]
    while level:
        inside = [each for each in level if isinstance(each, list | dict)]
        level = [each for outer in inside
                 for each in (outer.values() if isinstance(outer, dict) else outer)]  # fmt: skip
        depth += bool(inside)
    return depth


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
