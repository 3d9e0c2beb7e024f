"""The positions nearest to a step's state, compiled: directions in four bits a number
(`keys/nibbles.py`), their inner products in whole numbers (`integers.py`), and the few positions
that are read.

    R: rows    N: sentences    P: positions of a sentence, padded    d: numbers of a state, even
    M: positions of all sentences, each sentence's rounded up to PANEL    K: positions that are read

Every function is told addresses of contiguous arrays of fp32, but for what is said to be of another
type. What they calculate, `layers/nearest.py` says."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import fast, part
from tmnmt.compiled.integers import FOUR, PANEL, multiply
from tmnmt.compiled.vectors import exp, log, squares_around

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]
NEAREST = 8  # K
BOUNDS = 15  # between the sixteen levels of a number
# the table of what is there to read: sizes, then addresses
(
    SIZE,
    POSITIONS,
    STARTS,
    COUNTS,
    PANELS,
    BEGINS,
    SCALES,
    BIAS,
    NUMBERS,
    WORDS,
    PLACES,
    SIGNS,
    OF_NEAREST,
) = range(13)
_ZERO, _ONE, _TWO, _NEVER = np.float32(0.0), np.float32(1.0), np.float32(2.0), np.float32(-np.inf)
_FAR = np.float32(np.inf)
_FULL = np.float32(1.0 - 1e-6)  # a share at most


@part
def _turn(x: Float32, signs: Float32, out: Float32) -> None:
    """out becomes x at length 1, turned: signs, then Hadamard's matrix in blocks whose sizes are
    powers of two."""
    size = x.size
    square = squares_around(x, 0, size, _ZERO)
    unit = _ONE / np.float32(math.sqrt(square)) if square > _ZERO else _ZERO
    for i in range(size):
        out[i] = x[i] * signs[i] * unit
    begin = 0
    while begin < size:
        block = 1
        while 2 * block <= size - begin:
            block *= 2
        half = 1
        while half < block:
            _butterflies(out, begin, begin + block, half)
            half *= 2
        factor = _ONE / np.float32(math.sqrt(block))
        for i in range(begin, begin + block):
            out[i] *= factor
        begin += block


@fast
def _butterflies(x: Float32, begin: int, end: int, half: int) -> None:
    for i in range(begin, end, 2 * half):
        for j in range(i, i + half):
            low, high = x[j], x[j + half]
            x[j] = low + high
            x[j + half] = low - high


def encode_directions(
    rows: int, size: int, x_at: int, signs_at: int, bounds_at: int, room_at: int, codes_at: int
) -> int:
    """codes (R, d / 2) uint8 of x (R, d). bounds (15,): between levels, for numbers with a
    mean square of 1. room: d numbers."""
    turned, width = array_of(room_at, size, np.float32), size // 2
    signs, bounds = array_of(signs_at, size, np.float32), array_of(bounds_at, BOUNDS, np.float32)
    root = np.float32(math.sqrt(size))
    for row in range(rows):
        codes = array_of(codes_at + row * width, width, np.uint8)
        _turn(array_of(x_at + 4 * row * size, size, np.float32), signs, turned)
        for i in range(width):
            codes[i] = 0
        for i in range(size):
            number, code = turned[i] * root, np.uint8(0)
            for b in range(BOUNDS):
                code += np.uint8(1) if number > bounds[b] else np.uint8(0)
            codes[i // 2] |= code << np.uint8(4 * (i & 1))
    return 0


def fewer_bits(
    rows: int, size: int, bits: int, planes_at: int, row_bytes: int, table_at: int, codes_at: int
) -> int:
    """codes (R, d / 2) uint8 of numbers of more bits, as `keys/quantised.py` keeps them: rows
    of `row_bytes`, a scale of two bytes, then a plane for each bit. table: the code of each of its
    levels, uint8."""
    width, plane = size // 2, (size + 7) // 8
    table = array_of(table_at, 1 << bits, np.uint8)
    for row in range(rows):
        planes = array_of(planes_at + row * row_bytes + 2, bits * plane, np.uint8)
        codes = array_of(codes_at + row * width, width, np.uint8)
        for i in range(width):
            codes[i] = 0
        for i in range(size):
            level, byte, shift = 0, i // 8, np.uint8(7 - i % 8)
            for bit in range(bits):
                level |= ((planes[bit * plane + byte] >> shift) & np.uint8(1)) << bit
            codes[i // 2] |= table[level] << np.uint8(4 * (i & 1))
    return 0


def pack_nearest(
    sentences: int,
    positions: int,
    size: int,
    codes_at: int,
    mask_at: int,
    of_positions_at: int,
    ids_at: int,
    levels_at: int,
    unit: float,
    table_at: int,
) -> int:
    """Fills what the table has the addresses of, from codes (N, P, d / 2) uint8, mask (N, P)
    of one byte, numbers (N, P, 3), ids (N, P) int64 and the levels (16,) int8, each `unit`."""
    table = array_of(table_at, OF_NEAREST, np.int64)
    width, stride = size // 2, (size + FOUR - 1) // FOUR * FOUR
    starts, counts = (
        array_of(table[STARTS], sentences + 1, np.int64),
        array_of(table[COUNTS], sentences, np.int64),
    )
    every = starts[sentences]
    levels = array_of(levels_at, 16, np.int8)
    panels = array_of(table[PANELS], every * stride, np.int8)
    begins = array_of(table[BEGINS], every, np.int32)
    scales = array_of(table[SCALES], every, np.float32)
    numbers = array_of(table[NUMBERS], 3 * every, np.float32)
    words, places = (
        array_of(table[WORDS], every, np.int64),
        array_of(table[PLACES], every, np.int64),
    )
    root = math.sqrt(size) / unit
    for sentence in range(sentences):
        of = sentence * positions
        mask = array_of(mask_at + of, positions, np.uint8)
        ids = array_of(ids_at + 8 * of, positions, np.int64)
        reaches = array_of(of_positions_at + 12 * of, 3 * positions, np.float32)
        count = 0
        for p in range(positions):
            if mask[p]:
                at = starts[sentence] + count
                codes = array_of(codes_at + (of + p) * width, width, np.uint8)
                first, lane = at // PANEL * PANEL * stride, at % PANEL * FOUR
                total, square = np.int32(0), np.int32(0)
                for i in range(stride):
                    level = np.int8(0)
                    if i < size:
                        level = levels[(codes[i // 2] >> np.uint8(4 * (i & 1))) & np.uint8(15)]
                    panels[first + i // FOUR * FOUR * PANEL + lane + i % FOUR] = level
                    total += np.int32(level)
                    square += np.int32(level) * np.int32(level)
                begins[at] = np.int32(-128) * total
                scales[at] = np.float32(root / square) if square > 0 else _ZERO
                numbers[3 * at] = _ONE / reaches[3 * p]
                numbers[3 * at + 1] = _ONE / reaches[3 * p + 1]
                numbers[3 * at + 2] = reaches[3 * p + 2]
                words[at], places[at] = ids[p], p
                count += 1
        counts[sentence] = count
    return 0


def read_nearest(
    rows: int,
    table_at: int,
    hidden_at: int,
    sentence_at: int,
    coverage_at: int,
    room_at: int,
    q_at: int,
    words_at: int,
    first_at: int,
    places_at: int,
    logits_at: int,
) -> int:
    """What every row reads by its state: q, words, where each word stands first among them, and
    places among P (all (R, K), int64 but q), and the share's logit (R,), -inf where nothing is
    near. The rows of a sentence that stand side by side are multiplied together. coverage (R, P):
    what was read so far, to which this is added; 0: nothing is penalised.

    room: R (d + the most positions of a sentence) numbers, then that of a product of R rows with d
    inputs."""
    table = array_of(table_at, OF_NEAREST, np.int64)
    size, positions = table[SIZE], table[POSITIONS]
    stride = (size + FOUR - 1) // FOUR * FOUR
    sentence = array_of(sentence_at, rows, np.int64)
    signs = array_of(table[SIGNS], size, np.float32)
    logits = array_of(logits_at, rows, np.float32)
    turned_at, inner_at = room_at, room_at + 4 * rows * size
    for_product_at = inner_at + 4 * rows * positions
    begin = 0
    while begin < rows:
        end = begin + 1
        while end < rows and sentence[end] == sentence[begin]:
            end += 1
        of, together = sentence[begin], end - begin
        start = array_of(table[STARTS] + 8 * of, 1, np.int64)[0]
        count = array_of(table[COUNTS] + 8 * of, 1, np.int64)[0]
        for row in range(together):
            hidden = array_of(hidden_at + 4 * (begin + row) * size, size, np.float32)
            _turn(hidden, signs, array_of(turned_at + 4 * row * size, size, np.float32))
        multiply(
            array_of(turned_at, together * size, np.float32),
            together,
            size,
            table[PANELS] + start * stride,
            table[BEGINS] + 4 * start,
            table[SCALES] + 4 * start,
            table[BIAS],
            count,
            0,
            for_product_at,
            array_of(inner_at, together * count, np.float32),
        )
        numbers = array_of(table[NUMBERS] + 12 * start, 3 * count, np.float32)
        ids = array_of(table[WORDS] + 8 * start, count, np.int64)
        places = array_of(table[PLACES] + 8 * start, count, np.int64)
        for row in range(begin, end):
            inner = array_of(inner_at + 4 * (row - begin) * count, count, np.float32)
            covered_at = coverage_at + 4 * row * positions if coverage_at else 0
            logits[row] = _read_row(
                inner,
                numbers,
                ids,
                places,
                covered_at,
                positions,
                array_of(q_at + 4 * row * NEAREST, NEAREST, np.float32),
                array_of(words_at + 8 * row * NEAREST, NEAREST, np.int64),
                array_of(first_at + 8 * row * NEAREST, NEAREST, np.int64),
                array_of(places_at + 8 * row * NEAREST, NEAREST, np.int64),
            )
        begin = end
    return 0


@fast
def _distances(inner: Float32) -> None:
    """Inner products of directions become distances."""
    for p in range(inner.size):
        distance = _TWO - _TWO * inner[p]
        inner[p] = distance if distance > _ZERO else _ZERO


@part
def _read_row(
    distances: Float32,
    numbers: Float32,
    ids: Int64,
    places: Int64,
    covered_at: int,
    positions: int,
    q: Float32,
    words: Int64,
    first: Int64,
    chosen: Int64,
) -> np.float32:
    """The logit of the share, of inner products that become distances."""
    _distances(distances)
    if covered_at:
        covered = array_of(covered_at, positions, np.float32)
        for p in range(distances.size):
            distances[p] += numbers[3 * p + 2] * covered[places[p]]
    for k in range(NEAREST):
        q[k], chosen[k] = _FAR, 0
    count = 0
    for p in range(distances.size):
        scaled = distances[p] * numbers[3 * p]
        if scaled < q[NEAREST - 1]:
            k = NEAREST - 1
            while k > 0 and scaled < q[k - 1]:
                q[k], chosen[k] = q[k - 1], chosen[k - 1]
                k -= 1
            q[k], chosen[k] = scaled, p
            count = min(count + 1, NEAREST)
    share = _ONE - q[0] if count else _ZERO
    share = min(share, _FULL)
    if not share > _ZERO:
        for k in range(NEAREST):
            q[k], words[k], first[k], chosen[k] = _ZERO, 0, k, 0
        return _NEVER
    most = _NEVER
    for k in range(count):
        p = chosen[k]
        q[k] = -distances[p] * numbers[3 * p + 1]
        most = q[k] if q[k] > most else most
    total = _ZERO
    for k in range(NEAREST):
        q[k] = exp(q[k] - most) if k < count else _ZERO
        total += q[k]
    for k in range(NEAREST):
        p = chosen[k]
        q[k] /= total
        words[k] = ids[p] if k < count else words[0]
        chosen[k] = places[p] if k < count else chosen[0]
        first[k] = k
        for j in range(k):
            if words[j] == words[k]:
                first[k] = j
                break
    if covered_at:
        covered = array_of(covered_at, positions, np.float32)
        for k in range(count):
            covered[chosen[k]] += share * q[k]
    return np.float32(log(np.float64(share)) - log(np.float64(_ONE - share)))
