"""Which of the retrieved pairs are taken: the k best, or fewer that say the same twice.

Gu et al. 2018 name top-1 and top-k, whose pairs hold "much redundancy", and leave the remedy open.
Greedy is as in neural fuzzy repair, walk a variant of it; contrastive is of Cheng et al. 2022."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.config.options import Selection, Similarity
from tmnmt.index.bleu import SentenceBleu
from tmnmt.index.fuzzy import fuzzy_scores, word_edits
from tmnmt.segments import Match
from tmnmt.text import match_tokens

CANDIDATES = 100  # pairs to choose from, where it is not the first k that are taken
ALPHA = 0.1  # weight of the likeness to what is chosen already: eval/choose_alpha.py, on dev


def _bleu_scores(texts: Sequence[Sequence[str]]) -> Callable[[int], NDArray[Any]]:
    return SentenceBleu(texts).against


# Given texts, a function that gives the likeness of all of them to the one of a number.
_SIMILARITIES: dict[str, Callable[[Sequence[Sequence[str]]], Callable[[int], NDArray[Any]]]] = {
    "fuzzy": fuzzy_scores,
    "bleu": _bleu_scores,
}


def candidates(selection: Selection, k: int) -> int:
    """How many pairs, the best by fuzzy score, `selected` should be given to take `k` of."""
    best = selection.select == "topk" and selection.similarity == "fuzzy"
    return k if best else max(k, CANDIDATES)


def selected(selection: Selection, query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """At most `k` of `matches` (best first), in the order in which they were chosen.

    By similarity "bleu" the matches are first given their sentence BLEU as score and ranked by it.
    That is not exact: what the fuzzy score has not brought among `matches` is not seen."""
    if selection.similarity == "bleu":
        matches = by_bleu(query, matches)
    if selection.select == "greedy":
        return select_greedy(query, matches, k)
    if selection.select == "walk":
        return select_walk(query, matches, k)
    if selection.select == "contrastive":
        alpha = ALPHA if selection.alpha is None else selection.alpha
        return select_contrastive(matches, k, alpha, selection.similarity)
    return select_top(matches, k)


class Coverage(NamedTuple):
    """Positions in the query's match tokens, rising."""

    covered: tuple[int, ...]  # by this pair
    new: tuple[int, ...]  # by this pair and by none before it


def select_top(matches: Sequence[Match], k: int) -> list[Match]:
    """The first `k` of `matches`, which are best first."""
    return list(matches[:k])


def select_greedy(query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """At most `k` of `matches`: the best score first, then always the pair that covers most source
    tokens not covered yet, ties by score; ends when no pair covers anything new (as in neural fuzzy
    repair)."""
    left = _with_positions(query, matches)
    chosen: list[Match] = []
    seen: set[int] = set()
    while left and len(chosen) < k:
        best = (
            0
            if not chosen
            else max(range(len(left)), key=lambda i: (len(left[i][1] - seen), left[i][0].score, -i))
        )
        match, positions = left.pop(best)
        if chosen and not positions - seen:
            break
        chosen.append(match)
        seen |= positions
    return chosen


def select_walk(query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """At most `k` of `matches`: down the ranked list, every pair that covers a source token not
    covered yet."""
    chosen: list[Match] = []
    seen: set[int] = set()
    for match, positions in _with_positions(query, matches):
        if len(chosen) < k and positions - seen:
            chosen.append(match)
            seen |= positions
    return chosen


def select_contrastive(
    matches: Sequence[Match], k: int, alpha: float = ALPHA, similarity: Similarity = "fuzzy"
) -> list[Match]:
    """`k` of `matches`, or all: always the pair x of the greatest value, ties by rank, where

        value(x) = score(q, x) - alpha / |S| * sum of sim(x, s) over the sources s chosen so far

    (Cheng et al. 2022, contrastive retrieval). With alpha 0 it is top-k."""
    likeness = _SIMILARITIES[similarity]([match_tokens(match.segment.src) for match in matches])
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
    scores = SentenceBleu([match_tokens(query), *texts]).against(0)[1:].tolist()
    scored = [replace(match, score=score) for match, score in zip(matches, scores, strict=True)]
    return sorted(scored, key=lambda match: match.score, reverse=True)


def covered(query_tokens: Sequence[str], source_tokens: Sequence[str]) -> frozenset[int]:
    """The positions of the query's tokens that the source also has, by the edit distance's own
    alignment."""
    edits = word_edits(query_tokens, source_tokens)
    return frozenset(
        i for edit in edits if edit.tag == "equal" for i in range(edit.x_start, edit.x_end)
    )


def coverage(query: str, chosen: Sequence[Match]) -> list[Coverage]:
    """For every chosen pair, in their order, which of the query's match tokens it covers."""
    coverages: list[Coverage] = []
    seen: set[int] = set()
    for _, positions in _with_positions(query, chosen):
        coverages.append(Coverage(tuple(sorted(positions)), tuple(sorted(positions - seen))))
        seen |= positions
    return coverages


def _with_positions(query: str, matches: Sequence[Match]) -> list[tuple[Match, frozenset[int]]]:
    tokens = match_tokens(query)
    return [(match, covered(tokens, match_tokens(match.segment.src))) for match in matches]
