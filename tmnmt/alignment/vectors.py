"""Sentences as vectors of their words, so that the likeness of a sentence of one document with one
of the other is a product.

A word counts by its own form and, where it is long, by its beginning, which inflection leaves as
it is; each by its inverse document frequency over both documents (Salton and Buckley 1988)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tmnmt.text import folded, match_tokens

PREFIX = 5  # letters of a long word that stand for it
OF_PREFIX = 0.7  # of a word
OF_MARK = 0.3
_ROWS_AT_ONCE = 256  # sources whose products with targets are computed together

Float32 = NDArray[np.float32]
Vector = Mapping[str, float]


def words_of(text: str) -> Counter[str]:
    """What a sentence consists of, with the weight of each before inverse document frequency.

    text: the sentence."""
    features = Counter[str]()
    for token in match_tokens(text):
        word = token.lower() if token.isascii() else folded(token)
        if not word[:1].isalnum():
            features[f".{word}"] += OF_MARK  # type: ignore[assignment]
            continue
        features[word] += 1
        if len(word) > PREFIX:
            features[f"^{word[:PREFIX]}"] += OF_PREFIX  # type: ignore[assignment]
    return features


def vectors_of(sources: Iterable[str], targets: Iterable[str]) -> tuple[list[Vector], list[Vector]]:
    """The vectors of the sentences of both documents.

    sources: the sentences of the source document, translated where there is a model.
    targets: the sentences of the target document."""
    sides = [words_of(text) for text in sources], [words_of(text) for text in targets]
    sentences = [*sides[0], *sides[1]]
    frequency = Counter(word for features in sentences for word in features)
    rarity = {word: math.log(1 + len(sentences) / count) for word, count in frequency.items()}

    def weighted(features: Counter[str]) -> Vector:
        return {
            word: (1 + math.log(count) if count > 1 else count) * rarity[word]
            for word, count in features.items()
        }

    return [*map(weighted, sides[0])], [*map(weighted, sides[1])]


def squares(vectors: Sequence[Vector]) -> NDArray[np.float64]:
    """The product (N,) of every vector with itself.

    vectors: the vectors."""
    return np.array([sum(x * x for x in vector.values()) for vector in vectors], np.float64)


def with_previous(vectors: Sequence[Vector]) -> NDArray[np.float64]:
    """The product (N,) of every vector with the one before it; 0 for the first.

    vectors: the vectors."""
    products = [0.0]
    for previous, vector in pairwise(vectors):
        shared = previous.keys() & vector.keys()
        products.append(sum(previous[word] * vector[word] for word in shared))
    return np.array(products[: len(vectors)], np.float64)


def products(
    sources: Sequence[Vector], targets: Sequence[Vector], starts: NDArray[np.int64], width: int
) -> Float32:
    """The products (N, width) of every source with some targets; 0 behind the last target.

    sources: the vectors of the sources.
    targets: the vectors of the targets.
    starts: (N,), the first target for every source, which never falls.
    width: how many targets there are for a source."""
    result = np.zeros((len(sources), width), np.float32)
    for first in range(0, len(sources), _ROWS_AT_ONCE):
        rows = sources[first : first + _ROWS_AT_ONCE]
        begin = int(starts[first])
        end = min(len(targets), int(starts[first + len(rows) - 1]) + width)
        number = {word: i for i, word in enumerate(dict.fromkeys(w for row in rows for w in row))}
        block = _dense(rows, number) @ _dense(targets[begin:end], number).T
        for row in range(len(rows)):
            offset = int(starts[first + row]) - begin
            values = block[row, offset : offset + width]
            result[first + row, : len(values)] = values
    return result


def _dense(vectors: Sequence[Vector], number: Mapping[str, int]) -> Float32:
    matrix = np.zeros((len(vectors), max(1, len(number))), np.float32)
    for row, vector in enumerate(vectors):
        for word in vector.keys() & number.keys():
            matrix[row, number[word]] = vector[word]
    return matrix
