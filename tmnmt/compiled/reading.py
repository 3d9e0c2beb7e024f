"""What memories add to a decoder's step, compiled: an attention over positions, the gates of
copying and of a shallow session cache, and words mixed into probabilities.

    R: rows    N: sentences    P: positions    l: numbers of a key    D: numbers that are blended
    V: vocabulary

Every function is told the addresses of contiguous arrays of fp32, but for ids, rows and places,
which are int64, and masks of one byte; 0 stands for an array that is not there. What no step
changes stands in tables (int64) of such addresses and of sizes: one of the positions (`POSITIONS`
and what follows), one of a session cache (`CONTEXT_SIZE` and what follows). Python calls them by
`steps.py`; what they calculate, `layers/` says."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import fast, part
from tmnmt.compiled.vectors import (
    LANES,
    dot,
    exp,
    greatest,
    inner_products,
    load,
    log,
    log_of_sums,
    same,
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
MATCH, AGREEMENT, FOLLOWS, MOST, LEVEL, FACTS = 0, 1, 2, 3, 4, 5
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
# the table of a shallow session cache: sizes, then its weights
(
    CONTEXT_SIZE,
    STATE_SIZE,
    SIGNS,
    QUERY_BY,
    KEY_BY,
    KAPPA,
    CONTEXT_WEIGHT,
    STATE_WEIGHT,
    BIAS,
    SIGN_WEIGHTS,
    EMPTY,
    OF_CACHE,
) = range(12)
_ZERO, _ONE, _NEVER = np.float32(0.0), np.float32(1.0), np.float32(-np.inf)
_SMALL = np.float32(1e-6)  # keeps a division by the square of a vanishing state finite
_LEAST = np.float32(1e-37)
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
    where = array_of(room_at, positions, np.int64)
    came = array_of(room_at + 8 * positions, positions, np.float32)
    scores_at = room_at + 12 * positions
    _match(rows, positions, key_size, sentence, query_at, table[KEYS], scores_at)
    for row in range(rows):
        of = sentence[row] * positions
        q = array_of(q_at + 4 * row * positions, positions, np.float32)
        facts = array_of(facts_at + 4 * row * FACTS, FACTS, np.float32)
        blended = array_of(blended_at + 4 * row * read_size, read_size, np.float32)
        mask = array_of(table[MASK] + of, positions, np.uint8)
        before = array_of(table[BEFORE] + 8 * of, positions, np.int64)
        scores = array_of(scores_at + 4 * row * positions, positions, np.float32)
        for p in range(positions):
            q[p] = scores[p]
        if table[WORTH]:
            _add_scaled(q, array_of(table[WORTH] + 4 * of, positions, np.float32), _ONE)
        _prefer(q, before, prev[row], np.float32(follows_worth))
        if last_at and last_size:
            last = array_of(last_at + 4 * row * last_size, last_size, np.float32)
            _point(q, last, before, prev[row], np.float32(pointer), came)
        if coverage_at:
            coverage = array_of(coverage_at + 4 * row * positions, positions, np.float32)
            _add_scaled(q, coverage, np.float32(-covered))
        level = _attend(q, mask, np.float32(sharpness))
        read = array_of(table[READ] + 4 * of * read_size, positions * read_size, np.float32)
        _blend(q, read, blended, where)
        context = array_of(context_at + 4 * row * context_size, context_size, np.float32)
        _tell(facts, q, scores, before, prev[row], level, context)
        if state_size and level > _NEVER:
            hidden = array_of(hidden_at + 4 * row * state_size, state_size, np.float32)
            square = max(squares_around(hidden, 0, state_size, _ZERO), _SMALL)
            facts[AGREEMENT] = dot(hidden, 0, blended, 0, state_size) / square
    return 0


@fast
def _tell(
    facts: Float32,
    q: Float32,
    scores: Float32,
    before: Int64,
    prev: int,
    level: np.float32,
    context: Float32,
) -> None:
    """The facts, but for the agreement: of how q was read."""
    _clear(facts)
    if level > _NEVER:
        square = max(squares_around(context, 0, context.size, _ZERO), _SMALL)
        facts[MATCH] = dot(q, 0, scores, 0, q.size) / square
        facts[FOLLOWS] = _following(q, before, prev)
        facts[MOST] = greatest(q, 0, q.size)
        facts[LEVEL] = level / square


@fast
def _clear(x: Float32) -> None:
    for i in range(x.size):
        x[i] = _ZERO


@fast
def _match(
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
def _prefer(q: Float32, before: Int64, prev: int, worth: np.float32) -> None:
    for p in range(q.size):
        q[p] += worth if before[p] == prev else _ZERO


@fast
def _point(
    q: Float32, last: Float32, before: Int64, prev: int, worth: np.float32, came: Float32
) -> None:
    """Adds `worth` times what the step before read of the position before, where the word before
    was just written, the greatest made 1."""
    most = _LEAST
    for p in range(last.size):
        came[p] = last[p - 1 if p else last.size - 1] if before[p] == prev else _ZERO
        most = came[p] if came[p] > most else most
    factor = worth / most
    for p in range(last.size):
        q[p] += factor * came[p]


@fast
def _attend(q: Float32, mask: UInt8, sharpness: np.float32) -> np.float32:
    """The softmax of the energies q where the mask is set, 0 elsewhere, in place; the logarithm of
    the sum of their powers, -inf where there are none. Shares below `UNREAD` become 0."""
    there = False
    for p in range(q.size):
        there |= mask[p] != 0
    if not there:
        _clear(q)
        return _NEVER
    for p in range(q.size):
        q[p] = q[p] * sharpness if mask[p] else _NEVER
    level = softmax(q, 0, q.size)
    for p in range(q.size):
        q[p] = q[p] if q[p] >= UNREAD else _ZERO
    return level


@fast
def _blend(q: Float32, read: Float32, blended: Float32, where: Int64) -> None:
    """blended becomes the sum of `read` (P, its size) by q. where (P,): room."""
    count, size = 0, blended.size
    for p in range(q.size):
        where[count] = p
        count += 1 if q[p] > _ZERO else 0
    begin = 0
    while begin + 4 * LANES <= size:
        a, b, c, d = same(_ZERO), same(_ZERO), same(_ZERO), same(_ZERO)
        for n in range(count):
            share, at = same(q[where[n]]), where[n] * size + begin
            a = times_plus(share, load(read, at), a)
            b = times_plus(share, load(read, at + LANES), b)
            c = times_plus(share, load(read, at + 2 * LANES), c)
            d = times_plus(share, load(read, at + 3 * LANES), d)
        store(blended, begin, a)
        store(blended, begin + LANES, b)
        store(blended, begin + 2 * LANES, c)
        store(blended, begin + 3 * LANES, d)
        begin += 4 * LANES
    for i in range(begin, size):
        result = _ZERO
        for n in range(count):
            result += q[where[n]] * read[where[n] * size + i]
        blended[i] = result


@fast
def _following(q: Float32, before: Int64, prev: int) -> np.float32:
    result = _ZERO
    for p in range(q.size):
        result += q[p] if before[p] == prev else _ZERO
    return result


def copy_logits(
    rows: int,
    width: int,
    read_size: int,
    gate_at: int,
    before_at: int,
    blended_at: int,
    facts_at: int,
    signs_at: int,
    out_at: int,
    bias: float,
    trusts: int,
    doubt: float,
    steep: float,
    logits_at: int,
) -> int:
    """The copy gate's logits (R,), -inf where nothing was read: of what does not depend on it,
    before (R, `width`), W z~ that begins at `gate_at` of what was blended, and the facts, by signs
    (`width`, 5) and out (`width`,)."""
    logits, out = array_of(logits_at, rows, np.float32), array_of(out_at, width, np.float32)
    for row in range(rows):
        before = array_of(before_at + 4 * row * width, width, np.float32)
        blended = array_of(blended_at + 4 * row * read_size, read_size, np.float32)
        facts = array_of(facts_at + 4 * row * FACTS, FACTS, np.float32)
        if signs_at:
            _add_signs(before, array_of(signs_at, width * 5, np.float32), facts, blended)
        logit = np.float32(bias) + _through(before, blended, gate_at, out)
        if trusts:
            trust = steep * (np.float64(blended[read_size - 2]) - doubt)
            logit += np.float32(_log_sigmoid(trust))
        logits[row] = logit if facts[MOST] > _ZERO else _NEVER
    return 0


@fast
def _add_signs(before: Float32, signs: Float32, facts: Float32, blended: Float32) -> None:
    """The five signs times their weights: match, agreement, f, e and g."""
    f, e = blended[blended.size - 2], blended[blended.size - 1]
    match, agreement, follows = facts[MATCH], facts[AGREEMENT], facts[FOLLOWS]
    for i in range(before.size):
        before[i] += (
            match * signs[5 * i]
            + agreement * signs[5 * i + 1]
            + f * signs[5 * i + 2]
            + e * signs[5 * i + 3]
            + follows * signs[5 * i + 4]
        )


@fast
def _through(before: Float32, blended: Float32, at: int, out: Float32) -> np.float32:
    result = _ZERO
    for i in range(before.size):
        result += _tanh(before[i] + blended[at + i]) * out[i]
    return result


@fast
def _tanh(x: np.float32) -> np.float32:
    power = exp(np.float32(-2.0) * abs(x))
    even = (_ONE - power) / (_ONE + power)
    return even if x >= _ZERO else -even


@fast
def _sigmoid(x: np.float32) -> np.float32:
    power = exp(-abs(x))
    return _ONE / (_ONE + power) if x >= _ZERO else power / (_ONE + power)


@part
def _log_sigmoid(x: float) -> float:
    """log(1 / (1 + e^-x)), of any x."""
    return min(x, 0.0) - _log_1_plus_power(-abs(x))


@part
def _log_1_plus_power(x: float) -> float:
    """log(1 + e^x) of x <= 0."""
    return log(1.0 + np.float64(exp(np.float32(x))))


def cover(
    rows: int, positions: int, logits_at: int, q_at: int, coverage_at: int, covered_at: int
) -> int:
    """covered (R, P): coverage (R, P) + sigmoid(logits (R,)) q (R, P)."""
    logits = array_of(logits_at, rows, np.float32)
    for row in range(rows):
        q = array_of(q_at + 4 * row * positions, positions, np.float32)
        coverage = array_of(coverage_at + 4 * row * positions, positions, np.float32)
        covered = array_of(covered_at + 4 * row * positions, positions, np.float32)
        share = _sigmoid(logits[row]) if logits[row] > _NEVER else _ZERO
        for p in range(positions):
            covered[p] = coverage[p] + share * q[p]
    return 0


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
    where = array_of(room_at, positions, np.int64)
    sentence = array_of(sentence_at, rows, np.int64)
    for row in range(rows):
        of = 4 * sentence[row] * positions * size
        blended = array_of(blended_at + 4 * row * size, size, np.float32)
        _blend(
            array_of(q_at + 4 * row * positions, positions, np.float32),
            array_of(values_at + of, positions * size, np.float32),
            blended,
            where,
        )
    return 0


def recall_slots(
    rows: int,
    slots_at: int,
    cache_at: int,
    prev_at: int,
    context_at: int,
    hidden_at: int,
    query_at: int,
    unit: float,
    room_at: int,
    q_at: int,
    logits_at: int,
) -> int:
    """What a shallow session cache is asked: q (R, P) of its slots, and its logits (R,), -inf where
    it is empty.

    Weights (`KEY_SIZE`, l + d) make of context and state, side by side, the query and the key that
    a slot written now would get; where there are none, these are what is given, and the context.
    What is read of a slot is W m and one over the length of its key. kappa, the empty slot and the
    signs, none or 3 or 4 weights, are in `unit`s. room: R times two P, l + d and two `KEY_SIZE`,
    and 5 numbers."""
    slots = array_of(slots_at, OF_POSITIONS, np.int64)
    cache = array_of(cache_at, OF_CACHE, np.int64)
    positions, key_size = slots[POSITIONS], slots[KEY_SIZE]
    context_size, state_size = cache[CONTEXT_SIZE], cache[STATE_SIZE]
    own_size = context_size + state_size
    sentence, prev = array_of(slots[SENTENCE], rows, np.int64), array_of(prev_at, rows, np.int64)
    logits = array_of(logits_at, rows, np.float32)
    scores_at = room_at
    alike_at = scores_at + 4 * rows * positions
    own_at = alike_at + 4 * rows * positions
    key_at = own_at + 4 * rows * own_size
    matched_at = key_at + 4 * rows * key_size
    facts = array_of(matched_at + 4 * rows * key_size, FACTS, np.float32)
    own = array_of(own_at, rows * own_size, np.float32)
    _side_by_side(
        array_of(context_at, rows * context_size, np.float32),
        array_of(hidden_at, rows * state_size, np.float32),
        own,
        rows,
    )
    if cache[QUERY_BY]:
        query_at = matched_at
        _multiplied(own, cache[QUERY_BY], array_of(query_at, rows * key_size, np.float32), rows)
    _match(rows, positions, key_size, sentence, query_at, slots[KEYS], scores_at)
    if cache[EMPTY]:
        if cache[KEY_BY]:
            _multiplied(own, cache[KEY_BY], array_of(key_at, rows * key_size, np.float32), rows)
        else:
            key_at = context_at
        _match(rows, positions, key_size, sentence, key_at, slots[KEYS], alike_at)
    follows = np.float32(unit) * _number(cache[KAPPA]) if cache[KAPPA] else _ZERO
    weights = array_of(cache[SIGN_WEIGHTS], cache[SIGNS], np.float32)
    of_context = array_of(cache[CONTEXT_WEIGHT], context_size, np.float32)
    of_state = array_of(cache[STATE_WEIGHT], state_size, np.float32)
    for row in range(rows):
        of = sentence[row] * positions
        q = array_of(q_at + 4 * row * positions, positions, np.float32)
        scores = array_of(scores_at + 4 * row * positions, positions, np.float32)
        before = array_of(slots[BEFORE] + 8 * of, positions, np.int64)
        for p in range(positions):
            q[p] = scores[p]
        _prefer(q, before, prev[row], follows)
        level = _attend(q, array_of(slots[MASK] + of, positions, np.uint8), _ONE)
        context = array_of(context_at + 4 * row * context_size, context_size, np.float32)
        _tell(facts, q, scores, before, prev[row], level, context)
        read = array_of(slots[READ] + 8 * of, 2 * positions, np.float32)
        gate = dot(own, row * own_size, of_context, 0, context_size)
        gate += dot(own, row * own_size + context_size, of_state, 0, state_size)
        gate += _weighed(q, read)
        meant, left = 0.0, _ONE
        if cache[EMPTY]:
            key = array_of(key_at + 4 * row * key_size, key_size, np.float32)
            alike = array_of(alike_at + 4 * row * positions, positions, np.float32)
            empty = array_of(cache[EMPTY], 2, np.float32)
            meant = unit * _meant(key, _recalled(q, read, alike), empty)
            left = _sigmoid(np.float32(meant))
        logit = float(_number(cache[BIAS]) + gate) + unit * float(_trusted(weights, facts, left))
        if cache[EMPTY]:
            logit = _logit_of_product(logit, meant)
        logits[row] = np.float32(logit) if facts[MOST] > _ZERO else _NEVER
    return 0


@fast
def _number(at: int) -> np.float32:
    number: np.float32 = array_of(at, 1, np.float32)[0]
    return number


@fast
def _weighed(q: Float32, read: Float32) -> np.float32:
    """W m of the slots that are read by q."""
    result = _ZERO
    for p in range(q.size):
        result += q[p] * read[2 * p]
    return result


@fast
def _recalled(q: Float32, read: Float32, alike: Float32) -> np.float32:
    """A key times what q recalls of the slots' keys at length 1; alike (P,): it times each."""
    result = _ZERO
    for p in range(q.size):
        result += q[p] * read[2 * p + 1] * alike[p]
    return result


