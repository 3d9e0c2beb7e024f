"""The small parts of a decoder's step, compiled: all but its products with weights. As operations
of torch they take longer to be called than to be done.

    R: rows    b: beam    V: vocabulary    d: hidden size    H: heads    k: d / H

Every function is told the addresses of contiguous arrays of fp32, but for ids, rows and lengths,
which are int64. Python calls them by `steps.py`."""

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
    dot,
    exp,
    greatest,
    larger,
    largest,
    load,
    log,
    softmax,
    squares_around,
    store,
    sum_of_powers,
    times,
    times_plus,
    total_of,
)

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
BLOCK = 64  # words whose greatest number is looked at before any of them is
_ZERO, _ONE, _NEVER = np.float32(0.0), np.float32(1.0), np.float32(-np.inf)


def embed(
    ids_at: int, table_at: int, position_at: int, scale: float, rows: int, d: int, out_at: int
) -> int:
    """out (R, d): scaled embeddings of ids (R,), plus the position's (d,)."""
    ids = array_of(ids_at, rows, np.int64)
    position = array_of(position_at, d, np.float32)
    output = array_of(out_at, rows * d, np.float32)
    for row in range(rows):
        _embed(
            array_of(table_at + 4 * d * ids[row], d, np.float32), position, scale, output, row * d
        )
    return 0


@fast
def _embed(word: Float32, position: Float32, scale: float, output: Float32, start: int) -> None:
    factor = np.float32(scale)
    for i in range(word.size):
        output[start + i] = word[i] * factor + position[i]


def norm_of_sum(
    x_at: int,
    added_at: int,
    weight_at: int,
    bias_at: int,
    epsilon: float,
    rows: int,
    d: int,
    out_at: int,
) -> int:
    """x (R, d) += added (R, d), nothing where that is at 0; then out (R, d), which may be x itself:
    its layer norm by weight (d,) and bias (d,), `epsilon` under the root."""
    x = array_of(x_at, rows * d, np.float32)
    weight, bias = array_of(weight_at, d, np.float32), array_of(bias_at, d, np.float32)
    output = array_of(out_at, rows * d, np.float32)
    if added_at:
        _add(x, array_of(added_at, rows * d, np.float32))
    for row in range(rows):
        _norm(x, row * d, weight, bias, epsilon, output)
    return 0


@fast
def _add(x: Float32, added: Float32) -> None:
    for i in range(x.size):
        x[i] += added[i]


@fast
def _norm(
    x: Float32, start: int, weight: Float32, bias: Float32, epsilon: float, output: Float32
) -> None:
    d = weight.size
    mean = total_of(x, start, d) / np.float32(d)
    share = np.float32(1.0 / math.sqrt(squares_around(x, start, d, mean) / d + epsilon))
    whole_lanes = d & -LANES
    negative_mean, shares = broadcast(-mean), broadcast(share)
    for i in range(0, whole_lanes, LANES):
        even = times(add(load(x, start + i), negative_mean), shares)
        store(output, start + i, times_plus(even, load(weight, i), load(bias, i)))
    for i in range(whole_lanes, d):
        output[start + i] = (x[start + i] - mean) * share * weight[i] + bias[i]


def level_of_sum(x_at: int, added_at: int, epsilon: float, rows: int, d: int, out_at: int) -> int:
    """out (R, d): x (R, d) + added (R, d), brought to a mean square of 1."""
    x, added = array_of(x_at, rows * d, np.float32), array_of(added_at, rows * d, np.float32)
    output = array_of(out_at, rows * d, np.float32)
    for row in range(rows):
        _level(x, added, epsilon, output, row * d, d)
    return 0


@fast
def _level(x: Float32, added: Float32, epsilon: float, output: Float32, start: int, d: int) -> None:
    whole_lanes = start + (d & -LANES)
    for i in range(start, whole_lanes, LANES):
        store(output, i, add(load(x, i), load(added, i)))
    for i in range(whole_lanes, start + d):
        output[i] = x[i] + added[i]
    share = np.float32(1.0 / math.sqrt(squares_around(output, start, d, _ZERO) / d + epsilon))
    shares = broadcast(share)
    for i in range(start, whole_lanes, LANES):
        store(output, i, times(load(output, i), shares))
    for i in range(whole_lanes, start + d):
        output[i] *= share


