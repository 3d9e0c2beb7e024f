"""Products with weights in int8 in compiled code. Each row of the other side is rounded to whole
numbers of 16 bits by a scale of its own, and these are cut into two bytes: of 8 bits, what models
say would change.

Sums of such products are exact, so a row gives the same numbers whatever stands beside it, and on
every processor: one with VNNI multiplies 64 pairs in one instruction, others take several.

    R: rows    n: inputs    m: outputs

A whole number is 256 (high - 128) + low with bytes that have no sign: a row of high bytes, then one
of low bytes. Weights are panels of PANEL outputs: of every FOUR inputs the four weights of each
output side by side. What the 128 adds to a sum, 128 times the sum of an output's weights, is taken
off where the sum begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import fast, part
from tmnmt.compiled.vectors import (
    FLOATS,
    LANES,
    Float32,
    Floats,
    broadcast,
    larger,
    largest,
    load,
    store,
    times,
    times_plus,
)

FOUR = 4  # inputs whose products are added at once
VECTORS = 4  # of LANES outputs in a panel
PANEL = VECTORS * LANES
HALVES = 2  # rows of bytes of a row
TOGETHER = 3  # rows that read a panel at once
ROWS_OF_BYTES = HALVES * TOGETHER  # of 8 bits a number, that read a panel at once
MAX_VALUE = 127.0 * 256  # of a whole number
SHIFT = 128 * 256
_ZERO, _NEGATIVE, _A_HIGH = np.float32(0.0), np.float32(-1.0), np.float32(256.0)
_A_HALF = np.float32(128.0)  # of 1 in the high byte
_MAX_VALUE, _SHIFT = np.float32(MAX_VALUE), SHIFT
_BYTE, _HALF, _INT = ir.IntType(8), ir.IntType(16), ir.IntType(32)
_INTS, _BYTES = ir.VectorType(_INT, LANES), ir.VectorType(_BYTE, LANES)
_HALVES = ir.VectorType(_HALF, 2 * LANES)
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
Bytes = NDArray[np.uint8]
Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]


def instructions() -> str:
    """How this processor multiplies bytes best: "avx512vnni", "avx512bw" or "plain"."""
    import llvmlite.binding as llvm

    features = cast("dict[str, bool]", llvm.get_host_cpu_features())
    return next((name for name in ("avx512vnni", "avx512bw") if features.get(name)), "plain")


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any, vector: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """An instruction of LLVM's."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cast(Any, cgutils).get_or_insert_function(builder.module, kind, name)
    return builder.call(function, arguments)


def _store_rounded(_: Any, array: Any, high: Any, low: Any, x: Any) -> Any:
    """The bytes of x, rounded to whole numbers: array[high:high + 16], array[low:low + 16]."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, high, low, numbers = arguments
        rounded = _call(builder, "llvm.rint.v16f32", _FLOATS, numbers)
        whole = builder.fptosi(rounded, _INTS)
        shifted = builder.add(whole, ir.Constant(_INTS, [_INT(SHIFT)] * LANES))
        high_bits = builder.lshr(shifted, ir.Constant(_INTS, [_INT(8)] * LANES))
        for index, bits in ((high, high_bits), (low, shifted)):
            pointer = _place(context, builder, signature.args[0], array, index, _BYTES)
            builder.store(builder.trunc(bits, _BYTES), pointer, align=1)

    return types.void(array, types.intp, types.intp, x), code


def _load_whole(_: Any, array: Any, index: Any) -> Any:
    """array[at:at + 16] of int32 as fp32."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index = arguments
        pointer = _place(context, builder, signature.args[0], array, index, _INTS)
        return builder.sitofp(builder.load(pointer, align=4), _FLOATS)

    return FLOATS(array, types.intp), code


def _halves(builder: Any, ints: Any, high: bool, signed: bool) -> Any:
    """Of every two bytes the low or the high one, as int16."""
    halves = builder.bitcast(ints, _HALVES)
    eight = ir.Constant(_HALVES, [_HALF(8)] * 2 * LANES)
    if not high:
        halves = builder.shl(halves, eight)
    return builder.ashr(halves, eight) if signed else builder.lshr(halves, eight)


