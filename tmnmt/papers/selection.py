"""More ways to take some of the retrieved pairs: walk, a variant of the greedy way of neural fuzzy
repair; contrastive retrieval (Cheng et al. 2022); and sentence BLEU as what ranks them (Gu et al.
2018)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tmnmt.config.options import SIMILARITIES, Selection
from tmnmt.index.select import Ranking, with_positions
from tmnmt.papers.sentence_bleu import SentenceBleu
from tmnmt.segments import Match
from tmnmt.text import match_tokens

ALPHA = 0.1  # weight of the likeness to what is chosen already: eval/choose_alpha.py, on dev


def walk(selection: Selection, query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """At most `k` of `matches`: down the ranked list, every pair that covers a source token not
    covered yet."""
    chosen: list[Match] = []
    seen_ids: set[int] = set()
    for match, positions in with_positions(query, matches):
        if len(chosen) < k and positions - seen_ids:
            chosen.append(match)
            seen_ids |= positions
    return chosen


def contrastive(selection: Selection, query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """`k` of `matches`, or all: always the pair x of the greatest value, ties by rank, where

        value(x) = score(q, x) - alpha / |S| * sum of sim(x, s) over the sources s chosen so far

    (Cheng et al. 2022, contrastive retrieval). With alpha 0 it is top-k."""
    alpha = ALPHA if selection.alpha is None else selection.alpha
    ranking: Ranking = SIMILARITIES[selection.similarity]
    likeness = ranking.likeness([match_tokens(match.segment.src) for match in matches])
    scores = np.array([match.score for match in matches])
    alike = np.zeros(len(matches))  # sum of sim(x, s)
    chosen: list[int] = []
    while len(chosen) < min(k, len(matches)):
        values = (scores - alpha / max(len(chosen), 1) * alike).round(9)  # ties stay ties
        values[chosen] = -np.inf
        chosen.append(int(values.argmax()))
        alike += likeness(chosen[-1])
    return [matches[number] for number in chosen]


def by_bleu(query: str, matches: Sequence[Match]) -> list[Match]:
    """The matches with the sentence BLEU of their source against the query as score, best first,
    ties by rank."""
    texts = [match_tokens(match.segment.src) for match in matches]
    scores = SentenceBleu([match_tokens(query), *texts]).scores(0)[1:].tolist()
    scored = [replace(match, score=score) for match, score in zip(matches, scores, strict=True)]
    return sorted(scored, key=lambda match: match.score, reverse=True)


def _bleu_scores(texts: Sequence[Sequence[str]]) -> Callable[[int], NDArray[Any]]:
    return SentenceBleu(texts).scores


BLEU = Ranking(_bleu_scores, by_bleu)