def look_back(
    qkv_at: int,
    seen_at: int,
    origin_at: int,
    position: int,
    layer: int,
    layers: int,
    room: int,
    rows: int,
    heads: int,
    d: int,
    energy_at: int,
    places_at: int,
    out_at: int,
) -> int:
    """Self-attention of position `position`: queries, keys and values (R, 3 d) -> out (R, d).

    seen (positions, layers, room, 2 d): keys and values, those of this position are put there.
    origin (positions, R): in which of the room's rows a row's keys and values stand. energy and
    places (at + 1,): room."""
    qkv = array_of(qkv_at, rows * 3 * d, np.float32)
    kv_cache = array_of(seen_at, (position + 1) * layers * room * 2 * d, np.float32)
    origin = array_of(origin_at, (position + 1) * rows, np.int64)
    energy, places = (
        array_of(energy_at, position + 1, np.float32),
        array_of(places_at, position + 1, np.int64),
    )
    output = array_of(out_at, rows * d, np.float32)
    for row in range(rows):
        origin[position * rows + row] = row
        _put(
            qkv,
            row * 3 * d + d,
            kv_cache,
            ((position * layers + layer) * room + row) * 2 * d,
            2 * d,
        )
    k = d // heads
    scale = np.float32(1.0 / math.sqrt(k))
    for row in range(rows):
        for t in range(position + 1):
            places[t] = ((t * layers + layer) * room + origin[t * rows + row]) * 2 * d
        for head in range(heads):
            query_start = row * 3 * d + head * k
            for t in range(position + 1):
                energy[t] = dot(qkv, query_start, kv_cache, places[t] + head * k, k) * scale
            softmax(energy, 0, position + 1)
            _blend(energy, kv_cache, places, d + head * k, output, row * d + head * k, k)
    return 0


def update_cell(candidate_gate_at: int, cell_at: int, rows: int, d: int, out_at: int) -> int:
    """One more word for a student's recurrent cell (R, d), in place: candidates and gates side by
    side (R, 2 d) -> out (R, d), the positive part of the cell."""
    candidate_gate = array_of(candidate_gate_at, rows * 2 * d, np.float32)
    cell, output = array_of(cell_at, rows * d, np.float32), array_of(out_at, rows * d, np.float32)
    for row in range(rows):
        _update_cell(candidate_gate, row * 2 * d, cell, output, row * d, d)
    return 0


def run_cells(candidate_gate_at: int, sentences: int, positions: int, d: int, out_at: int) -> int:
    """A student's recurrent cell along known words: candidates and gates side by side (B, T, 2 d)
    -> out (B, T, d), its positive parts. The cells stand in place of the candidates."""
    size = sentences * positions * d
    candidate_gate = array_of(candidate_gate_at, 2 * size, np.float32)
    output = array_of(out_at, size, np.float32)
    for sentence in range(sentences):
        for position in range(positions):
            row = sentence * positions + position
            if position == 0:
                _begin_cell(candidate_gate, 2 * row * d, output, row * d, d)
            else:
                _run_cell(candidate_gate, 2 * row * d, output, row * d, d)
    return 0


@fast
def _gate(x: np.float32) -> np.float32:
    """The sigmoid of any x; `exp` is exact for x <= 0 alone."""
    power = exp(-abs(x))
    return _ONE / (_ONE + power) if x >= _ZERO else power / (_ONE + power)


@fast
def _begin_cell(candidate_gate: Float32, start: int, output: Float32, to: int, d: int) -> None:
    for i in range(d):
        candidate = candidate_gate[start + i]
        gate = _gate(candidate_gate[start + d + i])
        candidate_gate[start + i] = candidate - gate * candidate
        output[to + i] = max(candidate_gate[start + i], _ZERO)


@fast
def _run_cell(candidate_gate: Float32, start: int, output: Float32, to: int, d: int) -> None:
    former = start - 2 * d
    for i in range(d):
        candidate = candidate_gate[start + i]
        gate = _gate(candidate_gate[start + d + i])
        candidate_gate[start + i] = candidate + gate * (candidate_gate[former + i] - candidate)
        output[to + i] = max(candidate_gate[start + i], _ZERO)


@fast
def _update_cell(
    candidate_gate: Float32,
    gate_start: int,
    cell: Float32,
    output: Float32,
    cell_start: int,
    d: int,
) -> None:
    for i in range(d):
        candidate = candidate_gate[gate_start + i]
        gate = _gate(candidate_gate[gate_start + d + i])
        cell[cell_start + i] = candidate + gate * (cell[cell_start + i] - candidate)
        output[cell_start + i] = max(cell[cell_start + i], _ZERO)


