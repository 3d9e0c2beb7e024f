"""Numbers of fp32 in compiled code: sixteen of them as one value, exponentials, logarithms and
products of vectors.

Numba itself knows no vectors. `Floats` live in one register of the processor, or in as many as 512
bits take. Sums may be made in any order (`fast`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model
from numpy.typing import NDArray

from tmnmt.compiled.compiling import fast, part

Float32 = NDArray[np.float32]
_LOG2_E = np.float32(1.4426950408889634)
_MIN_EXPONENT = np.float32(-126.0)  # of two's exponents
_HALF = np.float32(0.5)
# 2^f for f in [-1/2, 1/2], by the least greatest relative error (2e-9)
_POWERS = tuple(
    np.float32(x)
    for x in (
        1.0,
        0.6931471805599453,
        0.2402265069591007,
        0.05550410866482158,
        0.009618129107628477,
        0.0013333558146428443,
        0.00015403530393381608,
    )
)
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = _POWERS
_ZERO = np.float32(0.0)
LANES = 16
FOUR = 4
_FLOAT, _INT = ir.FloatType(), ir.IntType(32)
_VECTOR, _INTS = ir.VectorType(_FLOAT, LANES), ir.VectorType(_INT, LANES)
_FOURS = ir.VectorType(_FLOAT, FOUR)
Floats = Any


class _FloatsType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Floats")


FLOATS = _FloatsType()


class _FloatsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


register_model(_FloatsType)(_FloatsModel)


def _vector_pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


def _load(_: Any, array: Any, index: Any) -> Any:
    """array[at:at + 16]"""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(
            _vector_pointer(context, builder, signature.args[0], *arguments), align=4
        )

    return FLOATS(array, types.intp), code


def _store(_: Any, array: Any, index: Any, x: Any) -> Any:
    """array[at:at + 16] = x"""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(
            arguments[2],
            _vector_pointer(context, builder, signature.args[0], *arguments[:2]),
            align=4,
        )

    return types.void(array, types.intp, x), code


def _broadcast(_: Any, number: Any) -> Any:
    """The same number sixteen times."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first_lane = builder.insert_element(
            ir.Constant(_VECTOR, ir.Undefined), arguments[0], _INT(0)
        )
        return builder.shuffle_vector(first_lane, first_lane, ir.Constant(_INTS, [0] * LANES))

    return FLOATS(types.float32), code


def _load_one(_: Any, array: Any, index: Any) -> Any:
    """array[index] sixteen times. An index is never counted from the end, which numba would look at
    every time."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index = arguments
        data = context.make_array(signature.args[0])(context, builder, array).data
        number = builder.load(builder.gep(data, [index]), align=4)
        first_lane = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number, _INT(0))
        return builder.shuffle_vector(first_lane, first_lane, ir.Constant(_INTS, [0] * LANES))

    return FLOATS(array, types.intp), code


def _add(_: Any, x: Any, y: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments)

    return FLOATS(x, y), code


def _times(_: Any, x: Any, y: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fmul(*arguments)

    return FLOATS(x, y), code


def _times_plus(_: Any, x: Any, y: Any, z: Any) -> Any:
    """x y + z"""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        product = builder.fmul(arguments[0], arguments[1], flags=("contract",))
        return builder.fadd(product, arguments[2], flags=("contract",))

    return FLOATS(x, y, z), code


def _larger(_: Any, x: Any, y: Any) -> Any:
    """Of every two numbers the larger."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        is_larger = builder.fcmp_ordered(">", *arguments, flags=("nnan", "nsz"))
        return builder.select(is_larger, *arguments)

    return FLOATS(x, y), code


