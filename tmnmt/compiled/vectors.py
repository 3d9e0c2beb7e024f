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
_LEAST = np.float32(-126.0)  # of two's exponents
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


def _at(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())


def _load(_: Any, array: Any, at: Any) -> Any:
    """array[at:at + 16]"""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.load(_at(context, builder, signature.args[0], *given), align=4)

    return FLOATS(array, types.intp), code


def _store(_: Any, array: Any, at: Any, x: Any) -> Any:
    """array[at:at + 16] = x"""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        builder.store(given[2], _at(context, builder, signature.args[0], *given[:2]), align=4)

    return types.void(array, types.intp, x), code


def _same(_: Any, number: Any) -> Any:
    """The same number sixteen times."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), given[0], _INT(0))
        return builder.shuffle_vector(one, one, ir.Constant(_INTS, [0] * LANES))

    return FLOATS(types.float32), code


def _add(_: Any, x: Any, y: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.fadd(*given)

    return FLOATS(x, y), code


def _times(_: Any, x: Any, y: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.fmul(*given)

    return FLOATS(x, y), code


def _times_plus(_: Any, x: Any, y: Any, z: Any) -> Any:
    """x y + z"""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        product = builder.fmul(given[0], given[1], flags=("contract",))
        return builder.fadd(product, given[2], flags=("contract",))

    return FLOATS(x, y, z), code


def _larger(_: Any, x: Any, y: Any) -> Any:
    """Of every two numbers the larger."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        above = builder.fcmp_ordered(">", *given, flags=("nnan", "nsz"))
        return builder.select(above, *given)

    return FLOATS(x, y), code


def _halved(combine: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any, Any], Any]:
    """All sixteen numbers made one, by halves."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        value, lanes = given[0], LANES
        while lanes > 1:
            lanes //= 2
            nothing = ir.Constant(value.type, ir.Undefined)
            low, high = (
                builder.shuffle_vector(
                    value,
                    nothing,
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
        above = builder.fcmp_ordered(">", low, high, flags=("nnan", "nsz"))
        return builder.select(above, low, high)

    return types.float32(x), _halved(larger)


def _exp16(_: Any, x: Any) -> Any:
    """e^x of numbers x <= 0, to 2e-7 and |x| times 6e-8 of itself; below 2^-126 it is that."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def numbers(number: float | np.float32) -> Any:
            return ir.Constant(_VECTOR, [ir.Constant(_FLOAT, float(np.float32(number)))] * LANES)

        def plus(x: Any, y: Any, z: Any) -> Any:
            product = builder.fmul(x, y, flags=("contract",))
            return builder.fadd(product, z, flags=("contract",))

        t = builder.fmul(given[0], numbers(_LOG2_E))
        above = builder.fcmp_ordered(">", t, numbers(_LEAST), flags=("nnan", "nsz"))
        t = builder.select(above, t, numbers(_LEAST))
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

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def numbers(number: float | np.float32) -> Any:
            return ir.Constant(_VECTOR, [ir.Constant(_FLOAT, float(np.float32(number)))] * LANES)

        def ints(number: int) -> Any:
            return ir.Constant(_INTS, [_INT(number)] * LANES)

        bits = builder.bitcast(given[0], _INTS)
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
        _: Any, x: Any, at: Any, y: Any, there: Any, size: Any, out: Any, to: Any, step: Any
    ) -> Any:
        """out[to + r step + k] = x[at + r size:][:size] y[there + k size:][:size] of every row r
        and k < FOUR; size: a multiple of 16."""

        def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            x, at, y, there, size, out, to, step = given
            of_x, of_y, of_out = (signature.args[i] for i in (0, 2, 5))
            room_for = cast(Any, cgutils).alloca_once
            sums = [room_for(builder, _VECTOR) for _ in range(rows * FOUR)]
            for sum_ in sums:
                builder.store(ir.Constant(_VECTOR, None), sum_)

            def part(kind: Any, array: Any, begin: Any, row: int, offset: Any) -> Any:
                place = builder.add(begin, builder.mul(size, ir.Constant(size.type, row)))
                where = _at(context, builder, kind, array, builder.add(place, offset))
                return builder.load(where, align=4)

            lanes = ir.Constant(size.type, LANES)
            with cgutils.for_range(builder, builder.sdiv(size, lanes)) as loop:
                offset = builder.mul(loop.index, lanes)
                ys = [part(of_y, y, there, k, offset) for k in range(FOUR)]
                for row in range(rows):
                    numbers = part(of_x, x, at, row, offset)
                    for k, sum_ in enumerate(sums[row * FOUR : (row + 1) * FOUR]):
                        product = builder.fmul(numbers, ys[k], flags=("contract",))
                        more = builder.fadd(product, builder.load(sum_), flags=("contract",))
                        builder.store(more, sum_)
            for row in range(rows):
                four = [builder.load(sum_) for sum_ in sums[row * FOUR : (row + 1) * FOUR]]
                place = builder.add(to, builder.mul(step, ir.Constant(step.type, row)))
                data = context.make_array(of_out)(context, builder, out).data
                where = builder.bitcast(builder.gep(data, [place]), _FOURS.as_pointer())
                builder.store(_four_totals(builder, four), where, align=4)
            return context.get_dummy_value()

        place = types.intp
        return types.void(x, place, y, place, place, out, place, place), code

    return kind