def look_at_source(
    q_at: int,
    keys_at: int,
    values_at: int,
    lengths_at: int,
    of_sentence: int,
    of_head: int,
    of_position: int,
    sentences: int,
    rows: int,
    heads: int,
    d: int,
    energy_at: int,
    places_at: int,
    out_at: int,
) -> int:
    """Attention over the source: q (R, d), rows of a sentence side by side -> out (R, d).

    Keys and values are so many numbers apart of two sentences, heads and positions. lengths
    (sentences,): real positions. energy and places: room for the longest."""
    lengths = array_of(lengths_at, sentences, np.int64)
    q, output = array_of(q_at, rows * d, np.float32), array_of(out_at, rows * d, np.float32)
    k, beam = d // heads, rows // sentences
    scale = np.float32(1.0 / math.sqrt(k))
    for sentence in range(sentences):
        length = lengths[sentence]
        size = (heads - 1) * of_head + (length - 1) * of_position + k
        keys = array_of(keys_at + 4 * sentence * of_sentence, size, np.float32)
        values = array_of(values_at + 4 * sentence * of_sentence, size, np.float32)
        energy = array_of(energy_at, length, np.float32)
        places = array_of(places_at, length, np.int64)
        for s in range(length):
            places[s] = s * of_position
        for head in range(heads):
            for row in range(sentence * beam, (sentence + 1) * beam):
                start = row * d + head * k
                for s in range(length):
                    energy[s] = dot(q, start, keys, head * of_head + places[s], k) * scale
                softmax(energy, 0, length)
                _blend(energy, values, places, head * of_head, output, start, k)
    return 0


@fast
def _put(x: Float32, x_start: int, y: Float32, y_start: int, size: int) -> None:
    for i in range(size):
        y[y_start + i] = x[x_start + i]


@fast
def _blend(
    shares: Float32,
    values: Float32,
    places: Int64,
    offset: int,
    output: Float32,
    start: int,
    size: int,
) -> None:
    """output[start:start + size] becomes the sum of `shares` times what stands `offset` behind
    `places`."""
    whole_lanes = size & -LANES
    for i in range(0, whole_lanes, LANES):
        sums = broadcast(_ZERO)
        for t in range(shares.size):
            sums = times_plus(broadcast(shares[t]), load(values, places[t] + offset + i), sums)
        store(output, start + i, sums)
    for i in range(whole_lanes, size):
        output[start + i] = _ZERO
        for t in range(shares.size):
            output[start + i] += shares[t] * values[places[t] + offset + i]


def log_softmax(x_at: int, rows: int, words: int) -> int:
    """Of x (R, V), in place."""
    for row in range(rows):
        _log_softmax(array_of(x_at + 4 * row * words, words, np.float32))
    return 0


@fast
def _log_softmax(x: Float32) -> None:
    maximum = greatest(x, 0, x.size)
    level = maximum + np.float32(log(np.float64(sum_of_powers(x, maximum))))
    for i in range(x.size):
        x[i] -= level


def best_words(
    scores_at: int,
    log_probs_at: int,
    sentences: int,
    beam: int,
    words: int,
    width: int,
    best_at: int,
    rows_at: int,
    ids_at: int,
) -> int:
    """The `width` best extensions of every sentence, best first: scores (sentences, b), log_probs
    (R, V) -> best, rows and ids, each (sentences, width). Of equals the first; where there are
    too few, -inf of the sentence's first row and the word 0."""
    scores = array_of(scores_at, sentences * beam, np.float32)
    for sentence in range(sentences):
        best = array_of(best_at + 4 * sentence * width, width, np.float32)
        rows = array_of(rows_at + 8 * sentence * width, width, np.int64)
        ids = array_of(ids_at + 8 * sentence * width, width, np.int64)
        for i in range(width):
            best[i], rows[i], ids[i] = _NEVER, sentence * beam, 0
        for row in range(sentence * beam, (sentence + 1) * beam):
            if scores[row] > _NEVER:
                x = array_of(log_probs_at + 4 * row * words, words, np.float32)
                _best_of_row(x, scores[row], row, best, rows, ids)
    return 0


@fast
def _best_of_row(
    x: Float32, score: np.float32, row: int, best: Float32, rows: Int64, ids: Int64
) -> None:
    blocks = x.size & -BLOCK
    for begin in range(0, blocks, BLOCK):
        two = larger(load(x, begin), load(x, begin + LANES))
        upper_two = larger(load(x, begin + 2 * LANES), load(x, begin + 3 * LANES))
        if largest(larger(two, upper_two)) + score > best[best.size - 1]:
            _look_at(x, begin, begin + BLOCK, score, row, best, rows, ids)
    _look_at(x, blocks, x.size, score, row, best, rows, ids)


@fast
def _look_at(
    x: Float32,
    begin: int,
    end: int,
    score: np.float32,
    row: int,
    best: Float32,
    rows: Int64,
    ids: Int64,
) -> None:
    for word in range(begin, end):
        if x[word] + score > best[best.size - 1]:
            _insert(x[word] + score, row, word, best, rows, ids)


@fast
def _insert(score: np.float32, row: int, word: int, best: Float32, rows: Int64, ids: Int64) -> None:
    index = best.size - 1
    while index and score > best[index - 1]:
        best[index], rows[index], ids[index] = best[index - 1], rows[index - 1], ids[index - 1]
        index -= 1
    best[index], rows[index], ids[index] = score, row, word