def _halved(combine: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any, Any], Any]:
    """All sixteen numbers made one, by halves."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, lanes = arguments[0], LANES
        while lanes > 1:
            lanes //= 2
            undefined = ir.Constant(value.type, ir.Undefined)
            low, high = (
                builder.shuffle_vector(
                    value,
                    undefined,
                    ir.Constant(ir.VectorType(_INT, lanes), list(range(begin, begin + lanes))),
                )
                for begin in (0, lanes)
            )
            value = combine(builder, low, high)
        return builder.extract_element(value, _INT(0))

    return code


def _total(_: Any, x: Any) -> Any:
    """The sum of the sixteen."""
    return types.float32(x), _halved(lambda builder, low, high: builder.fadd(low, high))


def _largest(_: Any, x: Any) -> Any:
    """Of the sixteen."""

    def larger(builder: Any, low: Any, high: Any) -> Any:
        is_larger = builder.fcmp_ordered(">", low, high, flags=("nnan", "nsz"))
        return builder.select(is_larger, low, high)

    return types.float32(x), _halved(larger)


def _exp16(_: Any, x: Any) -> Any:
    """e^x of numbers x <= 0, to 2e-7 and |x| times 6e-8 of itself; below 2^-126 it is that."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def numbers(number: float | np.float32) -> Any:
            return ir.Constant(_VECTOR, [ir.Constant(_FLOAT, float(np.float32(number)))] * LANES)

        def plus(x: Any, y: Any, z: Any) -> Any:
            product = builder.fmul(x, y, flags=("contract",))
            return builder.fadd(product, z, flags=("contract",))

        t = builder.fmul(arguments[0], numbers(_LOG2_E))
        is_larger = builder.fcmp_ordered(">", t, numbers(_MIN_EXPONENT), flags=("nnan", "nsz"))
        t = builder.select(is_larger, t, numbers(_MIN_EXPONENT))
        # the next whole number, since t <= 0
        n = builder.fptosi(builder.fsub(t, numbers(0.5)), _INTS)
        f = builder.fsub(t, builder.sitofp(n, _VECTOR))
        power = numbers(_POWERS[-1])
        for factor in _POWERS[-2::-1]:
            power = plus(power, f, numbers(factor))
        exponent = builder.add(n, ir.Constant(_INTS, [_INT(127)] * LANES))
        shifted = builder.shl(exponent, ir.Constant(_INTS, [_INT(23)] * LANES))
        return builder.fmul(power, builder.bitcast(shifted, _VECTOR))

    return FLOATS(x), code


def _log16(_: Any, x: Any) -> Any:
    """log x of numbers x >= 2^-126, to 2e-7."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def numbers(number: float | np.float32) -> Any:
            return ir.Constant(_VECTOR, [ir.Constant(_FLOAT, float(np.float32(number)))] * LANES)

        def ints(number: int) -> Any:
            return ir.Constant(_INTS, [_INT(number)] * LANES)

        bits = builder.bitcast(arguments[0], _INTS)
        # x = 2^n m with m in [1/sqrt 2, sqrt 2)
        shifted = builder.add(bits, ints(0x3F800000 - 0x3F3504F3))
        n = builder.sub(builder.ashr(shifted, ints(23)), ints(127))
        m = builder.bitcast(builder.sub(bits, builder.shl(n, ints(23))), _VECTOR)
        z = builder.fdiv(builder.fsub(m, numbers(1)), builder.fadd(m, numbers(1)))
        square = builder.fmul(z, z)  # log m = 2 artanh z, |z| < 0.172
        series = numbers(1 / 9)
        for odd in (7, 5, 3, 1):
            series = builder.fadd(
                builder.fmul(series, square, flags=("contract",)),
                numbers(1 / odd),
                flags=("contract",),
            )
        of_m = builder.fmul(builder.fmul(z, numbers(2)), series)
        of_two = builder.fmul(builder.sitofp(n, _VECTOR), numbers(math.log(2)))
        return builder.fadd(of_two, of_m)

    return FLOATS(x), code


def _products_of(rows: int) -> Any:
    """Compiled code for so many rows; x and y are read once for FOUR products each."""

    def kind(
        _: Any,
        x: Any,
        x_start: Any,
        y: Any,
        y_start: Any,
        size: Any,
        output: Any,
        output_start: Any,
        step: Any,
    ) -> Any:
        """output[output_start + r step + k] = x[x_start + r size:][:size] y[y_start + k
        size:][:size] of every row r and k < FOUR; size: a multiple of 16."""

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, x_start, y, y_start, size, output, output_start, step = arguments
            of_x, of_y, of_out = (signature.args[i] for i in (0, 2, 5))
            room_for = cast(Any, cgutils).alloca_once
            sums = [room_for(builder, _VECTOR) for _ in range(rows * FOUR)]
            for sum_ in sums:
                builder.store(ir.Constant(_VECTOR, None), sum_)

            def part(kind: Any, array: Any, begin: Any, row: int, offset: Any) -> Any:
                place = builder.add(begin, builder.mul(size, ir.Constant(size.type, row)))
                pointer = _vector_pointer(context, builder, kind, array, builder.add(place, offset))
                return builder.load(pointer, align=4)

            lanes = ir.Constant(size.type, LANES)
            with cgutils.for_range(builder, builder.sdiv(size, lanes)) as loop:
                offset = builder.mul(loop.index, lanes)
                ys = [part(of_y, y, y_start, k, offset) for k in range(FOUR)]
                for row in range(rows):
                    numbers = part(of_x, x, x_start, row, offset)
                    for k, sum_ in enumerate(sums[row * FOUR : (row + 1) * FOUR]):
                        product = builder.fmul(numbers, ys[k], flags=("contract",))
                        new_sum = builder.fadd(product, builder.load(sum_), flags=("contract",))
                        builder.store(new_sum, sum_)
            for row in range(rows):
                four = [builder.load(sum_) for sum_ in sums[row * FOUR : (row + 1) * FOUR]]
                place = builder.add(output_start, builder.mul(step, ir.Constant(step.type, row)))
                data = context.make_array(of_out)(context, builder, output).data
                pointer = builder.bitcast(builder.gep(data, [place]), _FOURS.as_pointer())
                builder.store(_four_totals(builder, four), pointer, align=4)
            return context.get_dummy_value()

        place = types.intp
        return types.void(x, place, y, place, place, output, place, place), code

    return kind


def _four_totals(builder: Any, four: list[Any]) -> Any:
    """The sums of four times sixteen numbers, by halves: each step adds two halves of what the
    step before made, of all four at once."""

    def halves(x: Any, y: Any, piece: int) -> Any:
        """The sums of neighbouring pieces of x and then y."""
        pieces = range(0, 2 * LANES if y is not None else x.type.count, 2 * piece)
        low = [begin + i for begin in pieces for i in range(piece)]
        right = y if y is not None else ir.Constant(x.type, ir.Undefined)
        shuffled = (
            builder.shuffle_vector(x, right, ir.Constant(ir.VectorType(_INT, len(low)), places))
            for places in (low, [i + piece for i in low])
        )
        return builder.fadd(*shuffled)

    first, second = halves(four[0], four[1], 8), halves(four[2], four[3], 8)
    return halves(halves(halves(first, second, 4), None, 2), None, 1)


load = cast(Callable[[Float32, int], Floats], intrinsic(_load))
store = cast(Callable[[Float32, int, Floats], None], intrinsic(_store))
load_one = cast(Callable[[Float32, int], Floats], intrinsic(_load_one))
broadcast = cast(Callable[[np.float32], Floats], intrinsic(_broadcast))
add = cast(Callable[[Floats, Floats], Floats], intrinsic(_add))
times = cast(Callable[[Floats, Floats], Floats], intrinsic(_times))
times_plus = cast(Callable[[Floats, Floats, Floats], Floats], intrinsic(_times_plus))
larger = cast(Callable[[Floats, Floats], Floats], intrinsic(_larger))
total = cast(Callable[[Floats], np.float32], intrinsic(_total))
largest = cast(Callable[[Floats], np.float32], intrinsic(_largest))
Products = Callable[[Float32, int, Float32, int, int, Float32, int, int], None]
products_of_5 = cast(Products, intrinsic(_products_of(5)))
products_of_2 = cast(Products, intrinsic(_products_of(2)))
products_of_1 = cast(Products, intrinsic(_products_of(1)))
log16 = cast(Callable[[Floats], Floats], intrinsic(_log16))
exp16 = cast(Callable[[Floats], Floats], intrinsic(_exp16))


def _whole(_: Any, x: Any) -> Any:
    """The whole number next to x towards 0, as fp32."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sitofp(builder.fptosi(arguments[0], ir.IntType(32)), ir.FloatType())

    return types.float32(types.float32), code


