"""The fuzzy score of two token sequences (Gu et al., eq. 5) and the word edits behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

# added to thresholds before they become whole numbers of tokens: ceil(.55 * 100) is 56
SLACK = 1e-9

Tag = Literal["equal", "replace", "insert", "delete"]


class WordEdit(NamedTuple):
    """One step from x to y: x[x_start:x_end] becomes y[y_start:y_end].

    tag: what is done: "equal", "replace", "insert" or "delete".
    x_start: where the span of x begins, in tokens.
    x_end: where it ends.
    y_start: where the span of y begins, in tokens.
    y_end: where it ends."""

    tag: Tag
    x_start: int
    x_end: int
    y_start: int
    y_end: int


def score_of(edits: int, longer: int) -> float:
    """The fuzzy score, 1 - ED / max(|x|, |y|), from 0 to 1. Equal fractions give the same float, so
    that ties are ties.

    edits: how many match tokens have to be edited.
    longer: how many match tokens the longer of the two texts has, at least 1."""
    return 1.0 - edits / longer


def edit_distance(x_tokens: Sequence[str], y_tokens: Sequence[str]) -> int:
    """The Levenshtein distance of two texts in tokens, where every edit costs 1.

    x_tokens: the match tokens of one text.
    y_tokens: the match tokens of the other text."""
    return Levenshtein.distance(*_numbered(x_tokens, y_tokens))


def fuzzy_score(x_tokens: Sequence[str], y_tokens: Sequence[str]) -> float:
    """1 - ED(x, y) / max(|x|, |y|) over match tokens, from 0 to 1; 0 where x or y has no token (Gu
    et al., eq. 5).

    x_tokens: the match tokens of one text.
    y_tokens: the match tokens of the other text."""
    if not x_tokens or not y_tokens:
        return 0.0
    return score_of(edit_distance(x_tokens, y_tokens), max(len(x_tokens), len(y_tokens)))


def fuzzy_scores(texts: Sequence[Sequence[str]]) -> Callable[[int], NDArray[np.float64]]:
    """A function that takes the number of a text and gives the fuzzy scores of all texts with it,
    (texts,).

    texts: the match tokens of every text."""
    numbers: dict[str, int] = {}
    numbered = [[numbers.setdefault(token, len(numbers)) for token in text] for text in texts]
    lengths = np.array([len(text) for text in texts])

    def scores(number: int) -> NDArray[np.float64]:
        edits = process.cdist([numbered[number]], numbered, scorer=Levenshtein.distance)[0]
        scores = 1.0 - edits / np.maximum(np.maximum(lengths, lengths[number]), 1)
        return np.where(np.minimum(lengths, lengths[number]) > 0, scores, 0.0)

    return scores


def word_edits(x_tokens: Sequence[str], y_tokens: Sequence[str]) -> list[WordEdit]:
    """The fewest word edits that turn x into y, as spans in order. Equal spans are among them, so
    that all together cover both texts.

    x_tokens: the match tokens of x.
    y_tokens: the match tokens of y."""
    opcodes = Levenshtein.opcodes(*_numbered(x_tokens, y_tokens))
    return [
        WordEdit(cast(Tag, op.tag), op.src_start, op.src_end, op.dest_start, op.dest_end)
        for op in opcodes
    ]


def _numbered(x_tokens: Sequence[str], y_tokens: Sequence[str]) -> tuple[list[int], list[int]]:
    # rapidfuzz compares hashes of strings; numbers make the comparison exact.
    numbers: dict[str, int] = {}
    x = [numbers.setdefault(token, len(numbers)) for token in x_tokens]
    return x, [numbers.setdefault(token, len(numbers)) for token in y_tokens]
