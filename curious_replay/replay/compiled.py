"""How this package compiles its loops: one decorator, and four primitives that Numba lacks."""

from collections.abc import Callable
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


def _copy_bytes(_context: Any, _target: Any, _source: Any, _count: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        target, source, count = arguments
        target = builder.inttoptr(target, cgutils.voidptr_t)
        source = builder.inttoptr(source, cgutils.voidptr_t)
        memcpy: Any = cgutils.raw_memcpy
        memcpy(builder, target, source, count, 1)
        return context.get_dummy_value()

    return types.void(types.uintp, types.uintp, types.uintp), generate


copy_bytes: Any = intrinsic(_copy_bytes)
"""memcpy(target address, source address, bytes): lets compiled code copy from many separate blocks.

With a Python loop of copies, a batch of 16 x 64 steps takes 1.2 times as long to draw where steps
have images of 64 x 64, and 5 times where they have none.
"""


_EIGHT = ir.VectorType(ir.DoubleType(), 8)
_EIGHT_INTS = ir.VectorType(ir.IntType(64), 8)


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Return a pointer to number `index` of a contiguous array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


def _row(context: Any, builder: Any, kind: Any, table: Any, row: Any) -> Any:
    """Return a pointer to row `row` of a table [rows, 8]."""
    return _place(context, builder, kind, table, builder.mul(row, ir.Constant(row.type, 8)))


def _load(builder: Any, pointer: Any, kind: Any) -> Any:
    """Load eight numbers at once."""
    value = builder.load(builder.bitcast(pointer, kind.as_pointer()))
    value.align = 8
    return value


def _all_lanes(builder: Any, value: Any, kind: Any) -> Any:
    """Return a vector of eight times `value`."""
    unset = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(unset, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        one, unset, ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
    )


def _sum_of_eight(_context: Any, table: Any, _row_number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = _load(builder, _row(context, builder, signature.args[0], *arguments), _EIGHT)
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


sum_of_eight: Any = intrinsic(_sum_of_eight)
"""The sum of one row of a float64 table [rows, 8], by halves.

It has the same order of additions on every machine, but is done with vector instructions, which
Numba does not find by itself: written out, 1,024 random leaves of a million take 1.4 times as long
to set, and 16 runs of 64 leaves 1.1 times.
"""


def _set_eight(
    _context: Any, target: Any, _at: Any, indices: Any, values: Any, _i: Any, _most: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds, (target, at, indices, values, i, most) = signature.args, arguments
        index = _load(builder, _place(context, builder, kinds[2], indices, i), _EIGHT_INTS)
        value = _load(builder, _place(context, builder, kinds[3], values, i), _EIGHT)
        first = builder.extract_element(index, ir.Constant(ir.IntType(32), 0))
        run = builder.add(
            _all_lanes(builder, first, _EIGHT_INTS), ir.Constant(_EIGHT_INTS, list(range(8)))
        )
        fit = builder.icmp_signed("==", index, run)
        fit = builder.and_(fit, builder.fcmp_ordered(">=", value, ir.Constant(_EIGHT, [0.0] * 8)))
        most = _all_lanes(builder, most, _EIGHT)
        fit = builder.and_(fit, builder.fcmp_ordered("<=", value, most))
        bits = builder.bitcast(fit, ir.IntType(8))
        all_fit = builder.icmp_signed("==", bits, ir.Constant(bits.type, -1))
        with builder.if_then(all_fit):
            place = _place(context, builder, kinds[0], target, at)
            builder.store(value, builder.bitcast(place, _EIGHT.as_pointer())).align = 8
        return all_fit

    def refuse(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
        return cgutils.false_bit

    as_is = indices.dtype == types.int64 and values.dtype == types.float64
    contiguous = indices.layout == values.layout == "C"
    signature = types.boolean(target, types.uintp, indices, values, types.uintp, types.float64)
    return signature, generate if as_is and contiguous else refuse


set_eight: Any = intrinsic(_set_eight)
"""set_eight(target, at, indices, values, i, most): set eight leaves that lie side by side.

If indices[i : i + 8] follow one another and values[i : i + 8] are all from 0 to most, let
target[at : at + 8] be these values and return True, else False. It is always False where the arrays
are not contiguous int64 and float64. One by one, 16 runs of 64 leaves of a million take 1.4 times
as long to set, and 1.8 times without `sum_of_eight` either.
"""


def _prefetch(_context: Any, table: Any, _row_number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = cgutils.voidptr_t, ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        place = _row(context, builder, signature.args[0], *arguments)
        options = [ir.Constant(number, option) for option in (0, 3, 1)]  # to read, keep, data
        builder.call(fetch, [builder.bitcast(place, byte), *options])
        return context.get_dummy_value()

    return types.void(table, types.uintp), generate


prefetch: Any = intrinsic(_prefetch)
"""Begin to bring one row of a table [rows, 8] into the cache, without waiting; it need not exist.

Without it 1,024 draws from a million leaves take 1.6 times as long, and 16 draws 1.2 times.
"""
