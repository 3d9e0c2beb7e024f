"""What memories read in a decoder's step, compiled: an attention over positions, of pairs or of a
session cache's slots.

    R: rows    N: sentences    P: positions    l: numbers of a key    D: numbers that are blended

Every function is told the addresses of contiguous arrays of fp32, but for ids, rows and places,
which are int64, and masks of one byte; 0 stands for an array that is not there. What no step
changes stands in a table (int64) of such addresses and of sizes (`POSITIONS` and what follows).
Python calls them by `steps.py`; what they calculate, `layers/` says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import fast
from tmnmt.compiled.vectors import (
    LANES,
    broadcast,
    dot,
    greatest,
    inner_products,
    load,
    softmax,
    squares_around,
    store,
    times_plus,
)

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]
# numbers that say how far what a row has read is to be trusted: the match and the agreement, both
# over the square of the context or state; the share that follows the word before; the greatest
# share; the level of all energies over the square of the context
MATCH, AGREEMENT, FOLLOWS, MAXIMUM, LEVEL, FACTS = 0, 1, 2, 3, 4, 5
# the table of positions: sizes, then which sentence each row reads and what there is to read
(
    POSITIONS,
    KEY_SIZE,
    READ_SIZE,
    SENTENCE,
    KEYS,
    READ,
    MASK,
    BEFORE,
    WORTH,
    OF_POSITIONS,
) = range(10)
_ZERO, _ONE, _NEVER = np.float32(0.0), np.float32(1.0), np.float32(-np.inf)
_SMALL = np.float32(1e-6)  # keeps a division by the square of a vanishing state finite
_SMALLEST = np.float32(1e-37)
UNREAD = np.float32(1e-9)  # a share so small is none: most positions have less


def read_positions(
    rows: int,
    positions_at: int,
    state_size: int,
    context_size: int,
    query_at: int,
    prev_at: int,
    last_at: int,
    last_size: int,
    coverage_at: int,
    hidden_at: int,
    context_at: int,
    follows_worth: float,
    pointer: float,
    covered: float,
    sharpness: float,
    room_at: int,
    q_at: int,
    blended_at: int,
    facts_at: int,
) -> int:
    """q (R, P), the blend of `read` by it (R, D) and the facts (R, 5). A row reads the positions of
    its sentence: keys (N, P, l), read (N, P, D), which begins with a state of `state_size` numbers
    or none, mask, before, worth (N, P); last (R, P'), coverage (R, P), hidden (R, `state_size`) and
    context (R, `context_size`) are its own. Zeros where there is nothing to read. room: R + 3 times
    P numbers."""
    table = array_of(positions_at, OF_POSITIONS, np.int64)
    positions, key_size, read_size = table[POSITIONS], table[KEY_SIZE], table[READ_SIZE]
    sentence, prev = array_of(table[SENTENCE], rows, np.int64), array_of(prev_at, rows, np.int64)
    nonzero = array_of(room_at, positions, np.int64)
    came = array_of(room_at + 8 * positions, positions, np.float32)
    scores_at = room_at + 12 * positions
    match_keys(rows, positions, key_size, sentence, query_at, table[KEYS], scores_at)
    for row in range(rows):
        offset = sentence[row] * positions
        q = array_of(q_at + 4 * row * positions, positions, np.float32)
        facts = array_of(facts_at + 4 * row * FACTS, FACTS, np.float32)
        blended = array_of(blended_at + 4 * row * read_size, read_size, np.float32)
        mask = array_of(table[MASK] + offset, positions, np.uint8)
        previous_ids = array_of(table[BEFORE] + 8 * offset, positions, np.int64)
        scores = array_of(scores_at + 4 * row * positions, positions, np.float32)
        for p in range(positions):
            q[p] = scores[p]
        if table[WORTH]:
            _add_scaled(q, array_of(table[WORTH] + 4 * offset, positions, np.float32), _ONE)
        prefer(q, previous_ids, prev[row], np.float32(follows_worth))
        if last_at and last_size:
            last = array_of(last_at + 4 * row * last_size, last_size, np.float32)
            _point(q, last, previous_ids, prev[row], np.float32(pointer), came)
        if coverage_at:
            coverage = array_of(coverage_at + 4 * row * positions, positions, np.float32)
            _add_scaled(q, coverage, np.float32(-covered))
        level = attend(q, mask, np.float32(sharpness))
        values = array_of(table[READ] + 4 * offset * read_size, positions * read_size, np.float32)
        _blend(q, values, blended, nonzero)
        context = array_of(context_at + 4 * row * context_size, context_size, np.float32)
        tell_facts(facts, q, scores, previous_ids, prev[row], level, context)
        if state_size and level > _NEVER:
            hidden = array_of(hidden_at + 4 * row * state_size, state_size, np.float32)
            square = max(squares_around(hidden, 0, state_size, _ZERO), _SMALL)
            facts[AGREEMENT] = dot(hidden, 0, blended, 0, state_size) / square
    return 0


@fast
def tell_facts(
    facts: Float32,
    q: Float32,
    scores: Float32,
    previous_ids: Int64,
    prev: int,
    level: np.float32,
    context: Float32,
) -> None:
    """The facts, but for the agreement: of how q was read."""
    _clear(facts)
    if level > _NEVER:
        square = max(squares_around(context, 0, context.size, _ZERO), _SMALL)
        facts[MATCH] = dot(q, 0, scores, 0, q.size) / square
        facts[FOLLOWS] = _following(q, previous_ids, prev)
        facts[MAXIMUM] = greatest(q, 0, q.size)
        facts[LEVEL] = level / square


@fast
def _clear(x: Float32) -> None:
    for i in range(x.size):
        x[i] = _ZERO


@fast
def match_keys(
    rows: int,
    positions: int,
    size: int,
    sentence: Int64,
    query_at: int,
    keys_at: int,
    scores_at: int,
) -> None:
    """scores (R, P): inner products of queries (R, `size`) with their sentences' keys, which are
    read once for all rows of a sentence that stand side by side."""
    begin = 0
    while begin < rows:
        end = begin + 1
        while end < rows and sentence[end] == sentence[begin]:
            end += 1
        inner_products(
            array_of(query_at + 4 * begin * size, (end - begin) * size, np.float32),
            array_of(
                keys_at + 4 * sentence[begin] * positions * size, positions * size, np.float32
            ),
            array_of(scores_at + 4 * begin * positions, (end - begin) * positions, np.float32),
            end - begin,
            size,
        )
        begin = end


@fast
def _add_scaled(x: Float32, y: Float32, factor: np.float32) -> None:
    for i in range(x.size):
        x[i] += factor * y[i]


@fast
def prefer(q: Float32, previous_ids: Int64, prev: int, worth: np.float32) -> None:
    for p in range(q.size):
        q[p] += worth if previous_ids[p] == prev else _ZERO


@fast
def _point(
    q: Float32, last: Float32, previous_ids: Int64, prev: int, worth: np.float32, came: Float32
) -> None:
    """Adds `worth` times what the step before read of the position before, where the word before
    was just written, the greatest made 1."""
    maximum = _SMALLEST
    for p in range(last.size):
        came[p] = last[p - 1 if p else last.size - 1] if previous_ids[p] == prev else _ZERO
        maximum = came[p] if came[p] > maximum else maximum
    factor = worth / maximum
    for p in range(last.size):
        q[p] += factor * came[p]


@fast
def attend(q: Float32, mask: UInt8, sharpness: np.float32) -> np.float32:
    """The softmax of the energies q where the mask is set, 0 elsewhere, in place; the logarithm of
    the sum of their powers, -inf where there are none. Shares below `UNREAD` become 0."""
    has_position = False
    for p in range(q.size):
        has_position |= mask[p] != 0
    if not has_position:
        _clear(q)
        return _NEVER
    for p in range(q.size):
        q[p] = q[p] * sharpness if mask[p] else _NEVER
    level = softmax(q, 0, q.size)
    for p in range(q.size):
        q[p] = q[p] if q[p] >= UNREAD else _ZERO
    return level


@fast
def _blend(q: Float32, values: Float32, blended: Float32, nonzero: Int64) -> None:
    """blended becomes the sum of `values` (P, its size) by q. nonzero (P,): room."""
    count, size = 0, blended.size
    for p in range(q.size):
        nonzero[count] = p
        count += 1 if q[p] > _ZERO else 0
    begin = 0
    while begin + 4 * LANES <= size:
        a, b, c, d = broadcast(_ZERO), broadcast(_ZERO), broadcast(_ZERO), broadcast(_ZERO)
        for n in range(count):
            share, start = broadcast(q[nonzero[n]]), nonzero[n] * size + begin
            a = times_plus(share, load(values, start), a)
            b = times_plus(share, load(values, start + LANES), b)
            c = times_plus(share, load(values, start + 2 * LANES), c)
            d = times_plus(share, load(values, start + 3 * LANES), d)
        store(blended, begin, a)
        store(blended, begin + LANES, b)
        store(blended, begin + 2 * LANES, c)
        store(blended, begin + 3 * LANES, d)
        begin += 4 * LANES
    for i in range(begin, size):
        result = _ZERO
        for n in range(count):
            result += q[nonzero[n]] * values[nonzero[n] * size + i]
        blended[i] = result


@fast
def _following(q: Float32, previous_ids: Int64, prev: int) -> np.float32:
    result = _ZERO
    for p in range(q.size):
        result += q[p] if previous_ids[p] == prev else _ZERO
    return result


def blend_positions(
    rows: int,
    positions: int,
    size: int,
    sentence_at: int,
    q_at: int,
    values_at: int,
    room_at: int,
    blended_at: int,
) -> int:
    """The sums (R, `size`) of the sentence's values (N, P, `size`) by q (R, P). room (P,) int64."""
    nonzero = array_of(room_at, positions, np.int64)
    sentence = array_of(sentence_at, rows, np.int64)
    for row in range(rows):
        byte_offset = 4 * sentence[row] * positions * size
        blended = array_of(blended_at + 4 * row * size, size, np.float32)
        _blend(
            array_of(q_at + 4 * row * positions, positions, np.float32),
            array_of(values_at + byte_offset, positions * size, np.float32),
            blended,
            nonzero,
        )
    return 0
