"""512 bits as one value of compiled code: numba itself knows no vectors.

A `Lanes` lives in one register of the processor, or in as many as 512 bits take; &, | and ^ work on
all bits at once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import intrinsic, overload, register_model
from numpy.typing import NDArray

UInt8 = NDArray[np.uint8]
UInt64 = NDArray[np.uint64]
Lanes = Any
BLOCK = 512  # bits
WORDS = BLOCK // 64


class _LanesType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Lanes")


_LANES = _LanesType()
_VECTOR = ir.VectorType(ir.IntType(64), WORDS)
BYTES = BLOCK // 8
_BYTES = ir.VectorType(ir.IntType(8), BYTES)


class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


register_model(_LanesType)(_LanesModel)


def _vector_at(context: Any, builder: Any, kind: Any, array: Any, word: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [word]), _VECTOR.as_pointer())


def _load(_: Any, array: Any, word: Any) -> Any:
    """512 bits of a contiguous array of uint64, from its item number `word` on, whatever its
    shape."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_vector_at(context, builder, signature.args[0], *arguments), align=8)

    return _LANES(array, types.intp), code


def _store(_: Any, array: Any, word: Any, lanes: Any) -> Any:
    """Puts 512 bits where `load` gets them from."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(
            arguments[2], _vector_at(context, builder, signature.args[0], *arguments[:2]), align=8
        )

    return types.void(array, types.intp, lanes), code


def _prefetch(_: Any, array: Any, word: Any) -> Any:
    """Asks the processor for 512 bits that `load` may want later; where there are none, nothing
    happens."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        place = builder.bitcast(_vector_at(context, builder, signature.args[0], *arguments), byte)
        access, nearest, data = (
            ir.Constant(number, 0),
            ir.Constant(number, 3),
            ir.Constant(number, 1),
        )
        builder.call(prefetch, [place, access, nearest, data])

    return types.void(array, types.intp), code


def _nonzero(_: Any, lanes: Any) -> Any:
    """Whether any of the 512 bits is set."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = builder.bitcast(arguments[0], ir.IntType(BLOCK))
        return builder.icmp_unsigned("!=", whole, ir.Constant(ir.IntType(BLOCK), 0))

    return types.boolean(lanes), code


def _repeat(_: Any, word: Any) -> Any:
    """The same 64 bits eight times."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = ir.Constant(_VECTOR, ir.Undefined)
        for place in range(WORDS):
            lanes = builder.insert_element(lanes, arguments[0], ir.Constant(ir.IntType(32), place))
        return lanes

    return _LANES(types.uint64), code


def _lowest(_: Any, word: Any) -> Any:
    """The number of the lowest bit that is set in a word that is not 0."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), code


def _bytes_at(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    address = builder.bitcast(builder.gep(data, [place]), _BYTES.as_pointer())
    return builder.load(address, align=8)


def _bits_of(_: Any, numbers: Any, place: Any, bit: Any) -> Any:
    """Of 64 bytes one bit each, the first one lowest."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8), builder.trunc(arguments[2], ir.IntType(8))
        mask, masks = builder.shl(ir.Constant(byte, 1), number), ir.Constant(_BYTES, ir.Undefined)
        masks = builder.insert_element(masks, mask, ir.Constant(ir.IntType(32), 0))
        order = ir.Constant(ir.VectorType(ir.IntType(32), BYTES), [0] * BYTES)
        masks = builder.shuffle_vector(masks, ir.Constant(_BYTES, ir.Undefined), order)
        content = _bytes_at(context, builder, signature.args[0], *arguments[:2])
        zeros = ir.Constant(_BYTES, [0] * BYTES)
        has = builder.icmp_unsigned("!=", builder.and_(content, masks), zeros)
        return builder.bitcast(has, ir.IntType(64))

    return types.uint64(numbers, types.intp, types.intp), code


def _most_of(_: Any, numbers: Any, place: Any) -> Any:
    """The greatest of 512 bytes."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, place = arguments
        maximum = None
        for word in range(WORDS):
            further = builder.add(place, ir.Constant(ir.IntType(64), BYTES * word))
            content = _bytes_at(context, builder, signature.args[0], array, further)
            if maximum is None:
                maximum = content
            else:
                maximum = builder.select(
                    builder.icmp_unsigned(">", content, maximum), content, maximum
                )
        kind = ir.FunctionType(ir.IntType(8), [_BYTES])
        name = f"llvm.vector.reduce.umax.v{BYTES}i8"  # which llvmlite cannot name
        insert = cast(Any, cgutils).get_or_insert_function
        reduce = insert(builder.module, kind, name)
        return builder.zext(builder.call(reduce, [maximum]), ir.IntType(64))

    return types.int64(numbers, types.intp), code


load = cast(Callable[[UInt64, int], Lanes], intrinsic(_load))
store = cast(Callable[[UInt64, int, Lanes], None], intrinsic(_store))
repeat = cast(Callable[[np.uint64], Lanes], intrinsic(_repeat))
prefetch = cast(Callable[[UInt64, int], None], intrinsic(_prefetch))
bits_of = cast(Callable[[UInt8, int, int], np.uint64], intrinsic(_bits_of))
most_of = cast(Callable[[UInt8, int], int], intrinsic(_most_of))
any_set = cast(Callable[[Lanes], bool], intrinsic(_nonzero))
lowest_set = cast(Callable[[np.uint64], int], intrinsic(_lowest))


def _bitwise(operation: Callable[[Any, Any], Any], instruction: str) -> None:
    def on_lanes(_: Any, x: Any, y: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, instruction)(*arguments)

        return _LANES(x, y), code

    calculate = cast(Callable[[Any, Any], Any], intrinsic(on_lanes))

    def implementation(x: Any, y: Any) -> Any:
        return calculate(x, y)

    def select(x: Any, y: Any) -> Any:
        return implementation if x is _LANES and y is _LANES else None

    overload(operation)(select)


_bitwise(operator.and_, "and_")
_bitwise(operator.or_, "or_")
_bitwise(operator.xor, "xor")