def _four_more(how: str, builder: Any, sums: Any, x: Any, weights: Any) -> Any:
    """sums + the products of four bytes of x, without signs, with four weights, each (16,)."""
    if how == "avx512vnni":
        return _call(builder, "llvm.x86.avx512.vpdpbusd.512", _INTS, sums, x, weights)
    for high in (False, True):
        factors = [_halves(builder, ints, high, ints is weights) for ints in (x, weights)]
        if how == "avx512bw":
            products = _call(builder, "llvm.x86.avx512.pmaddw.d.512", _INTS, *factors)
            sums = builder.add(sums, products)
            continue
        sixteen = ir.Constant(_INTS, [_INT(16)] * LANES)
        whole = [builder.bitcast(halves, _INTS) for halves in factors]
        low = [builder.ashr(builder.shl(ints, sixteen), sixteen) for ints in whole]
        upper = [builder.ashr(ints, sixteen) for ints in whole]
        for pair in (low, upper):
            sums = builder.add(sums, builder.mul(*pair))
    return sums


def sums_of(rows: int, how: str) -> Any:
    """Compiled code that multiplies so many rows with a panel."""

    def kind(
        _: Any, x: Any, x_start: Any, w: Any, w_start: Any, fours: Any, s: Any, s_start: Any
    ) -> Any:
        """sums (`rows`, PANEL) int32 at s[to:], which hold what every sum begins with, plus the
        products of the rows of 4 `fours` bytes at x[at:] with the panel at w[there:]."""

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, x_start, w, w_start, fours, s, s_start = arguments
            of_x, of_w, of_s = (signature.args[i] for i in (0, 2, 5))
            size = fours.type

            def number(value: int) -> Any:
                return ir.Constant(size, value)

            def place_of_sum(row: int, vector: int) -> Any:
                offset = builder.add(s_start, number(row * PANEL + vector * LANES))
                return _place(context, builder, of_s, s, offset, _INTS)

            room_for = cast(Any, cgutils).alloca_once
            cells = [(row, vector) for row in range(rows) for vector in range(VECTORS)]
            sums = {cell: room_for(builder, _INTS) for cell in cells}
            for cell, sum_ in sums.items():
                builder.store(builder.load(place_of_sum(*cell), align=4), sum_)
            a_row = builder.mul(fours, number(FOUR))
            with cgutils.for_range(builder, fours) as loop:
                panel = builder.add(w_start, builder.mul(loop.index, number(FOUR * PANEL)))
                weights = [
                    builder.load(
                        _place(
                            context,
                            builder,
                            of_w,
                            w,
                            builder.add(panel, number(vector * FOUR * LANES)),
                            _INTS,
                        ),
                        align=4,
                    )
                    for vector in range(VECTORS)
                ]
                four = builder.add(x_start, builder.mul(loop.index, number(FOUR)))
                for row in range(rows):
                    begin = builder.add(four, builder.mul(a_row, number(row)))
                    pointer = _place(context, builder, of_x, x, begin, _INT)
                    first_lane = builder.insert_element(
                        ir.Constant(_INTS, ir.Undefined), builder.load(pointer, align=4), _INT(0)
                    )
                    repeated = builder.shuffle_vector(
                        first_lane, first_lane, ir.Constant(_INTS, [0] * LANES)
                    )
                    for vector in range(VECTORS):
                        sum_ = sums[row, vector]
                        so_far = builder.load(sum_)
                        new_sum = _four_more(how, builder, so_far, repeated, weights[vector])
                        builder.store(new_sum, sum_)
            for cell, sum_ in sums.items():
                builder.store(builder.load(sum_), place_of_sum(*cell), align=4)
            return context.get_dummy_value()

        place = types.intp
        return types.void(x, place, w, place, place, s, place), code

    return kind


Sums = Callable[[Bytes, int, Int8, int, int, Int32, int], None]
store_rounded = cast(Callable[[Bytes, int, int, Floats], None], intrinsic(_store_rounded))
load_whole = cast(Callable[[Int32, int], Floats], intrinsic(_load_whole))
_HOW = instructions()
_sums_of_byte_row = cast(Sums, intrinsic(sums_of(1, _HOW)))
_sums_of_row = cast(Sums, intrinsic(sums_of(HALVES, _HOW)))
_sums_of_together = cast(Sums, intrinsic(sums_of(ROWS_OF_BYTES, _HOW)))


