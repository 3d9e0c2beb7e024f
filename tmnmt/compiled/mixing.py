"""Words that a memory says, mixed into probabilities, compiled. Arguments as in `reading.py`;
V: vocabulary."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import fast
from tmnmt.compiled.gates import log_sigmoid, sigmoid
from tmnmt.compiled.vectors import LANES, exp, greatest, log, log_of_sums

Float32 = NDArray[np.float32]
_ZERO, _ONE, _NEVER = np.float32(0.0), np.float32(1.0), np.float32(-np.inf)


def first_positions(
    rows: int, positions: int, ids_at: int, room: int, room_at: int, first_at: int
) -> int:
    """first (N, P): the first position of the row that holds the same of the ids (N, P). room: a
    power of two, more than P, so many int64 for a table of what was met."""
    table = array_of(room_at, room, np.int64)
    for row in range(rows):
        ids = array_of(ids_at + 8 * row * positions, positions, np.int64)
        first = array_of(first_at + 8 * row * positions, positions, np.int64)
        for bucket in range(room):
            table[bucket] = -1
        for p in range(positions):
            bucket = ids[p] & (room - 1)
            while table[bucket] >= 0 and ids[table[bucket]] != ids[p]:
                bucket = (bucket + 1) & (room - 1)
            table[bucket] = p if table[bucket] < 0 else table[bucket]
            first[p] = table[bucket]
    return 0


def narrow_shares(
    rows: int, words: int, log_probs_at: int, logits_at: int, sure: float, full: float, to: int
) -> int:
    """Logits (R,) of shares at `to`, which may be those that are read, of logits (R,) and log p (R,
    V): 1 - share is divided by 1 - sure max p, and a share is `full` at most; -inf where nothing is
    left of it."""
    logits, narrowed = array_of(logits_at, rows, np.float32), array_of(to, rows, np.float32)
    for row in range(rows):
        logit = logits[row]
        narrowed[row] = _NEVER
        if logit > _NEVER:
            log_probs = array_of(log_probs_at + 4 * row * words, words, np.float32)
            most = np.float64(exp(greatest(log_probs, 0, words)))
            share = 1.0 - np.float64(sigmoid(-logit)) / (1.0 - sure * most)
            share = min(share, np.float64(full))
            if share > 0.0:
                narrowed[row] = np.float32(log(share) - log(1.0 - share))
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
    columns_at: int,
    room_at: int,
) -> int:
    """log p (R, V) becomes log(zeta p_copy + (1 - zeta) p) in place, by q, words and where each
    stands first (R, P), and the gate's logit (R,); -inf leaves a row as it is. columns: of every
    word its column in log p, int64; 0: it is its number. room: 4 numbers for every P rounded up to
    16."""
    logits = array_of(logits_at, rows, np.float32)
    room = (positions + LANES - 1) & -LANES
    copied = array_of(room_at, room, np.float32)
    mixed = array_of(room_at + 4 * room, room, np.float32)
    present_ids = array_of(room_at + 8 * room, positions, np.int64)
    for row in range(rows):
        if logits[row] > _NEVER:
            log_probs = array_of(log_probs_at + 4 * row * words, words, np.float32)
            q = array_of(q_at + 4 * row * positions, positions, np.float32)
            ids = array_of(ids_at + 8 * row * positions, positions, np.int64)
            first = array_of(first_at + 8 * row * positions, positions, np.int64)
            zeta = sigmoid(logits[row])
            rest = log_sigmoid(-np.float64(logits[row]))
            _add_to_all(log_probs, np.float32(rest))
            for p in range(room):
                copied[p] = _ZERO
            for p in range(positions):
                copied[first[p]] += q[p]
            count = 0
            for p in range(positions):  # nobody can guess which are there: no branches
                present_ids[count], copied[count] = ids[p], copied[p]
                count += 1 if copied[p] > _ZERO else 0
            if columns_at:
                for n in range(count):
                    present_ids[n] = array_of(columns_at + 8 * present_ids[n], 1, np.int64)[0]
            for n in range(count):
                mixed[n] = log_probs[present_ids[n]]
            for p in range(count, min(count + LANES, mixed.size)):
                mixed[p], copied[p] = _ZERO, _ONE
            log_of_sums(mixed, zeta, copied, count)
            for p in range(count):
                log_probs[present_ids[p]] = mixed[p]
    return 0


@fast
def _add_to_all(x: Float32, number: np.float32) -> None:
    for i in range(x.size):
        x[i] += number
