"""Attention of all positions of sentences at once, compiled: of a source among its own positions,
of a known target among the words before each, and of these to the source.

    B: sentences    M: positions that look    H: heads    d: hidden size    k: d / H
    S: positions that are looked at

A head's keys are turned once, so that sixteen energies come from k products of vectors, and ROWS
positions look at them together."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import fast
from tmnmt.compiled.vectors import (
    LANES,
    add,
    broadcast,
    exp16,
    larger,
    largest,
    load,
    load_one,
    store,
    times,
    times_plus,
    total,
)

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
ROWS = 4  # positions that look together
_ZERO, _ONE, _LOW = (
    np.float32(0.0),
    np.float32(1.0),
    np.float32(-1e30),
)  # an energy of which nothing is left


def attend(
    sentences: int,
    heads: int,
    d: int,
    queries_at: int,
    of_query: int,
    starts_at: int,
    keys_at: int,
    values_at: int,
    lengths_at: int,
    of_sentence: int,
    of_head: int,
    of_position: int,
    causal: int,
    room_at: int,
    out_at: int,
) -> int:
    """out (M, d): what every position reads of its sentence.

    Queries are `of_query` numbers apart, and those of a sentence are from starts[b] to starts[b +
    1], of starts (B + 1,) int64. Keys and values: so many numbers apart of two sentences, heads and
    positions; 0 for sentences: those of a sentence begin with its queries. lengths (B,) int64: of
    what is looked at; causal: a position sees itself and those before it alone. room: 2 k +
    ROWS times the longest of them, rounded up to LANES."""
    starts = array_of(starts_at, sentences + 1, np.int64)
    lengths = array_of(lengths_at, sentences, np.int64)
    queries = array_of(queries_at, starts[sentences] * of_query, np.float32)
    output = array_of(out_at, starts[sentences] * d, np.float32)
    k = d // heads
    scale = np.float32(1.0 / math.sqrt(k))
    for sentence in range(sentences):
        first, length = starts[sentence], lengths[sentence]
        count = starts[sentence + 1] - first
        padded = (length + LANES - 1) & -LANES
        offset = 4 * (sentence * of_sentence if of_sentence else first * of_position)
        size = (heads - 1) * of_head + (length - 1) * of_position + k
        keys = array_of(keys_at + offset, size, np.float32)
        values = array_of(values_at + offset, size, np.float32)
        columns = array_of(room_at, k * padded, np.float32)
        dense = array_of(room_at + 4 * k * padded, k * padded, np.float32)
        energies = array_of(room_at + 8 * k * padded, ROWS * padded, np.float32)
        for head in range(heads):
            _turn(keys, head * of_head, of_position, length, padded, k, scale, columns)
            _gather(values, head * of_head, of_position, length, k, dense)
            for begin in range(0, count, ROWS):
                last = min(begin + ROWS, count) - 1
                a = begin
                b, c = min(begin + 1, last), min(begin + 2, last)
                limit = last + 1 if causal else length
                of_head_query = first * of_query + head * k
                _energies(
                    queries,
                    of_head_query + a * of_query,
                    of_head_query + b * of_query,
                    of_head_query + c * of_query,
                    of_head_query + last * of_query,
                    k,
                    columns,
                    padded,
                    limit,
                    energies,
                )
                for row in range(ROWS):
                    position = min(begin + row, last)
                    _shares(
                        energies, row * padded, position + 1 if causal else length, limit, padded
                    )
                to = first * d + head * k
                _blends(
                    energies,
                    padded,
                    limit,
                    dense,
                    k,
                    output,
                    to + a * d,
                    to + b * d,
                    to + c * d,
                    to + last * d,
                )
    return 0


@fast
def _turn(
    keys: Float32,
    start: int,
    step: int,
    length: int,
    padded: int,
    k: int,
    scale: np.float32,
    columns: Float32,
) -> None:
    """A head's keys as (k, `padded`), scaled."""
    for position in range(length):
        for i in range(k):
            columns[i * padded + position] = keys[start + position * step + i] * scale
    for i in range(k):
        for position in range(length, padded):
            columns[i * padded + position] = _ZERO


