"""Which of the retrieved pairs are taken: the K best, or fewer that say the same twice.

Gu et al. 2017 name top-1 and top-K, whose pairs hold "much redundancy", and leave the remedy open. Greedy is as in
neural fuzzy repair, walk a variant of it; contrastive is of Cheng et al. 2022."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from tmnmt.errors import UsageError
from tmnmt.index.bleu import sentence_bleu
from tmnmt.index.fuzzy import fuzzy_score, word_edits
from tmnmt.segments import Match
from tmnmt.text import match_tokens

Method = Literal["topk", "greedy", "walk", "contrastive"]
Similarity = Literal["fuzzy", "bleu"]

CANDIDATES = 100  # pairs to choose from, where it is not the first k that are taken
ALPHA = 0.5  # weight of the likeness to what is chosen already; ours, to be set on dev

_SIMILARITIES = {"fuzzy": fuzzy_score, "bleu": sentence_bleu}


class Coverage(NamedTuple):
    """Positions in the query's match tokens, rising."""

    covered: tuple[int, ...]  # by this pair
    new: tuple[int, ...]  # by this pair and by none before it


def select(
    query: str, matches: Sequence[Match], k: int, method: Method = "topk", similarity: Similarity = "fuzzy"
) -> list[Match]:
    """At most `k` of `matches` (best first), chosen by `method`, in the order in which they were chosen.

    By similarity "bleu" the matches are first given their sentence BLEU as score and ranked by it. That is not exact:
    what the fuzzy score has not brought among `matches` is not seen.

    Raises UsageError for a method or a similarity that there is not."""
    check_selection(method, similarity)
    if similarity == "bleu":
        matches = by_bleu(query, matches)
    if method == "greedy":
        return select_greedy(query, matches, k)
    if method == "walk":
        return select_walk(query, matches, k)
    if method == "contrastive":
        return select_contrastive(matches, k, similarity=similarity)
    return select_top(matches, k)


def check_selection(method: Method, similarity: Similarity) -> None:
    """Raises UsageError for a method or a similarity that there is not."""
    if method not in ("topk", "greedy", "walk", "contrastive"):
        raise UsageError(f"select {method} is unknown; allowed: topk, greedy, walk, contrastive")
    if similarity not in _SIMILARITIES:
        raise UsageError(f"similarity {similarity} is unknown; allowed: {', '.join(_SIMILARITIES)}")


def candidates(k: int, method: Method, similarity: Similarity) -> int:
    """How many pairs, the best by fuzzy score, `select` should be given to choose `k` of."""
    return k if (method, similarity) == ("topk", "fuzzy") else max(k, CANDIDATES)


def select_top(matches: Sequence[Match], k: int) -> list[Match]:
    """The first `k` of `matches`, which are best first."""
    return list(matches[:k])


def select_greedy(query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """At most `k` of `matches`: the best score first, then always the pair that covers most source tokens not
    covered yet, ties by score; ends when no pair covers anything new (as in neural fuzzy repair)."""
    left = _with_positions(query, matches)
    chosen: list[Match] = []
    seen: set[int] = set()
    while left and len(chosen) < k:
        best = 0 if not chosen else max(range(len(left)), key=lambda i: (len(left[i][1] - seen), left[i][0].score, -i))
        match, positions = left.pop(best)
        if chosen and not positions - seen:
            break
        chosen.append(match)
        seen |= positions
    return chosen


def select_walk(query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """At most `k` of `matches`: down the ranked list, every pair that covers a source token not covered yet."""
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

    (Cheng et al. 2022, contrastive retrieval). With alpha 0 it is top-K."""
    sim = _SIMILARITIES[similarity]
    left = [(match, match_tokens(match.segment.src)) for match in matches]
    alike = [0.0] * len(left)  # sum of sim(x, s)
    chosen: list[Match] = []
    while left and len(chosen) < k:
        weight = alpha / max(len(chosen), 1)
        values = [round(m.score - weight * a, 9) for (m, _), a in zip(left, alike, strict=True)]  # ties stay ties
        best = values.index(max(values))
        match, tokens = left.pop(best)
        alike.pop(best)
        chosen.append(match)
        alike = [a + sim(others, tokens) for a, (_, others) in zip(alike, left, strict=True)]
    return chosen


def by_bleu(query: str, matches: Sequence[Match]) -> list[Match]:
    """The matches with the sentence BLEU of their source against the query as score, best first, ties by rank."""
    tokens = match_tokens(query)
    scored = [replace(match, score=sentence_bleu(match_tokens(match.segment.src), tokens)) for match in matches]
    return sorted(scored, key=lambda match: match.score, reverse=True)


def covered(query_tokens: Sequence[str], source_tokens: Sequence[str]) -> frozenset[int]:
    """The positions of the query's tokens that the source also has, by the edit distance's own alignment."""
    edits = word_edits(query_tokens, source_tokens)
    return frozenset(i for edit in edits if edit.tag == "equal" for i in range(edit.x_start, edit.x_end))


def coverage(query: str, chosen: Sequence[Match]) -> list[Coverage]:
    """For every chosen pair, in their order, which of the query's match tokens it covers."""
    found: list[Coverage] = []
    seen: set[int] = set()
    for _, positions in _with_positions(query, chosen):
        found.append(Coverage(tuple(sorted(positions)), tuple(sorted(positions - seen))))
        seen |= positions
    return found


def _with_positions(query: str, matches: Sequence[Match]) -> list[tuple[Match, frozenset[int]]]:
    tokens = match_tokens(query)
    return [(match, covered(tokens, match_tokens(match.segment.src))) for match in matches]
