"""Where the subwords of a text stand in it, and how much of each lies in each of its words."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tmnmt.compatibility import plainer
from tmnmt.records import decode_subwords

Array = NDArray[np.float64]
Spans = Sequence[tuple[int, int]]


def piece_spans(pieces: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Where every subword of a text stands in it, in characters; empty where it has none. The
    places are exact as long as a vocabulary changes characters one by one, as NFKC mostly does.

    pieces: the subwords.
    text: the text."""
    piece_signs = [
        [sign for character in piece for sign in _signs(character)]
        for piece in decode_subwords(pieces)
    ]
    places = [index for index, character in enumerate(text) for _ in _signs(character)]
    total = sum(map(len, piece_signs))
    spans = []
    position = 0
    for signs in piece_signs:
        first, last = position, position + len(signs) - 1
        position += len(signs)
        if not signs or not places:
            offset = places[min(first, len(places) - 1)] if places else 0
            spans.append((offset, offset))
            continue
        if total != len(places):
            first, last = (bound * len(places) // total for bound in (first, last))
        spans.append((places[first], places[last] + 1))
    return spans


@lru_cache(maxsize=4096)
def _signs(character: str) -> str:
    return "".join(unicodedata.normalize("NFKC", plainer(character)).split())


def shares(spans: Spans, words: Spans) -> Array:
    """How much of every span lies in every word, (words, spans): a span is shared by its
    characters.

    spans: where each span begins and ends, in characters.
    words: where each word begins and ends, in characters."""
    starts, ends = np.array(spans, float).reshape(-1, 2).T
    first, last = np.array(words, float).reshape(-1, 2).T[..., None]
    overlaps = np.maximum(np.minimum(ends, last) - np.maximum(starts, first), 0)
    return _divided(overlaps, overlaps.sum(0, keepdims=True))


def mean(shares: Array) -> Array:
    """Shares of every word in its spans, which sum to 1 where it has any.

    shares: (words, spans), how much of every span lies in every word."""
    return _divided(shares, shares.sum(1, keepdims=True))


def _divided(numbers: Array, divisors: Array) -> Array:
    quotients: Array = np.divide(numbers, divisors, out=np.zeros_like(numbers), where=divisors > 0)
    return quotients