@fast
def _largest_of(x: Float32, start: int, size: int) -> np.float32:
    """The largest number of x[at:at + size], whatever its sign."""
    whole_lanes = size & -LANES
    maximum = _ZERO
    if whole_lanes:
        mosts, negative = broadcast(_ZERO), broadcast(_NEGATIVE)
        for i in range(start, start + whole_lanes, LANES):
            numbers = load(x, i)
            mosts = larger(mosts, larger(numbers, times(numbers, negative)))
        maximum = largest(mosts)
    for i in range(start + whole_lanes, start + size):
        maximum = max(maximum, max(x[i], -x[i]))
    return maximum


@fast
def _round_row(
    x: Float32, start: int, size: int, row_bytes: Bytes, bytes_start: int, stride: int
) -> np.float32:
    """Writes x[start:start + size] as bytes: the high ones to row_bytes[bytes_start:bytes_start +
    stride], the low ones behind them. Returns what 1 is worth among its whole numbers."""
    whole_lanes = size & -LANES
    maximum = _largest_of(x, start, size)
    factor = _MAX_VALUE / maximum if maximum > _ZERO else _ZERO
    factors = broadcast(factor)
    for i in range(0, whole_lanes, LANES):
        store_rounded(
            row_bytes, bytes_start + i, bytes_start + stride + i, times(load(x, start + i), factors)
        )
    for i in range(whole_lanes, stride):
        number = x[start + i] * factor if i < size else _ZERO
        shifted = np.int32(np.rint(number)) + _SHIFT
        row_bytes[bytes_start + i] = np.uint8(shifted >> 8)
        row_bytes[bytes_start + stride + i] = np.uint8(shifted & 255)
    return maximum / _MAX_VALUE


@fast
def _round_row_to_bytes(
    x: Float32, start: int, size: int, row_bytes: Bytes, bytes_start: int, stride: int, spare: int
) -> np.float32:
    """Writes x[start:start + size] to row_bytes[bytes_start:bytes_start + stride], a byte each,
    which is 128 more than the whole number; row_bytes[spare:spare + LANES] is overwritten. Returns
    what 1 is worth among these numbers."""
    whole_lanes = size & -LANES
    maximum = _largest_of(x, start, size)
    factor = _MAX_VALUE / maximum if maximum > _ZERO else _ZERO
    factors, halves = broadcast(factor), broadcast(_A_HALF)
    for i in range(0, whole_lanes, LANES):
        store_rounded(
            row_bytes, bytes_start + i, spare, times_plus(load(x, start + i), factors, halves)
        )
    for i in range(whole_lanes, stride):
        number = x[start + i] * factor if i < size else _ZERO
        row_bytes[bytes_start + i] = np.uint8((np.int32(np.rint(number + _A_HALF)) + _SHIFT) >> 8)
    return maximum / _MAX_VALUE * _A_HIGH


@part
def multiply(
    x: Float32,
    rows: int,
    inputs: int,
    weights_at: int,
    begins_at: int,
    scales_at: int,
    bias_at: int,
    outputs: int,
    positive: int,
    in_bytes: int,
    room_at: int,
    product: Float32,
) -> None:
    """product (R, m): x (R, n) W^T + b, or its positive part where `positive` is 1. Where
    `in_bytes` is 1, each row is rounded to whole numbers of 8 bits, and it takes half of the time.

    weights: the panels, int8. begins (panels, PANEL) int32: what sums begin with; scales and bias
    (m,). room: ROWS_OF_BYTES panels of int32, R fp32, HALVES R FOUR ceil(n / FOUR) bytes."""
    stride = (inputs + FOUR - 1) // FOUR * FOUR
    panels = (outputs + PANEL - 1) // PANEL
    halves = 1 if in_bytes else HALVES
    most = ROWS_OF_BYTES // halves
    worths_at = room_at + 4 * ROWS_OF_BYTES * PANEL
    sums = array_of(room_at, ROWS_OF_BYTES * PANEL, np.int32)
    worths = array_of(worths_at, rows, np.float32)
    whole = array_of(worths_at + 4 * rows, HALVES * rows * stride, np.uint8)
    weights = array_of(weights_at, panels * stride * PANEL, np.int8)
    begins = array_of(begins_at, panels * PANEL, np.int32)
    scales, bias = (
        array_of(scales_at, outputs, np.float32),
        array_of(bias_at, outputs, np.float32),
    )
    for row in range(rows):
        row_start = halves * row * stride
        if in_bytes:
            spare = rows * stride
            worths[row] = _round_row_to_bytes(
                x, row * inputs, inputs, whole, row_start, stride, spare
            )
        else:
            worths[row] = _round_row(x, row * inputs, inputs, whole, row_start, stride)
    for panel in range(panels):
        first, panel_start = panel * PANEL, panel * PANEL * stride
        width = min(PANEL, outputs - first)
        row = 0
        while row < rows:
            together = most if row + most <= rows else 1
            for r in range(0, together * halves * PANEL, halves * PANEL):
                for i in range(PANEL):
                    sums[r + i] = begins[first + i]
                for i in range(PANEL, halves * PANEL):
                    sums[r + i] = 0
            row_start, fours = halves * row * stride, stride // FOUR
            if together == most:
                _sums_of_together(whole, row_start, weights, panel_start, fours, sums, 0)
            elif in_bytes:
                _sums_of_byte_row(whole, row_start, weights, panel_start, fours, sums, 0)
            else:
                _sums_of_row(whole, row_start, weights, panel_start, fours, sums, 0)
            for r in range(together):
                product_start, of_row = (row + r) * outputs + first, halves * r * PANEL
                worth = worths[row + r]
                _write(
                    sums,
                    of_row,
                    halves,
                    worth,
                    scales,
                    bias,
                    first,
                    width,
                    positive,
                    product,
                    product_start,
                )
            row += together


