"""The gates of memories, compiled: of copying, and of a shallow session cache, which is asked and
gated in one call. Arguments as in `reading.py`; what no step changes of a cache stands in a table
of its own (`CONTEXT_SIZE` and what follows)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import fast, part
from tmnmt.compiled.reading import (
    AGREEMENT,
    BEFORE,
    FACTS,
    FOLLOWS,
    KEY_SIZE,
    KEYS,
    LEVEL,
    MASK,
    MATCH,
    MAXIMUM,
    OF_POSITIONS,
    POSITIONS,
    READ,
    SENTENCE,
    attend,
    match_keys,
    prefer,
    tell_facts,
)
from tmnmt.compiled.vectors import dot, exp, inner_products, log, squares_around

Float32 = NDArray[np.float32]
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
    logits, output_weights = (
        array_of(logits_at, rows, np.float32),
        array_of(out_at, width, np.float32),
    )
    for row in range(rows):
        preactivation = array_of(before_at + 4 * row * width, width, np.float32)
        blended = array_of(blended_at + 4 * row * read_size, read_size, np.float32)
        facts = array_of(facts_at + 4 * row * FACTS, FACTS, np.float32)
        if signs_at:
            _add_signs(preactivation, array_of(signs_at, width * 5, np.float32), facts, blended)
        logit = np.float32(bias) + _gate_logit(preactivation, blended, gate_at, output_weights)
        if trusts:
            trust = steep * (np.float64(blended[read_size - 2]) - doubt)
            logit += np.float32(log_sigmoid(trust))
        logits[row] = logit if facts[MAXIMUM] > _ZERO else _NEVER
    return 0


@fast
def _add_signs(preactivation: Float32, signs: Float32, facts: Float32, blended: Float32) -> None:
    """The five signs times their weights: match, agreement, f, e and g."""
    f, e = blended[blended.size - 2], blended[blended.size - 1]
    match, agreement, follows = facts[MATCH], facts[AGREEMENT], facts[FOLLOWS]
    for i in range(preactivation.size):
        preactivation[i] += (
            match * signs[5 * i]
            + agreement * signs[5 * i + 1]
            + f * signs[5 * i + 2]
            + e * signs[5 * i + 3]
            + follows * signs[5 * i + 4]
        )


@fast
def _gate_logit(
    preactivation: Float32, blended: Float32, start: int, output_weights: Float32
) -> np.float32:
    result = _ZERO
    for i in range(preactivation.size):
        result += _tanh(preactivation[i] + blended[start + i]) * output_weights[i]
    return result


def cover(
    rows: int, positions: int, logits_at: int, q_at: int, coverage_at: int, covered_at: int
) -> int:
    """covered (R, P): coverage (R, P) + sigmoid(logits (R,)) q (R, P)."""
    logits = array_of(logits_at, rows, np.float32)
    for row in range(rows):
        q = array_of(q_at + 4 * row * positions, positions, np.float32)
        coverage = array_of(coverage_at + 4 * row * positions, positions, np.float32)
        covered = array_of(covered_at + 4 * row * positions, positions, np.float32)
        share = sigmoid(logits[row]) if logits[row] > _NEVER else _ZERO
        for p in range(positions):
            covered[p] = coverage[p] + share * q[p]
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
    features = array_of(own_at, rows * own_size, np.float32)
    _side_by_side(
        array_of(context_at, rows * context_size, np.float32),
        array_of(hidden_at, rows * state_size, np.float32),
        features,
        rows,
    )
    if cache[QUERY_BY]:
        query_at = matched_at
        _multiplied(
            features, cache[QUERY_BY], array_of(query_at, rows * key_size, np.float32), rows
        )
    match_keys(rows, positions, key_size, sentence, query_at, slots[KEYS], scores_at)
    if cache[EMPTY]:
        if cache[KEY_BY]:
            _multiplied(
                features, cache[KEY_BY], array_of(key_at, rows * key_size, np.float32), rows
            )
        else:
            key_at = context_at
        match_keys(rows, positions, key_size, sentence, key_at, slots[KEYS], alike_at)
    follows = np.float32(unit) * _number(cache[KAPPA]) if cache[KAPPA] else _ZERO
    weights = array_of(cache[SIGN_WEIGHTS], cache[SIGNS], np.float32)
    of_context = array_of(cache[CONTEXT_WEIGHT], context_size, np.float32)
    of_state = array_of(cache[STATE_WEIGHT], state_size, np.float32)
    for row in range(rows):
        offset = sentence[row] * positions
        q = array_of(q_at + 4 * row * positions, positions, np.float32)
        scores = array_of(scores_at + 4 * row * positions, positions, np.float32)
        previous_ids = array_of(slots[BEFORE] + 8 * offset, positions, np.int64)
        for p in range(positions):
            q[p] = scores[p]
        prefer(q, previous_ids, prev[row], follows)
        level = attend(q, array_of(slots[MASK] + offset, positions, np.uint8), _ONE)
        context = array_of(context_at + 4 * row * context_size, context_size, np.float32)
        tell_facts(facts, q, scores, previous_ids, prev[row], level, context)
        values = array_of(slots[READ] + 8 * offset, 2 * positions, np.float32)
        gate = dot(features, row * own_size, of_context, 0, context_size)
        gate += dot(features, row * own_size + context_size, of_state, 0, state_size)
        gate += _weighed(q, values)
        log_odds, slot_share = 0.0, _ONE
        if cache[EMPTY]:
            key = array_of(key_at + 4 * row * key_size, key_size, np.float32)
            alike = array_of(alike_at + 4 * row * positions, positions, np.float32)
            empty = array_of(cache[EMPTY], 2, np.float32)
            log_odds = unit * _slot_log_odds(key, _recalled(q, values, alike), empty)
            slot_share = sigmoid(np.float32(log_odds))
        logit = float(_number(cache[BIAS]) + gate) + unit * float(
            _trusted(weights, facts, slot_share)
        )
        if cache[EMPTY]:
            logit = _logit_of_product(logit, log_odds)
        logits[row] = np.float32(logit) if facts[MAXIMUM] > _ZERO else _NEVER
    return 0


@fast
def _number(address: int) -> np.float32:
    number: np.float32 = array_of(address, 1, np.float32)[0]
    return number


@fast
def _weighed(q: Float32, values: Float32) -> np.float32:
    """W m of the slots that are read by q."""
    result = _ZERO
    for p in range(q.size):
        result += q[p] * values[2 * p]
    return result


@fast
def _recalled(q: Float32, values: Float32, alike: Float32) -> np.float32:
    """A key times what q recalls of the slots' keys at length 1; alike (P,): it times each."""
    result = _ZERO
    for p in range(q.size):
        result += q[p] * values[2 * p + 1] * alike[p]
    return result