def _two_to(_: Any, whole: Any) -> Any:
    """2^n of a whole number n in [-126, 127], as fp32."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.IntType(32)
        exponent = builder.add(builder.fptosi(arguments[0], kind), ir.Constant(kind, 127))
        return builder.bitcast(builder.shl(exponent, ir.Constant(kind, 23)), ir.FloatType())

    return types.float32(types.float32), code


whole = cast(Callable[[np.float32], np.float32], intrinsic(_whole))
two_to = cast(Callable[[np.float32], np.float32], intrinsic(_two_to))


@fast
def exp(x: np.float32) -> np.float32:
    """e^x of x <= 0, to 2e-7 and |x| times 6e-8 of itself; below 2^-126 it is that."""
    t = x * _LOG2_E
    t = t if t > _MIN_EXPONENT else _MIN_EXPONENT
    n = whole(t - _HALF)  # the next whole number, since t <= 0
    f = t - n
    power = _C6
    power = power * f + _C5
    power = power * f + _C4
    power = power * f + _C3
    power = power * f + _C2
    power = power * f + _C1
    power = power * f + _C0
    return power * two_to(n)


@fast
def log(x: float) -> float:
    """The natural logarithm of x > 0 in fp64, to 1e-12."""
    halvings = 0.0
    while x >= 1.5:
        x *= 0.5
        halvings += 1.0
    while x < 0.75:
        x *= 2.0
        halvings -= 1.0
    z = (x - 1.0) / (x + 1.0)  # log x = 2 artanh z, |z| <= 1/5
    square = z * z
    series = 1.0 / 19.0
    for odd in (17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0):
        series = series * square + 1.0 / odd
    return halvings * 0.6931471805599453 + 2.0 * z * series


@fast
def dot(x: Float32, x_start: int, y: Float32, y_start: int, size: int) -> np.float32:
    """x[at:at + size] y[there:there + size]"""
    whole_lanes = size & -LANES
    result = _ZERO
    if whole_lanes:
        sums = broadcast(_ZERO)
        for i in range(0, whole_lanes, LANES):
            sums = times_plus(load(x, x_start + i), load(y, y_start + i), sums)
        result = total(sums)
    for i in range(whole_lanes, size):
        result += x[x_start + i] * y[y_start + i]
    return result


@fast
def total_of(x: Float32, start: int, size: int) -> np.float32:
    """The sum of x[at:at + size]."""
    whole_lanes = size & -LANES
    sums = broadcast(_ZERO)
    for i in range(0, whole_lanes, LANES):
        sums = add(sums, load(x, start + i))
    result = total(sums)
    for i in range(whole_lanes, size):
        result += x[start + i]
    return result


@fast
def squares_around(x: Float32, start: int, size: int, middle: np.float32) -> np.float32:
    """The sum of squares of x[at:at + size] - middle."""
    whole_lanes = size & -LANES
    sums, negative_middle = broadcast(_ZERO), broadcast(-middle)
    for i in range(0, whole_lanes, LANES):
        deviation = add(load(x, start + i), negative_middle)
        sums = times_plus(deviation, deviation, sums)
    result = total(sums)
    for i in range(whole_lanes, size):
        result += (x[start + i] - middle) * (x[start + i] - middle)
    return result


@fast
def greatest(x: Float32, start: int, size: int) -> np.float32:
    """Of x[at:at + size], which is not empty."""
    whole_lanes = size & -LANES
    maximum: np.float32 = x[start]
    if whole_lanes:
        mosts = load(x, start)
        for i in range(LANES, whole_lanes, LANES):
            mosts = larger(mosts, load(x, start + i))
        maximum = largest(mosts)
    for i in range(whole_lanes, size):
        maximum = x[start + i] if x[start + i] > maximum else maximum
    return maximum


@fast
def softmax(x: Float32, start: int, size: int) -> np.float32:
    """Of x[at:at + size], which is not empty, in place; log sum exp of what it was."""
    maximum, whole_lanes = greatest(x, start, size), size & -LANES
    negative_maximum, sums = broadcast(-maximum), broadcast(_ZERO)
    for i in range(0, whole_lanes, LANES):
        powers = exp16(add(load(x, start + i), negative_maximum))
        store(x, start + i, powers)
        sums = add(sums, powers)
    all_of_it = total(sums)
    for i in range(whole_lanes, size):
        x[start + i] = exp(x[start + i] - maximum)
        all_of_it += x[start + i]
    share = np.float32(1.0) / all_of_it
    for i in range(size):
        x[start + i] *= share
    return maximum + np.float32(log(np.float64(all_of_it)))


@fast
def log_of_sums(x: Float32, factor: np.float32, y: Float32, size: int) -> None:
    """x becomes log(e^x + factor y), of x <= 0 and positive y; `size` of them, rounded up to
    sixteen, for which there is room."""
    factors = broadcast(factor)
    for i in range(0, size, LANES):
        store(x, i, log16(times_plus(factors, load(y, i), exp16(load(x, i)))))


@fast
def sum_of_powers(x: Float32, maximum: np.float32) -> np.float32:
    """The sum of e^(x - maximum) over x, of which none is larger than `maximum`."""
    whole_lanes = x.size & -LANES
    negative_maximum, sums = broadcast(-maximum), broadcast(_ZERO)
    for i in range(0, whole_lanes, LANES):
        sums = add(sums, exp16(add(load(x, i), negative_maximum)))
    all_of_it = total(sums)
    for i in range(whole_lanes, x.size):
        all_of_it += exp(x[i] - maximum)
    return all_of_it


@part
def inner_products(x: Float32, y: Float32, output: Float32, rows: int, size: int) -> None:
    """out (`rows`, P): of all rows of x (`rows`, `size`) with all of y (P, `size`), which are read
    once for five rows."""
    columns = y.size // size
    fours = columns & -FOUR if size % LANES == 0 else 0
    row = 0
    while row < rows:
        together = 5 if row + 5 <= rows else 2 if row + 2 <= rows else 1
        for column in range(0, fours, FOUR):
            x_start, y_start, output_start = row * size, column * size, row * columns + column
            if together == 5:
                products_of_5(x, x_start, y, y_start, size, output, output_start, columns)
            elif together == 2:
                products_of_2(x, x_start, y, y_start, size, output, output_start, columns)
            else:
                products_of_1(x, x_start, y, y_start, size, output, output_start, columns)
        row += together
    for row in range(rows):
        for column in range(fours, columns):
            output[row * columns + column] = dot(x, row * size, y, column * size, size)
