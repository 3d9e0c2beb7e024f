"""Sentence BLEU with add-one smoothing, the other similarity of Gu et al. §3.1. No index finds its
best exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LONGEST = 4  # tokens of an n-gram

Array = NDArray[Any]


def sentence_bleu(tokens: Sequence[str], reference: Sequence[str]) -> float:
    """BLEU of `tokens` against one reference, in [0, 1]; 1 where they are equal, 0 where they share
    no token.

    Geometric mean of the clipped n-gram precisions for n = 1 to 4, times the brevity penalty
    (Papineni et al. 2002); for n > 1 one is added to both counts (Lin and Och 2004, BLEU+1). Not
    symmetric."""
    return float(SentenceBleu([tokens, reference]).scores(1)[0])


class SentenceBleu:
    """Sentence BLEU among a few texts: their n-grams are counted once, however many comparisons
    follow."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        numbers: dict[str, int] = {}
        words = np.array(
            [numbers.setdefault(token, len(numbers)) for text in texts for token in text], np.int64
        )
        self._lengths = np.array([len(text) for text in texts], np.int64)
        text_of = np.repeat(np.arange(len(texts)), self._lengths)  # of every word
        grams = words  # the number of the n-gram that begins at every word
        self._orders = [_counts(text_of, grams)]
        for n in range(1, LONGEST):
            grams = np.unique(grams[:-1] * (len(numbers) + 1) + words[n:], return_inverse=True)[1]
            whole = text_of[n:] == text_of[: len(grams)]  # it does not run into the next text
            self._orders.append(_counts(text_of[n:][whole], grams[whole]))

    def scores(self, reference: int) -> Array:
        """(texts,) `sentence_bleu` of every text against the text of this number."""
        total = np.zeros(len(self._lengths))
        with np.errstate(
            divide="ignore", invalid="ignore"
        ):  # a text without a token in common: log 0
            for n, counts in enumerate(self._orders):
                added = int(n > 0)
                possible = np.maximum(self._lengths - n, 0)
                total += np.log(
                    (_clipped(counts, reference, len(total)) + added) / (possible + added)
                )
            brevity = np.minimum(0.0, 1 - self._lengths[reference] / self._lengths)
            return np.where(self._lengths > 0, np.exp(brevity + total / LONGEST), 0.0)


class _Counts(NamedTuple):
    """How often a text has an n-gram of one length, ordered by text."""

    texts: Array
    grams: Array
    times: Array


def _counts(text_of: Array, grams: Array) -> _Counts:
    size = int(grams.max(initial=0)) + 1
    pairs, times = np.unique(text_of * size + grams, return_counts=True)
    return _Counts(pairs // size, pairs % size, times)


def _clipped(counts: _Counts, reference: int, texts: int) -> Array:
    """(texts,) how many n-grams every text has in common with the reference, each as often as both
    have it."""
    reference_range = slice(*np.searchsorted(counts.texts, [reference, reference + 1]))
    allowed = np.zeros(int(counts.grams.max(initial=0)) + 1, np.int64)
    allowed[counts.grams[reference_range]] = counts.times[reference_range]
    return np.bincount(counts.texts, np.minimum(counts.times, allowed[counts.grams]), texts)