@fast
def _write(
    sums: Int32,
    sums_start: int,
    halves: int,
    worth: np.float32,
    scales: Float32,
    bias: Float32,
    first: int,
    width: int,
    positive: int,
    product: Float32,
    product_start: int,
) -> None:
    """product[product_start:product_start + width]: sums of a panel whose first output is `first`,
    as fp32: of one row of bytes, or of the high ones and then the low ones."""
    whole_lanes = width & -LANES
    worths, zeros, a_high = broadcast(worth), broadcast(_ZERO), broadcast(_A_HIGH)
    for i in range(0, whole_lanes, LANES):
        of_weights = times(load(scales, first + i), worths)
        whole = load_whole(sums, sums_start + i)
        if halves == HALVES:
            whole = times_plus(whole, a_high, load_whole(sums, sums_start + PANEL + i))
        values = times_plus(whole, of_weights, load(bias, first + i))
        store(product, product_start + i, larger(values, zeros) if positive else values)
    for i in range(whole_lanes, width):
        number = np.float32(sums[sums_start + i])
        if halves == HALVES:
            number = number * _A_HIGH + np.float32(sums[sums_start + PANEL + i])
        # by the operations of a vector, so that an output is the same wherever it stands
        of_weight = times(broadcast(scales[first + i]), worths)
        value = largest(times_plus(broadcast(number), of_weight, broadcast(bias[first + i])))
        product[product_start + i] = max(value, _ZERO) if positive else value


def product_int8(
    x_at: int,
    rows: int,
    inputs: int,
    weights_at: int,
    begins_at: int,
    scales_at: int,
    bias_at: int,
    outputs: int,
    positive: int,
    room_at: int,
    out_at: int,
    in_bytes: int,
) -> int:
    """`multiply` of an address for every array."""
    x = array_of(x_at, rows * inputs, np.float32)
    product = array_of(out_at, rows * outputs, np.float32)
    multiply(
        x,
        rows,
        inputs,
        weights_at,
        begins_at,
        scales_at,
        bias_at,
        outputs,
        positive,
        in_bytes,
        room_at,
        product,
    )
    return 0


def pack_panels(
    weights_at: int, rows_at: int, outputs: int, inputs: int, panels_at: int, begins_at: int
) -> int:
    """Panels and what their sums begin with, of the rows (m,) int64 of a matrix of int8 with n
    columns."""
    stride = (inputs + FOUR - 1) // FOUR * FOUR
    size = (outputs + PANEL - 1) // PANEL * PANEL
    rows = array_of(rows_at, outputs, np.int64)
    panels = array_of(panels_at, size * stride, np.int8)
    begins = array_of(begins_at, size, np.int32)
    for output in range(size):
        first, lane = output // PANEL * PANEL * stride, output % PANEL * FOUR
        total = np.int32(0)
        if output < outputs:
            source = array_of(weights_at + inputs * rows[output], inputs, np.int8)
            for i in range(inputs):
                panels[first + i // FOUR * FOUR * PANEL + lane + i % FOUR] = source[i]
                total += np.int32(source[i])
        for i in range(inputs if output < outputs else 0, stride):
            panels[first + i // FOUR * FOUR * PANEL + lane + i % FOUR] = 0
        begins[output] = -128 * total
    return 0