@part
def _side_by_side(context: Float32, hidden: Float32, features: Float32, rows: int) -> None:
    first, second = context.size // rows, hidden.size // rows
    for row in range(rows):
        start = row * (first + second)
        for i in range(first):
            features[start + i] = context[row * first + i]
        for i in range(second):
            features[start + first + i] = hidden[row * second + i]


@part
def _multiplied(features: Float32, weights_at: int, output: Float32, rows: int) -> None:
    size = features.size // rows
    inner_products(
        features, array_of(weights_at, output.size // rows * size, np.float32), output, rows, size
    )


@part
def _slot_log_odds(key: Float32, recalled: np.float32, empty: Float32) -> float:
    """b (cos - a) of this key, by its product with what is recalled, a and b."""
    length = math.sqrt(squares_around(key, 0, key.size, _ZERO))
    return float(empty[1]) * (float(recalled) / max(length, 1e-12) - float(empty[0]))


@part
def _trusted(weights: Float32, facts: Float32, slot_share: np.float32) -> np.float32:
    """The signs times their weights: match, level, and what is left of the greatest share and of
    what follows."""
    trust = _ZERO
    if weights.size:
        trust = weights[0] * facts[MATCH] + weights[1] * facts[LEVEL]
        trust += weights[2] * slot_share * facts[MAXIMUM]
    if weights.size > 3:
        trust += weights[3] * slot_share * facts[FOLLOWS]
    return trust


@part
def _logit_of_product(a: float, b: float) -> float:
    """The logit of sigmoid(a) sigmoid(b): -log(e^-a + e^-b + e^-(a + b))."""
    return -_log_of_sum(_log_of_sum(-a, -b), -(a + b))


@part
def _log_of_sum(a: float, b: float) -> float:
    """log(e^a + e^b)"""
    return max(a, b) + _log_1_plus_power(-abs(a - b))


@fast
def _tanh(x: np.float32) -> np.float32:
    power = exp(np.float32(-2.0) * abs(x))
    even = (_ONE - power) / (_ONE + power)
    return even if x >= _ZERO else -even


@fast
def sigmoid(x: np.float32) -> np.float32:
    power = exp(-abs(x))
    return _ONE / (_ONE + power) if x >= _ZERO else power / (_ONE + power)


@part
def log_sigmoid(x: float) -> float:
    """log(1 / (1 + e^-x)), of any x."""
    return min(x, 0.0) - _log_1_plus_power(-abs(x))


@part
def _log_1_plus_power(x: float) -> float:
    """log(1 + e^x) of x <= 0."""
    return log(1.0 + np.float64(exp(np.float32(x))))