@fast
def _gather(values: Float32, start: int, step: int, length: int, k: int, dense: Float32) -> None:
    """A head's values one after another: where they stand they share few sets of the cache."""
    whole_lanes = k & -LANES
    for position in range(length):
        for i in range(0, whole_lanes, LANES):
            store(dense, position * k + i, load(values, start + position * step + i))
        for i in range(whole_lanes, k):
            dense[position * k + i] = values[start + position * step + i]


@fast
def _energies(
    queries: Float32,
    a: int,
    b: int,
    c: int,
    e: int,
    k: int,
    columns: Float32,
    padded: int,
    limit: int,
    energies: Float32,
) -> None:
    """Energies (ROWS, `padded`) of four queries with the first `limit` keys, and with some more."""
    for j in range(0, limit, LANES):
        of_a, of_b, of_c, of_e = (
            broadcast(_ZERO),
            broadcast(_ZERO),
            broadcast(_ZERO),
            broadcast(_ZERO),
        )
        for i in range(k):
            column = load(columns, i * padded + j)
            of_a = times_plus(load_one(queries, a + i), column, of_a)
            of_b = times_plus(load_one(queries, b + i), column, of_b)
            of_c = times_plus(load_one(queries, c + i), column, of_c)
            of_e = times_plus(load_one(queries, e + i), column, of_e)
        store(energies, j, of_a)
        store(energies, padded + j, of_b)
        store(energies, 2 * padded + j, of_c)
        store(energies, 3 * padded + j, of_e)


@fast
def _shares(energies: Float32, start: int, size: int, limit: int, padded: int) -> None:
    """The first `size` energies of a row become shares, those up to `limit` become 0."""
    whole = (size + LANES - 1) & -LANES
    for position in range(start + size, start + whole):
        energies[position] = _LOW
    mosts = load(energies, start)
    for position in range(start + LANES, start + whole, LANES):
        mosts = larger(mosts, load(energies, position))
    low, sums = broadcast(-largest(mosts)), broadcast(_ZERO)
    for position in range(start, start + whole, LANES):
        powers = exp16(add(load(energies, position), low))
        store(energies, position, powers)
        sums = add(sums, powers)
    shares = broadcast(_ONE / total(sums))
    for position in range(start, start + whole, LANES):
        store(energies, position, times(load(energies, position), shares))
    for position in range(start + size, start + limit):
        energies[position] = _ZERO


@fast
def _blends(
    shares: Float32,
    padded: int,
    limit: int,
    values: Float32,
    k: int,
    output: Float32,
    a: int,
    b: int,
    c: int,
    e: int,
) -> None:
    """Four sums of k numbers of the first `limit` values by shares (ROWS, `padded`)."""
    whole_lanes = k & -LANES
    for i in range(0, whole_lanes, LANES):
        of_a, of_b, of_c, of_e = (
            broadcast(_ZERO),
            broadcast(_ZERO),
            broadcast(_ZERO),
            broadcast(_ZERO),
        )
        for t in range(limit):
            value = load(values, t * k + i)
            of_a = times_plus(load_one(shares, t), value, of_a)
            of_b = times_plus(load_one(shares, padded + t), value, of_b)
            of_c = times_plus(load_one(shares, 2 * padded + t), value, of_c)
            of_e = times_plus(load_one(shares, 3 * padded + t), value, of_e)
        store(output, a + i, of_a)
        store(output, b + i, of_b)
        store(output, c + i, of_c)
        store(output, e + i, of_e)
    for i in range(whole_lanes, k):
        for row in range(ROWS):
            result = _ZERO
            for t in range(limit):
                result += shares[row * padded + t] * values[t * k + i]
            output[(a if row == 0 else b if row == 1 else c if row == 2 else e) + i] = result
