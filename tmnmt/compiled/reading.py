"""What memories add to a decoder's step, compiled: an attention over positions, the gates of
copying and of a shallow session cache, and words mixed into probabilities.

    R: rows    N: sentences    P: positions    l: numbers of a key    D: numbers that are blended
    V: vocabulary

Every function is told the addresses of contiguous arrays of fp32, but for ids, rows and places,
which are int64, and masks of one byte; 0 stands for an array that is not there. Python calls them
by `steps.py`; what they calculate, `layers/` says."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import fast, part
from tmnmt.compiled.vectors import (
    LANES,
    add_scaled,
    dot,
    exp,
    greatest,
    load,
    log,
    log_of_sums,
    same,
    softmax,
    squares_around,
    times_plus,
    total,
)

Float32 = NDArray[np.float32]
Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]
# numbers that say how far what a row has read is to be trusted: the match and the agreement, both
# over the square of the context or state; the share that follows the word before; the greatest
# share; the level of all energies over the square of the context
MATCH, AGREEMENT, FOLLOWS, MOST, LEVEL, FACTS = 0, 1, 2, 3, 4, 5
_ZERO, _ONE, _NEVER = np.float32(0.0), np.float32(1.0), np.float32(-np.inf)
_SMALL = np.float32(1e-6)  # keeps a division by the square of a vanishing state finite
_LEAST = np.float32(1e-37)
UNREAD = np.float32(1e-9)  # a share so small is none: most positions have less


def read_positions(
    rows: int,
    positions: int,
    key_size: int,
    read_size: int,
    state_size: int,
    context_size: int,
    sentence_at: int,
    query_at: int,
    keys_at: int,
    read_at: int,
    mask_at: int,
    before_at: int,
    worth_at: int,
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
    scores_at: int,
    q_at: int,
    blended_at: int,
    facts_at: int,
) -> int:
    """q (R, P), the blend of `read` by it (R, D) and the facts (R, 5). A row reads the positions of
    its sentence: keys (N, P, l), read (N, P, D), which begins with a state of `state_size` numbers
    or none, mask, before, worth (N, P); last (R, P'), coverage (R, P), hidden (R, `state_size`) and
    context (R, `context_size`) are its own. Zeros where there is nothing to read. scores (2, P):
    room."""
    sentence, prev = array_of(sentence_at, rows, np.int64), array_of(prev_at, rows, np.int64)
    scores = array_of(scores_at, positions, np.float32)
    came = array_of(scores_at + 4 * positions, positions, np.float32)
    for row in range(rows):
        of = sentence[row] * positions
        q = array_of(q_at + 4 * row * positions, positions, np.float32)
        facts = array_of(facts_at + 4 * row * FACTS, FACTS, np.float32)
        blended = array_of(blended_at + 4 * row * read_size, read_size, np.float32)
        mask = array_of(mask_at + of, positions, np.uint8)
        before = array_of(before_at + 8 * of, positions, np.int64)
        query = array_of(query_at + 4 * row * key_size, key_size, np.float32)
        keys = array_of(keys_at + 4 * of * key_size, positions * key_size, np.float32)
        _clear(facts)
        _clear(blended)
        _match(query, keys, mask, scores)
        for p in range(positions):
            q[p] = scores[p]
        if worth_at:
            _add_scaled(q, array_of(worth_at + 4 * of, positions, np.float32), _ONE)
        _prefer(q, before, prev[row], np.float32(follows_worth))
        if last_at and last_size:
            last = array_of(last_at + 4 * row * last_size, last_size, np.float32)
            _point(q, last, before, prev[row], np.float32(pointer), came)
        if coverage_at:
            coverage = array_of(coverage_at + 4 * row * positions, positions, np.float32)
            _add_scaled(q, coverage, np.float32(-covered))
        level = _attend(q, mask, np.float32(sharpness))
        if level > _NEVER:
            read = array_of(read_at + 4 * of * read_size, positions * read_size, np.float32)
            _blend(q, read, blended)
            context = array_of(context_at + 4 * row * context_size, context_size, np.float32)
            square = max(squares_around(context, 0, context_size, _ZERO), _SMALL)
            facts[MATCH] = dot(q, 0, scores, 0, positions) / square
            facts[FOLLOWS] = _following(q, before, prev[row])
            facts[MOST] = greatest(q, 0, positions)
            facts[LEVEL] = level / square
            if state_size:
                hidden = array_of(hidden_at + 4 * row * state_size, state_size, np.float32)
                square = max(squares_around(hidden, 0, state_size, _ZERO), _SMALL)
                facts[AGREEMENT] = dot(hidden, 0, blended, 0, state_size) / square
    return 0


@fast
def _clear(x: Float32) -> None:
    for i in range(x.size):
        x[i] = _ZERO


@fast
def _match(query: Float32, keys: Float32, mask: UInt8, scores: Float32) -> None:
    """Inner products; of any number where the mask is not set."""
    size = query.size
    fours = scores.size & -4 if size % LANES == 0 else 0
    for p in range(0, fours, 4):
        a, b, c, d = same(_ZERO), same(_ZERO), same(_ZERO), same(_ZERO)
        at = p * size
        for i in range(0, size, LANES):
            part_of_query = load(query, i)
            a = times_plus(part_of_query, load(keys, at + i), a)
            b = times_plus(part_of_query, load(keys, at + size + i), b)
            c = times_plus(part_of_query, load(keys, at + 2 * size + i), c)
            d = times_plus(part_of_query, load(keys, at + 3 * size + i), d)
        scores[p], scores[p + 1] = total(a), total(b)
        scores[p + 2], scores[p + 3] = total(c), total(d)
    for p in range(fours, scores.size):
        scores[p] = dot(query, 0, keys, p * size, size)


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
def _blend(q: Float32, read: Float32, blended: Float32) -> None:
    for p in range(q.size):
        if q[p] > _ZERO:
            add_scaled(blended, q[p], read, p * blended.size)


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
    blended_at: int,
) -> int:
    """The sums (R, `size`) of the sentence's values (N, P, `size`) by q (R, P)."""
    sentence = array_of(sentence_at, rows, np.int64)
    for row in range(rows):
        of = 4 * sentence[row] * positions * size
        blended = array_of(blended_at + 4 * row * size, size, np.float32)
        _clear(blended)
        _blend(
            array_of(q_at + 4 * row * positions, positions, np.float32),
            array_of(values_at + of, positions * size, np.float32),
            blended,
        )
    return 0


def cache_logits(
    rows: int,
    own_size: int,
    key_size: int,
    signs: int,
    own_at: int,
    own_weight_at: int,
    bias: float,
    key_at: int,
    blended_at: int,
    facts_at: int,
    signs_at: int,
    unit: float,
    least: float,
    steep: float,
    logits_at: int,
) -> int:
    """The logits (R,) of a shallow session cache, -inf where it is empty: W m and what is recalled
    of the keys at length 1 are what was blended, (R, 1 + `key_size`); own (R, `own_size`) is the
    context and state, key (R, `key_size`) what a slot written now would get, 0: there is no empty
    slot. signs: 0, 3 or 4 weights in `unit`s."""
    logits = array_of(logits_at, rows, np.float32)
    weight = array_of(own_weight_at, own_size, np.float32)
    blended_size = 1 + (key_size if key_at else 0)
    for row in range(rows):
        own = array_of(own_at + 4 * row * own_size, own_size, np.float32)
        blended = array_of(blended_at + 4 * row * blended_size, blended_size, np.float32)
        facts = array_of(facts_at + 4 * row * FACTS, FACTS, np.float32)
        logit = bias + float(dot(own, 0, weight, 0, own_size) + blended[0])
        meant, left = 0.0, _ONE
        if key_at:
            key = array_of(key_at + 4 * row * key_size, key_size, np.float32)
            length = math.sqrt(squares_around(key, 0, key_size, _ZERO))
            cosine = float(dot(key, 0, blended, 1, key_size)) / max(length, 1e-12)
            meant = steep * (cosine - least)
            left = _sigmoid(np.float32(meant))
        if signs:
            weights = array_of(signs_at, signs, np.float32)
            trust = weights[0] * facts[MATCH] + weights[1] * facts[LEVEL]
            trust += weights[2] * left * facts[MOST]
            if signs > 3:
                trust += weights[3] * left * facts[FOLLOWS]
            logit += unit * trust
        if key_at:
            logit = _logit_of_product(logit, meant)
        logits[row] = np.float32(logit) if facts[MOST] > _ZERO else _NEVER
    return 0


@part
def _logit_of_product(a: float, b: float) -> float:
    """The logit of sigmoid(a) sigmoid(b): -log(e^-a + e^-b + e^-(a + b))."""
    return -_log_of_sum(_log_of_sum(-a, -b), -(a + b))


@part
def _log_of_sum(a: float, b: float) -> float:
    """log(e^a + e^b)"""
    return max(a, b) + _log_1_plus_power(-abs(a - b))


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
            for p in range(positions):
                if copied[p] > _ZERO:
                    where[count], mixed[count] = ids[p], log_probs[ids[p]]
                    copied[count] = copied[p]
                    count += 1
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
