"""How this package compiles its loops: one decorator, and two primitives that Numba lacks."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile on first use, keep the result on disk, release the interpreter lock while running."""
    try:
        return cast(F, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # there is no place to keep it: a read-only installation without a home
        return cast(F, numba.njit(nogil=True)(function))


def forget_stale_results(folder: Path) -> None:
    """Remove kept results that are older than any source file of `folder`.

    Numba renews the result of a function when the file of that function changes, but not when it
    calls one of another file, and that one changes.
    """
    newest = max(source.stat().st_mtime for source in folder.glob("*.py"))
    for kept in (folder / "__pycache__").glob("*.nb[ic]"):
        with contextlib.suppress(OSError):  # read-only, or removed by another process just now
            if kept.stat().st_mtime < newest:
                kept.unlink()


forget_stale_results(Path(__file__).parent)


def _copy_bytes(_context: Any, _target: Any, _source: Any, _count: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        target, source, count = arguments
        target = builder.inttoptr(target, cgutils.voidptr_t)
        source = builder.inttoptr(source, cgutils.voidptr_t)
        memcpy: Any = cgutils.raw_memcpy
        memcpy(builder, target, source, count, 1)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.uintp), generate


# memcpy(target address, source address, bytes): lets compiled code copy from many separate blocks.
copy_bytes: Any = intrinsic(_copy_bytes)


def _sum_of_eight(_context: Any, table: Any, _row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        row = builder.mul(arguments[1], ir.Constant(arguments[1].type, 8))
        eight = ir.VectorType(ir.DoubleType(), 8).as_pointer()
        value = builder.load(builder.bitcast(builder.gep(data, [row]), eight))
        value.align = 8
        for half in (4, 2, 1):
            lanes = ir.VectorType(ir.IntType(32), half)
            rest = ir.Constant(value.type, ir.Undefined)
            low = builder.shuffle_vector(value, rest, ir.Constant(lanes, list(range(half))))
            high = builder.shuffle_vector(
                value, rest, ir.Constant(lanes, list(range(half, 2 * half)))
            )
            value = builder.fadd(low, high)
        return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

    return types.float64(table, types.uintp), generate


# The sum of one row of a float64 table [rows, 8], by halves: the same order of additions on every
# machine, but done with vector instructions, which Numba does not find by itself.
sum_of_eight: Any = intrinsic(_sum_of_eight)
