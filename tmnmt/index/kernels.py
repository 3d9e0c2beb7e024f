"""The inner loop of retrieval, compiled by numba: shared tokens counted over postings, then edit distances.

Everything is exact. A score of at least θ means ED <= (1-θ)·max(|x|, |x'|), hence a window of lengths and at least
⌈θ·max⌉ shared tokens, counted with multiplicity; 1 - (max - shared)/max is an upper bound of the score.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., object])
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
_ZERO, _ONE, _TOP, _ALL = np.uint64(0), np.uint64(1), np.uint64(63), np.uint64(0xFFFFFFFFFFFFFFFF)


class Arrays(NamedTuple):
    """The postings. A group is a distinct token sequence; groups are sorted by length. A feature is a token with the
    number of its occurrence in the segment ("the", the second "the"), which makes a multiset a set. Ranks number the
    segments from newest (greatest `changed`, then smallest id) to oldest."""

    length_start: Int64  # (longest + 2,) first group of every length
    token_start: Int64  # (longest + 2,) where that group's tokens begin
    tokens: Int32  # (all tokens of the groups,)
    feature_start: Int32  # (vocabulary + 1,) first feature of every token
    feature_offsets: Int64  # (features + 1,)
    postings: Int32  # (all tokens of the groups,) the groups of every feature, ascending
    member_offsets: Int32  # (groups + 1,)
    members: Int32  # (segments,) ranks of every group's segments, ascending
    document_of: Int32  # (segments,) by rank


def compiled(function: Function) -> Function:
    return cast(Function, numba.njit(cache=True, nogil=True)(function))


@compiled
def count_shared(arrays: Arrays, query: Int32, first: int, end: int) -> NDArray[np.uint16]:
    """How many tokens, with multiplicity, the sorted `query` shares with every group of [first, end)."""
    shared = np.zeros(end - first, np.uint16)
    occurrence = 0
    for i in range(query.size):
        occurrence = occurrence + 1 if i > 0 and query[i] == query[i - 1] else 0
        if query[i] < 0:
            continue
        feature = arrays.feature_start[query[i]] + occurrence
        if feature >= arrays.feature_start[query[i] + 1]:
            continue
        groups = arrays.postings[arrays.feature_offsets[feature] : arrays.feature_offsets[feature + 1]]
        for j in range(np.searchsorted(groups, first), groups.size):
            if groups[j] >= end:
                break
            shared[groups[j] - first] += 1
    return shared


@compiled
def candidates(
    arrays: Arrays, query: Int32, least: float, shortest: int, longest: int
) -> tuple[NDArray[np.float64], Int32, Int32]:
    """Upper bound, group and length of all that can reach the score `least`, in order of group."""
    first, end = arrays.length_start[shortest], arrays.length_start[longest + 1]
    shared = count_shared(arrays, query, first, end)
    bounds, groups, lengths = np.empty(end - first), np.empty(end - first, np.int32), np.empty(end - first, np.int32)
    found = 0
    for length in range(shortest, longest + 1):
        longer = max(query.size, length)
        needed = max(0, math.ceil(least * longer))
        for group in range(arrays.length_start[length], arrays.length_start[length + 1]):
            if shared[group - first] >= needed:
                bounds[found] = 1.0 - (longer - shared[group - first]) / longer
                groups[found], lengths[found] = group, length
                found += 1
    return bounds[:found], groups[:found], lengths[:found]


@compiled
def pattern_bits(sequence: Int32) -> tuple[Int32, NDArray[np.uint64]]:
    """The distinct known tokens of `sequence`, ascending, and where each stands: (tokens, words of 64 positions)."""
    distinct = np.unique(sequence[sequence >= 0])
    bits = np.zeros((distinct.size, (sequence.size + 63) // 64), np.uint64)
    for i in range(sequence.size):
        if sequence[i] >= 0:
            bits[np.searchsorted(distinct, sequence[i]), i // 64] |= _ONE << np.uint64(i % 64)
    return distinct, bits


@compiled
def edit_distance(distinct: Int32, bits: NDArray[np.uint64], size: int, text: Int32) -> int:
    """Levenshtein distance of the pattern (`size` tokens, from `pattern_bits`) to `text`: a column of the matrix
    a step, 64 rows a machine word, as vertical differences +1 and -1 (Hyyrö 2003)."""
    words = (size + 63) // 64
    plus, minus = np.full(words, _ALL), np.zeros(words, np.uint64)
    last = _ONE << np.uint64((size - 1) % 64)
    distance = size
    for token in text:
        row = np.searchsorted(distinct, token)
        known = row < distinct.size and distinct[row] == token
        carry_plus, carry_minus = _ONE, _ZERO
        for w in range(words):
            match = (bits[row, w] if known else _ZERO) | carry_minus
            diagonal = (((match & plus[w]) + plus[w]) ^ plus[w]) | match | minus[w]
            right_plus, right_minus = minus[w] | ~(diagonal | plus[w]), diagonal & plus[w]
            if w == words - 1:
                distance += 1 if right_plus & last else 0
                distance -= 1 if right_minus & last else 0
            below_plus, below_minus = (right_plus << _ONE) | carry_plus, (right_minus << _ONE) | carry_minus
            carry_plus, carry_minus = right_plus >> _TOP, right_minus >> _TOP
            plus[w], minus[w] = below_minus | ~(diagonal | below_plus), below_plus & diagonal
    return distance


@compiled
def insert(scores: NDArray[np.float64], ranks: Int32, edits: Int32, held: int, score: float, rank: int, ed: int) -> int:
    """Puts a segment into the best ones (best score, then newest); how many are held afterwards."""
    place = held
    while place > 0 and (scores[place - 1] < score or (scores[place - 1] == score and ranks[place - 1] > rank)):
        place -= 1
    if place == scores.size:
        return held
    for i in range(min(held, scores.size - 1), place, -1):
        scores[i], ranks[i], edits[i] = scores[i - 1], ranks[i - 1], edits[i - 1]
    scores[place], ranks[place], edits[place] = score, rank, ed
    return min(held + 1, scores.size)


@compiled
def best(
    arrays: Arrays, sequence: Int32, k: int, least: float, without_equal: bool, without_document: int
) -> tuple[Int32, Int32, NDArray[np.float64]]:
    """Ranks, edit distances and scores of the at most k best segments, best first, for a query of token numbers (-1:
    in no group). Candidates come by upper bound, so that the k-th best score ends the search."""
    size = sequence.size
    top = arrays.length_start.size - 2
    shortest = max(1, math.ceil(least * size))
    longest = min(top, math.floor(size / least)) if least > 0 else top
    scores, ranks, edits = np.empty(k), np.empty(k, np.int32), np.empty(k, np.int32)
    held = 0
    if size == 0 or shortest > longest:
        return ranks[:0], edits[:0], scores[:0]
    bounds, groups, lengths = candidates(arrays, np.sort(sequence), least, shortest, longest)
    distinct, bits = pattern_bits(sequence)
    for i in np.argsort(-bounds, kind="mergesort"):
        if held == k and bounds[i] < scores[k - 1]:
            break
        group, length = groups[i], lengths[i]
        start = arrays.token_start[length] + (group - arrays.length_start[length]) * length
        distance = edit_distance(distinct, bits, size, arrays.tokens[start : start + length])
        score = 1.0 - distance / max(size, length)
        if score < least or (without_equal and distance == 0):
            continue
        for rank in arrays.members[arrays.member_offsets[group] : arrays.member_offsets[group + 1]]:
            if held == k and (score < scores[k - 1] or (score == scores[k - 1] and rank > ranks[k - 1])):
                break
            if arrays.document_of[rank] != without_document:
                held = insert(scores, ranks, edits, held, score, rank, distance)
    return ranks[:held], edits[:held], scores[:held]


_first_use = threading.Lock()
_compiled_yet = False


def search_best(
    arrays: Arrays, sequence: Int32, k: int, least: float, without_equal: bool, without_document: int
) -> tuple[Int32, Int32, NDArray[np.float64]]:
    """`best`; says so when its first use on a machine compiles it, which takes some seconds once."""
    global _compiled_yet
    if _compiled_yet:
        return best(arrays, sequence, k, least, without_equal, without_document)
    with _first_use:
        log = logging.getLogger(__name__)
        # Loading compiled code takes half a second; only compiling takes longer.
        notice = threading.Timer(1.5, log.warning, ["compiling the search once for this machine (some 20 s) ..."])
        notice.daemon = True
        notice.start()
        try:
            return best(arrays, sequence, k, least, without_equal, without_document)
        finally:
            notice.cancel()
            _compiled_yet = True
