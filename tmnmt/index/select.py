"""Which of the retrieved pairs are taken: the k best, or fewer that say the same twice.

Gu et al. 2018 name top-1 and top-k, whose pairs hold "much redundancy", and leave the remedy open.
Greedy is as in neural fuzzy repair. Plug-ins bring more ways (`SELECTIONS`, `SIMILARITIES`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tmnmt.config.options import SELECTIONS, SIMILARITIES, Selection
from tmnmt.index.fuzzy import fuzzy_scores, word_edits
from tmnmt.segments import Match
from tmnmt.text import match_tokens

CANDIDATES = 100  # pairs to choose from, where it is not the first k that are taken


Likeness = Callable[[int], NDArray[Any]]  # of all texts to the one of a number


class Ranking(NamedTuple):
    """What ranks pairs.

    likeness: gives a function of some texts that says how like they are to one another.
    ranked: gives the matches of a text with the score by which they rank, best first."""

    likeness: Callable[[Sequence[Sequence[str]]], Likeness]
    ranked: Callable[[str, Sequence[Match]], Sequence[Match]]


def candidates(selection: Selection, k: int) -> int:
    """How many pairs, the best by fuzzy score, `selected` should choose from.

    selection: how pairs are selected.
    k: how many pairs are selected."""
    best = selection.select == "topk" and selection.similarity == "fuzzy"
    return k if best else max(k, CANDIDATES)


def selected(selection: Selection, query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """The matches that are read, in the order in which they were chosen. Another similarity than
    "fuzzy" first gives the matches its own score and ranks them by it. That is not exact: what the
    fuzzy score has not brought among the matches is not seen.

    selection: how pairs are selected.
    query: the text that the matches were found for.
    matches: the matches, best first.
    k: how many are chosen at most."""
    ranking: Ranking = SIMILARITIES[selection.similarity]
    select: Selector = SELECTIONS[selection.select]
    return select(selection, query, ranking.ranked(query, matches), k)


class Coverage(NamedTuple):
    """Positions in the query's match tokens, rising."""

    covered: tuple[int, ...]  # by this pair
    new: tuple[int, ...]  # by this pair and by none before it


def select_top(selection: Selection, query: str, matches: Sequence[Match], k: int) -> list[Match]:
    """The first matches.

    selection: the options of the selection, none of which counts here.
    query: the text that the matches were found for.
    matches: the matches, best first.
    k: how many are chosen at most."""
    return list(matches[:k])


def select_greedy(
    selection: Selection, query: str, matches: Sequence[Match], k: int
) -> list[Match]:
    """The best match first, then always the one that covers most source tokens that are not covered
    yet, ties by score. It ends when no match covers anything new (as in neural fuzzy repair).

    selection: the options of the selection, none of which counts here.
    query: the text that the matches were found for.
    matches: the matches, best first.
    k: how many are chosen at most."""
    remaining = with_positions(query, matches)
    selected_matches: list[Match] = []
    covered_tokens: set[int] = set()
    while remaining and len(selected_matches) < k:
        best = (
            0
            if not selected_matches
            else max(
                range(len(remaining)),
                key=lambda i: (len(remaining[i][1] - covered_tokens), remaining[i][0].score, -i),
            )
        )
        match, positions = remaining.pop(best)
        if selected_matches and not positions - covered_tokens:
            break
        selected_matches.append(match)
        covered_tokens |= positions
    return selected_matches


def _unranked(query: str, matches: Sequence[Match]) -> Sequence[Match]:
    return matches


Selector = Callable[[Selection, str, Sequence[Match], int], list[Match]]
FUZZY = Ranking(fuzzy_scores, _unranked)


def covered(query_tokens: Sequence[str], source_tokens: Sequence[str]) -> frozenset[int]:
    """The positions of a query's tokens that a source also has, by the alignment of the edit
    distance.

    query_tokens: the match tokens of the query.
    source_tokens: the match tokens of the source."""
    edits = word_edits(query_tokens, source_tokens)
    return frozenset(
        i for edit in edits if edit.tag == "equal" for i in range(edit.x_start, edit.x_end)
    )


def coverage(query: str, selection: Sequence[Match]) -> list[Coverage]:
    """For every chosen pair, in their order, which match tokens of the query it covers.

    query: the text.
    selection: the chosen pairs."""
    coverages: list[Coverage] = []
    covered_tokens: set[int] = set()
    for _, positions in with_positions(query, selection):
        coverages.append(
            Coverage(tuple(sorted(positions)), tuple(sorted(positions - covered_tokens)))
        )
        covered_tokens |= positions
    return coverages


def with_positions(query: str, matches: Sequence[Match]) -> list[tuple[Match, frozenset[int]]]:
    """Every match with the positions of the query's match tokens that its source covers.

    query: the text.
    matches: the matches."""
    tokens = match_tokens(query)
    return [(match, covered(tokens, match_tokens(match.segment.src))) for match in matches]