@part
def _side_by_side(context: Float32, hidden: Float32, own: Float32, rows: int) -> None:
    first, second = context.size // rows, hidden.size // rows
    for row in range(rows):
        at = row * (first + second)
        for i in range(first):
            own[at + i] = context[row * first + i]
        for i in range(second):
            own[at + first + i] = hidden[row * second + i]


@part
def _multiplied(own: Float32, weights_at: int, out: Float32, rows: int) -> None:
    size = own.size // rows
    inner_products(own, array_of(weights_at, out.size // rows * size, np.float32), out, rows, size)


@part
def _meant(key: Float32, recalled: np.float32, empty: Float32) -> float:
    """b (cos - a) of this key, by its product with what is recalled, a and b."""
    length = math.sqrt(squares_around(key, 0, key.size, _ZERO))
    return float(empty[1]) * (float(recalled) / max(length, 1e-12) - float(empty[0]))


@part
def _trusted(weights: Float32, facts: Float32, left: np.float32) -> np.float32:
    """The signs times their weights: match, level, and what is left of the greatest share and of
    what follows."""
    trust = _ZERO
    if weights.size:
        trust = weights[0] * facts[MATCH] + weights[1] * facts[LEVEL]
        trust += weights[2] * left * facts[MOST]
    if weights.size > 3:
        trust += weights[3] * left * facts[FOLLOWS]
    return trust


@part
def _logit_of_product(a: float, b: float) -> float:
    """The logit of sigmoid(a) sigmoid(b): -log(e^-a + e^-b + e^-(a + b))."""
    return -_log_of_sum(_log_of_sum(-a, -b), -(a + b))


@part
def _log_of_sum(a: float, b: float) -> float:
    """log(e^a + e^b)"""
    return max(a, b) + _log_1_plus_power(-abs(a - b))


def first_positions(
    rows: int, positions: int, ids_at: int, room: int, room_at: int, first_at: int
) -> int:
    """first (N, P): the first position of the row that holds the same of the ids (N, P). room: a
    power of two, more than P, so many int64 for a table of what was met."""
    met = array_of(room_at, room, np.int64)
    for row in range(rows):
        ids = array_of(ids_at + 8 * row * positions, positions, np.int64)
        first = array_of(first_at + 8 * row * positions, positions, np.int64)
        for at in range(room):
            met[at] = -1
        for p in range(positions):
            at = ids[p] & (room - 1)
            while met[at] >= 0 and ids[met[at]] != ids[p]:
                at = (at + 1) & (room - 1)
            met[at] = p if met[at] < 0 else met[at]
            first[p] = met[at]
    return 0


def mix_words(
    rows: int,
    words: int,
    positions: int,
    log_probs_at: int,
    q_at: int,
    ids_at: int,
    first_at: int,
    logits_at: int,
    room_at: int,
) -> int:
    """log p (R, V) becomes log(zeta p_copy + (1 - zeta) p) in place, by q, words and where each
    stands first (R, P), and the gate's logit (R,); -inf leaves a row as it is. room: 4 numbers
    for every P rounded up to 16."""
    logits = array_of(logits_at, rows, np.float32)
    room = (positions + LANES - 1) & -LANES
    copied = array_of(room_at, room, np.float32)
    mixed = array_of(room_at + 4 * room, room, np.float32)
    where = array_of(room_at + 8 * room, positions, np.int64)
    for row in range(rows):
        if logits[row] > _NEVER:
            log_probs = array_of(log_probs_at + 4 * row * words, words, np.float32)
            q = array_of(q_at + 4 * row * positions, positions, np.float32)
            ids = array_of(ids_at + 8 * row * positions, positions, np.int64)
            first = array_of(first_at + 8 * row * positions, positions, np.int64)
            zeta = _sigmoid(logits[row])
            rest = _log_sigmoid(-np.float64(logits[row]))
            _add_to_all(log_probs, np.float32(rest))
            _clear(copied)
            for p in range(positions):
                copied[first[p]] += q[p]
            count = 0
            for p in range(positions):  # nobody can guess which are there: no branches
                where[count], copied[count] = ids[p], copied[p]
                count += 1 if copied[p] > _ZERO else 0
            for n in range(count):
                mixed[n] = log_probs[where[n]]
            for p in range(count, min(count + LANES, mixed.size)):
                mixed[p], copied[p] = _ZERO, _ONE
            log_of_sums(mixed, zeta, copied, count)
            for p in range(count):
                log_probs[where[p]] = mixed[p]
    return 0


@fast
def _add_to_all(x: Float32, number: np.float32) -> None:
    for i in range(x.size):
        x[i] += number
