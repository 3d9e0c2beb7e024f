"""More ways to take some of the retrieved pairs: walk, a variant of the greedy way of neural fuzzy
repair; contrastive retrieval (Cheng et al. 2022); and sentence BLEU as what ranks them (Gu et al.
2018)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmnmt.config.options import Selection, Similarity
from tmnmt.index.select import SIMILARITIES, Ranking, with_positions
from tmnmt.papers.sentence_bleu import SentenceBleu
from tmnmt.segments import Match
from tmnmt.text import match_tokens

ALPHA = 0.1  # weight of the likeness to what is chosen already: eval/choose_alpha.py, on dev


def select_walk(query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """At most `k` of `matches`: down the ranked list, every pair that covers a source token not
    covered yet."""
    selection: list[Match] = []
    seen_ids: set[int] = set()
    for match, positions in with_positions(query, matches):
        if len(selection) < k and positions - seen_ids:
            selection.append(match)
            seen_ids |= positions
    return selection


def select_contrastive(
    matches: Sequence[Match], k: int, alpha: float = ALPHA, similarity: Similarity = "fuzzy"
) -> list[Match]:
    """`k` of `matches`, or all: always the pair x of the greatest value, ties by rank, where

        value(x) = score(q, x) - alpha / |S| * sum of sim(x, s) over the sources s chosen so far

    (Cheng et al. 2022, contrastive retrieval). With alpha 0 it is top-k."""
    likeness = SIMILARITIES[similarity].likeness(
        [match_tokens(match.segment.src) for match in matches]
    )
    scores = np.array([match.score for match in matches])
    alike = np.zeros(len(matches))  # sum of sim(x, s)
    selection: list[int] = []
    while len(selection) < min(k, len(matches)):
        values = (scores - alpha / max(len(selection), 1) * alike).round(9)  # ties stay ties
        values[selection] = -np.inf
        selection.append(int(values.argmax()))
        alike += likeness(selection[-1])
    return [matches[number] for number in selection]


def by_bleu(query: str, matches: Sequence[Match]) -> list[Match]:
    """The matches with the sentence BLEU of their source against the query as score, best first,
    ties by rank."""
    texts = [match_tokens(match.segment.src) for match in matches]
    scores = SentenceBleu([match_tokens(query), *texts]).scores(0)[1:].tolist()
    scored = [replace(match, score=score) for match, score in zip(matches, scores, strict=True)]
    return sorted(scored, key=lambda match: match.score, reverse=True)


def _bleu_scores(texts: Sequence[Sequence[str]]) -> Callable[[int], NDArray[Any]]:
    return SentenceBleu(texts).scores


def walk(selection: Selection, query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """`select_walk`, as a registered way."""
    return select_walk(query, matches, k)


def contrastive(selection: Selection, query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """`select_contrastive`, as a registered way."""
    alpha = ALPHA if selection.alpha is None else selection.alpha
    return select_contrastive(matches, k, alpha, selection.similarity)


BLEU = Ranking(_bleu_scores, by_bleu)