def _four_totals(builder: Any, four: list[Any]) -> Any:
    """The sums of four times sixteen numbers, by halves: each step adds two halves of what the
    step before made, of all four at once."""

    def halves(x: Any, y: Any, piece: int) -> Any:
        """The sums of neighbouring pieces of x and then y."""
        pieces = range(0, 2 * LANES if y is not None else x.type.count, 2 * piece)
        low = [begin + i for begin in pieces for i in range(piece)]
        other = y if y is not None else ir.Constant(x.type, ir.Undefined)
        shuffled = (
            builder.shuffle_vector(x, other, ir.Constant(ir.VectorType(_INT, len(low)), places))
            for places in (low, [i + piece for i in low])
        )
        return builder.fadd(*shuffled)

    first, second = halves(four[0], four[1], 8), halves(four[2], four[3], 8)
    return halves(halves(halves(first, second, 4), None, 2), None, 1)


load = cast(Callable[[Float32, int], Floats], intrinsic(_load))
store = cast(Callable[[Float32, int, Floats], None], intrinsic(_store))
same = cast(Callable[[np.float32], Floats], intrinsic(_same))
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

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.sitofp(builder.fptosi(given[0], ir.IntType(32)), ir.FloatType())

    return types.float32(types.float32), code


def _two_to(_: Any, whole: Any) -> Any:
    """2^n of a whole number n in [-126, 127], as fp32."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = ir.IntType(32)
        exponent = builder.add(builder.fptosi(given[0], kind), ir.Constant(kind, 127))
        return builder.bitcast(builder.shl(exponent, ir.Constant(kind, 23)), ir.FloatType())

    return types.float32(types.float32), code


whole = cast(Callable[[np.float32], np.float32], intrinsic(_whole))
two_to = cast(Callable[[np.float32], np.float32], intrinsic(_two_to))


@fast
def exp(x: np.float32) -> np.float32:
    """e^x of x <= 0, to 2e-7 and |x| times 6e-8 of itself; below 2^-126 it is that."""
    t = x * _LOG2_E
    t = t if t > _LEAST else _LEAST
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
def dot(x: Float32, at: int, y: Float32, there: int, size: int) -> np.float32:
    """x[at:at + size] y[there:there + size]"""
    whole_lanes = size & -LANES
    result = _ZERO
    if whole_lanes:
        sums = same(_ZERO)
        for i in range(0, whole_lanes, LANES):
            sums = times_plus(load(x, at + i), load(y, there + i), sums)
        result = total(sums)
    for i in range(whole_lanes, size):
        result += x[at + i] * y[there + i]
    return result


@fast
def total_of(x: Float32, at: int, size: int) -> np.float32:
    """The sum of x[at:at + size]."""
    whole_lanes = size & -LANES
    sums = same(_ZERO)
    for i in range(0, whole_lanes, LANES):
        sums = add(sums, load(x, at + i))
    result = total(sums)
    for i in range(whole_lanes, size):
        result += x[at + i]
    return result


@fast
def squares_around(x: Float32, at: int, size: int, middle: np.float32) -> np.float32:
    """The sum of squares of x[at:at + size] - middle."""
    whole_lanes = size & -LANES
    sums, below = same(_ZERO), same(-middle)
    for i in range(0, whole_lanes, LANES):
        off = add(load(x, at + i), below)
        sums = times_plus(off, off, sums)
    result = total(sums)
    for i in range(whole_lanes, size):
        result += (x[at + i] - middle) * (x[at + i] - middle)
    return result


@fast
def greatest(x: Float32, at: int, size: int) -> np.float32:
    """Of x[at:at + size], which is not empty."""
    whole_lanes = size & -LANES
    most: np.float32 = x[at]
    if whole_lanes:
        mosts = load(x, at)
        for i in range(LANES, whole_lanes, LANES):
            mosts = larger(mosts, load(x, at + i))
        most = largest(mosts)
    for i in range(whole_lanes, size):
        most = x[at + i] if x[at + i] > most else most
    return most


@fast
def softmax(x: Float32, at: int, size: int) -> np.float32:
    """Of x[at:at + size], which is not empty, in place; log sum exp of what it was."""
    most, whole_lanes = greatest(x, at, size), size & -LANES
    below, sums = same(-most), same(_ZERO)
    for i in range(0, whole_lanes, LANES):
        powers = exp16(add(load(x, at + i), below))
        store(x, at + i, powers)
        sums = add(sums, powers)
    all_of_it = total(sums)
    for i in range(whole_lanes, size):
        x[at + i] = exp(x[at + i] - most)
        all_of_it += x[at + i]
    share = np.float32(1.0) / all_of_it
    for i in range(size):
        x[at + i] *= share
    return most + np.float32(log(np.float64(all_of_it)))


@fast
def log_of_sums(x: Float32, factor: np.float32, y: Float32, size: int) -> None:
    """x becomes log(e^x + factor y), of x <= 0 and positive y; `size` of them, rounded up to
    sixteen, for which there is room."""
    factors = same(factor)
    for i in range(0, size, LANES):
        store(x, i, log16(times_plus(factors, load(y, i), exp16(load(x, i)))))


@fast
def sum_of_powers(x: Float32, most: np.float32) -> np.float32:
    """The sum of e^(x - most) over x, of which none is larger than `most`."""
    whole_lanes = x.size & -LANES
    below, sums = same(-most), same(_ZERO)
    for i in range(0, whole_lanes, LANES):
        sums = add(sums, exp16(add(load(x, i), below)))
    all_of_it = total(sums)
    for i in range(whole_lanes, x.size):
        all_of_it += exp(x[i] - most)
    return all_of_it


@part
def inner_products(x: Float32, y: Float32, out: Float32, rows: int, size: int) -> None:
    """out (`rows`, P): of all rows of x (`rows`, `size`) with all of y (P, `size`), which are read
    once for five rows."""
    others = y.size // size
    fours = others & -FOUR if size % LANES == 0 else 0
    row = 0
    while row < rows:
        together = 5 if row + 5 <= rows else 2 if row + 2 <= rows else 1
        for other in range(0, fours, FOUR):
            at, there, to = row * size, other * size, row * others + other
            if together == 5:
                products_of_5(x, at, y, there, size, out, to, others)
            elif together == 2:
                products_of_2(x, at, y, there, size, out, to, others)
            else:
                products_of_1(x, at, y, there, size, out, to, others)
        row += together
    for row in range(rows):
        for other in range(fours, others):
            out[row * others + other] = dot(x, row * size, y, other * size, size)
