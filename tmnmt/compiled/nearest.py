"""The positions nearest to a step's state, compiled: directions in four bits a number
(`keys/nibbles.py`), their inner products in whole numbers (`integers.py`), and the few positions
that are read.

    R: rows    N: sentences    d: numbers of a state, even    K: positions that are read

A sentence reads BLOCKS blocks of positions: the pairs that stand beside it, and its session. Every
function is told addresses of contiguous arrays of fp32, but for what is said to be of another type.
What they calculate, `layers/nearest.py` says."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled import mixing
from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import fast, part
from tmnmt.compiled.integers import FOUR, PANEL, multiply
from tmnmt.compiled.vectors import exp, log, squares_around

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]
NEAREST = 8  # K
BOUNDS = 15  # between the sixteen levels of a number
BLOCKS = 2  # of a sentence
# a block: addresses of its arrays (0 of places: a position stands where it is), numbers between
# those of two positions, how many positions are passed over and how many follow, and where the
# first of these stands among all positions of the sentence
(
    PANELS,
    BEGINS,
    SCALES,
    WORDS,
    PLACES,
    NUMBERS,
    OF_NUMBERS,
    SKIPPED,
    COUNT,
    BASE,
    OF_BLOCK,
) = range(11)
_ZERO, _ONE, _TWO, _NEVER = np.float32(0.0), np.float32(1.0), np.float32(2.0), np.float32(-np.inf)
_FAR = np.float32(np.inf)
_FULL = np.float32(1.0 - 1e-6)  # a share at most
_CERTAIN = np.float32(255.0)  # what a certainty of 1 is kept as
_CERTAINTY, _WORD = np.int64(32), np.int64((1 << 32) - 1)  # beside a word: above so many bits
_FIFTEEN, _FOUR_BITS = np.uint64(15), np.uint64(4)
_narrow_shares, _mix_words = part(mixing.narrow_shares), part(mixing.mix_words)


@part
def _turn(x: Float32, signs: Float32, rotated: Float32) -> None:
    """out becomes x at length 1, turned: signs, then Hadamard's matrix in blocks whose sizes are
    powers of two."""
    size = x.size
    square = squares_around(x, 0, size, _ZERO)
    unit = _ONE / np.float32(math.sqrt(square)) if square > _ZERO else _ZERO
    for i in range(size):
        rotated[i] = x[i] * signs[i] * unit
    begin = 0
    while begin < size:
        block = 1
        while 2 * block <= size - begin:
            block *= 2
        half = 1
        while half < block:
            _butterflies(rotated, begin, begin + block, half)
            half *= 2
        factor = _ONE / np.float32(math.sqrt(block))
        for i in range(begin, begin + block):
            rotated[i] *= factor
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
    rotated, width = array_of(room_at, size, np.float32), size // 2
    signs, bounds = array_of(signs_at, size, np.float32), array_of(bounds_at, BOUNDS, np.float32)
    root = np.float32(math.sqrt(size))
    for row in range(rows):
        codes = array_of(codes_at + row * width, width, np.uint8)
        _turn(array_of(x_at + 4 * row * size, size, np.float32), signs, rotated)
        for i in range(width):
            codes[i] = 0
        for i in range(size):
            number, code = rotated[i] * root, np.uint8(0)
            for b in range(BOUNDS):
                code += np.uint8(1) if number > bounds[b] else np.uint8(0)
            codes[i // 2] |= code << np.uint8(4 * (i & 1))
    return 0


def pack_nearest(
    positions: int,
    size: int,
    codes_at: int,
    mask_at: int,
    ids_at: int,
    levels_at: int,
    unit: float,
    index: int,
    panels_at: int,
    begins_at: int,
    scales_at: int,
    words_at: int,
    places_at: int,
) -> int:
    """Adds positions to panels behind the first `index`: codes (P, d / 2 + 1) uint8, a direction
    and how likely the model found the word, ids (P,) int64, of which mask (P,) has one byte that
    says whether it is one; levels (16,) int8, each `unit`. How likely it was stands above a word's
    number."""
    width, stride = size // 2, (size + FOUR - 1) // FOUR * FOUR
    total_positions = index + positions
    levels = array_of(levels_at, 16, np.int8)
    mask, ids = array_of(mask_at, positions, np.uint8), array_of(ids_at, positions, np.int64)
    begins, scales = (
        array_of(begins_at, total_positions, np.int32),
        array_of(scales_at, total_positions, np.float32),
    )
    words, places = (
        array_of(words_at, total_positions, np.int64),
        array_of(places_at, total_positions, np.int64),
    )
    root = math.sqrt(size) / unit
    for p in range(positions):
        if mask[p]:
            codes = array_of(codes_at + p * (width + 1), width + 1, np.uint8)
            first, lane = index // PANEL * PANEL * stride, index % PANEL * FOUR
            total, square = np.int32(0), np.int32(0)
            lane_at = panels_at + first + lane
            for four in range(stride // FOUR):
                whole = np.uint32(0)
                for i in range(FOUR // 2):
                    byte = np.uint64(four * (FOUR // 2) + i)
                    if byte < np.uint64(width):
                        code = np.uint64(codes[byte])
                        low = np.int32(levels[code & _FIFTEEN])
                        high = np.int32(levels[code >> _FOUR_BITS])
                        pair = np.uint32(low & 255) | np.uint32(high & 255) << np.uint32(8)
                        whole |= pair << np.uint32(16 * i)
                        total += low + high
                        square += low * low + high * high
                array_of(lane_at + four * FOUR * PANEL, 1, np.uint32)[0] = whole
            begins[index] = np.int32(-128) * total
            scales[index] = np.float32(root / square) if square > 0 else _ZERO
            words[index] = ids[p] | np.int64(codes[width]) << _CERTAINTY
            places[index] = p
            index += 1
    return 0


def read_nearest(
    rows: int,
    blocks_at: int,
    size: int,
    positions: int,
    most: int,
    signs_at: int,
    bias_at: int,
    hidden_at: int,
    sentence_at: int,
    coverage_at: int,
    room_at: int,
    q_at: int,
    words_at: int,
    first_at: int,
    places_at: int,
    logits_at: int,
    words: int,
    log_probs_at: int,
    columns_at: int,
) -> int:
    """What every row reads by its state: q, words, where each word stands first among them, and
    places among the positions of its sentence (all (R, K), int64 but q), and the share's logit
    (R,), -inf where nothing is near. log p (R, V) and columns, as in `mix_words`, say what is
    doubted; log p 0: nothing is. The rows of a sentence that stand side by side are multiplied
    together. coverage (R, P): what was read so far, to which this is added; 0: nothing is
    penalised.

    blocks (N, BLOCKS, OF_BLOCK) int64. most: positions that are multiplied of a sentence, at most.
    bias: so many zeros. room: R (d + most) + K numbers, then that of a product of R rows with d
    inputs."""
    sentence = array_of(sentence_at, rows, np.int64)
    signs = array_of(signs_at, size, np.float32)
    logits = array_of(logits_at, rows, np.float32)
    turned_at, inner_at = room_at, room_at + 4 * rows * size
    energies_at = inner_at + 4 * rows * most
    for_product_at = energies_at + 4 * NEAREST
    begin = 0
    while begin < rows:
        end = begin + 1
        while end < rows and sentence[end] == sentence[begin]:
            end += 1
        own_at, together = blocks_at + 8 * BLOCKS * OF_BLOCK * sentence[begin], end - begin
        for row in range(together):
            hidden = array_of(hidden_at + 4 * (begin + row) * size, size, np.float32)
            _turn(hidden, signs, array_of(turned_at + 4 * row * size, size, np.float32))
        to = inner_at
        for number in range(BLOCKS):
            block = array_of(own_at + 8 * OF_BLOCK * number, OF_BLOCK, np.int64)
            count = block[SKIPPED] + block[COUNT]
            if count:
                multiply(
                    array_of(turned_at, together * size, np.float32),
                    together,
                    size,
                    block[PANELS],
                    block[BEGINS],
                    block[SCALES],
                    bias_at,
                    count,
                    0,
                    0,
                    for_product_at,
                    array_of(to, together * count, np.float32),
                )
            to += 4 * together * count
        for row in range(begin, end):
            logits[row] = _read_row(
                own_at,
                inner_at,
                row - begin,
                together,
                coverage_at + 4 * row * positions if coverage_at else 0,
                positions,
                log_probs_at + 4 * row * words if log_probs_at else 0,
                words,
                columns_at,
                array_of(energies_at, NEAREST, np.float32),
                array_of(q_at + 4 * row * NEAREST, NEAREST, np.float32),
                array_of(words_at + 8 * row * NEAREST, NEAREST, np.int64),
                array_of(first_at + 8 * row * NEAREST, NEAREST, np.int64),
                array_of(places_at + 8 * row * NEAREST, NEAREST, np.int64),
            )
        begin = end
    return 0


_read_nearest = part(read_nearest)


def mix_nearest(
    rows: int,
    blocks_at: int,
    size: int,
    positions: int,
    most: int,
    signs_at: int,
    bias_at: int,
    hidden_at: int,
    sentence_at: int,
    coverage_at: int,
    room_at: int,
    q_at: int,
    words_at: int,
    first_at: int,
    places_at: int,
    logits_at: int,
    words: int,
    log_probs_at: int,
    columns_at: int,
    sure: float,
    full: float,
) -> int:
    """`read_nearest`; then `narrow_shares` by log p (R, V), and `mix_words` into it. room: that of
    `read_nearest`, and at least 4 numbers for every K."""
    _read_nearest(
        rows,
        blocks_at,
        size,
        positions,
        most,
        signs_at,
        bias_at,
        hidden_at,
        sentence_at,
        coverage_at,
        room_at,
        q_at,
        words_at,
        first_at,
        places_at,
        logits_at,
        words,
        log_probs_at,
        columns_at,
    )
    _narrow_shares(rows, words, log_probs_at, logits_at, sure, full, logits_at)
    _mix_words(
        rows,
        words,
        NEAREST,
        log_probs_at,
        q_at,
        words_at,
        first_at,
        logits_at,
        columns_at,
        room_at,
    )
    return 0


@fast
def _distances(inner: Float32) -> None:
    """Inner products of directions become distances."""
    for p in range(inner.size):
        distance = _TWO - _TWO * inner[p]
        inner[p] = distance if distance > _ZERO else _ZERO


@part
def _look_through(
    block: Int64,
    distances: Float32,
    covered_at: int,
    positions: int,
    log_probs: Float32,
    columns_at: int,
    count: int,
    scaled: Float32,
    energies: Float32,
    words: Int64,
    chosen: Int64,
) -> int:
    """Puts positions of a block among the `count` nearest ones so far, by the distance over tau:
    with their energies, words and places. How many there are then. distances: inner products at
    first. log_probs: log p, of which doubt is taken; empty: nothing is doubted."""
    _distances(distances)
    skipped, of_numbers, base = block[SKIPPED], block[OF_NUMBERS], block[BASE]
    total, has_places = distances.size, block[PLACES] != 0
    numbers = array_of(block[NUMBERS], of_numbers * positions + 4, np.float32)
    ids, places = array_of(block[WORDS], total, np.int64), array_of(block[PLACES], total, np.int64)
    covered = array_of(covered_at, positions, np.float32)
    for p in range(skipped, total):
        place = places[p] if has_places else p - skipped
        offset = of_numbers * place
        if covered_at:
            distances[p] += numbers[offset + 2] * covered[base + place]
        ratio = distances[p] / numbers[offset]
        word = ids[p] & _WORD
        doubt = numbers[offset + 3]
        if doubt > _ZERO and log_probs.size and ratio < scaled[NEAREST - 1]:
            column = array_of(columns_at + 8 * word, 1, np.int64)[0] if columns_at else word
            drop = np.float32(ids[p] >> _CERTAINTY) / _CERTAIN - exp(log_probs[column])
            if drop > _ZERO:
                distances[p] += doubt * drop
                ratio = distances[p] / numbers[offset]
        if ratio < scaled[NEAREST - 1]:
            k = NEAREST - 1
            while k > 0 and ratio < scaled[k - 1]:
                scaled[k], energies[k] = scaled[k - 1], energies[k - 1]
                words[k], chosen[k] = words[k - 1], chosen[k - 1]
                k -= 1
            scaled[k], energies[k] = ratio, -distances[p] / numbers[offset + 1]
            words[k], chosen[k] = word, base + place
            count = min(count + 1, NEAREST)
    return count


@part
def _read_row(
    blocks_at: int,
    inner_at: int,
    row: int,
    together: int,
    covered_at: int,
    positions: int,
    log_probs_at: int,
    number_of_words: int,
    columns_at: int,
    energies: Float32,
    q: Float32,
    words: Int64,
    first: Int64,
    nearest: Int64,
) -> np.float32:
    """The logit of the share; row: among those that read the same blocks."""
    for k in range(NEAREST):
        q[k], words[k], nearest[k] = _FAR, 0, 0
    taken, at = 0, inner_at
    log_probs = array_of(log_probs_at, number_of_words if log_probs_at else 0, np.float32)
    for number in range(BLOCKS):
        block = array_of(blocks_at + 8 * OF_BLOCK * number, OF_BLOCK, np.int64)
        count = block[SKIPPED] + block[COUNT]
        if count:
            distances = array_of(at + 4 * row * count, count, np.float32)
            taken = _look_through(
                block,
                distances,
                covered_at,
                positions,
                log_probs,
                columns_at,
                taken,
                q,
                energies,
                words,
                nearest,
            )
        at += 4 * together * count
    share = _ONE - q[0] if taken else _ZERO
    share = min(share, _FULL)
    if not share > _ZERO:
        for k in range(NEAREST):
            q[k], words[k], first[k], nearest[k] = _ZERO, 0, k, 0
        return _NEVER
    maximum = _NEVER
    for k in range(taken):
        maximum = energies[k] if energies[k] > maximum else maximum
    total = _ZERO
    for k in range(NEAREST):
        q[k] = exp(energies[k] - maximum) if k < taken else _ZERO
        total += q[k]
    for k in range(NEAREST):
        q[k] /= total
        words[k] = words[k] if k < taken else words[0]
        nearest[k] = nearest[k] if k < taken else nearest[0]
        first[k] = k
        for j in range(k):
            if words[j] == words[k]:
                first[k] = j
                break
    if covered_at:
        covered = array_of(covered_at, positions, np.float32)
        for k in range(taken):
            covered[nearest[k]] += share * q[k]
    return np.float32(log(np.float64(share)) - log(np.float64(_ONE - share)))
