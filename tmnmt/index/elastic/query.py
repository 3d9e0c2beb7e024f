"""One search as Elasticsearch is asked it, so that its score is the upper bound of the fuzzy score.

A multiset of match tokens becomes a set by numbering what occurs again ("the", "the␟2"). The number
of the query's terms that a document has is then the overlap of the two multisets, and overlap /
max(|x|, |x'|) bounds the fuzzy score 1 - ED / max(|x|, |x'|), because an edit can save at most one
token that both lack. So the documents come best bound first: as soon as a bound is below the k-th
best score verified, nothing that follows can be among the best k."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tmnmt.index.fuzzy import SLACK

# of a token that are told apart; with its number it stays below the 255 at which a server cuts
# words
MOST_CHARS = 100
MOST_CLAUSES = 1000  # Elasticsearch allows 1,024 at least; more with more memory
FLOAT_SLACK = 1e-5  # its scores are 32-bit


def terms(tokens: Sequence[str]) -> list[str]:
    """The tokens as a set: an occurrence after the first carries its number. Of long tokens that
    begin alike the overlap counts too many: its bound is looser, and still one.

    tokens: the match tokens."""
    numbered = [token[:MOST_CHARS] for token in tokens]
    distinct = set(numbered)
    times = dict[str, int]()
    if len(distinct) == len(numbered):
        return numbered
    for i, token in enumerate(numbered):
        if token in distinct:
            distinct.remove(token)
        else:
            number = times[token] = times.get(token, 1) + 1
            numbered[i] = f"{token}␟{number}"
    return numbered


def candidates(tokens: Sequence[str], threshold: float) -> dict[str, Any]:
    """The query for every document whose bound reaches a score; its bound is the score of a
    document. Of a text with more terms than may be looked for, only the first are, and the others
    count as found: the bound is looser, and still one.

    tokens: the match tokens of the text.
    threshold: the smallest fuzzy score, from 0 to 1."""
    query_terms = terms(tokens)[:MOST_CLAUSES]
    granted = len(tokens) - len(query_terms)
    shared = math.ceil(threshold * len(tokens) - SLACK) - granted
    text_query = {"query": " ".join(query_terms), "minimum_should_match": max(1, shared)}
    overlap: dict[str, Any] = {
        "should": [
            {"match": {"tokens": text_query}}
        ],  # a clause a term, in a third of the characters
        "minimum_should_match": int(shared > 0),
        "filter": [{"range": {"n": _window(len(tokens), threshold)}}],
    }
    if granted:
        overlap["must"] = [{"match_all": {"boost": granted}}]
    return {
        "function_score": {
            "query": {"bool": overlap},
            "functions": [
                {"filter": {"range": {"n": {"lte": len(tokens)}}}, "weight": 1 / len(tokens)},
                {
                    "filter": {"range": {"n": {"gt": len(tokens)}}},
                    "field_value_factor": {"field": "n", "modifier": "reciprocal"},
                },
            ],
            "score_mode": "first",
            "boost_mode": "multiply",
            **({"min_score": threshold - FLOAT_SLACK} if threshold > FLOAT_SLACK else {}),
        }
    }


def of_skeleton_query(skeleton: str, length: int) -> dict[str, Any]:
    """The query for every document of a skeleton, those of the same length first.

    skeleton: the hash of the skeleton, as `hash_of` gives it.
    length: how many match tokens the text has."""
    same_length = {"constant_score": {"filter": {"term": {"n": length}}}}
    return {"bool": {"filter": [{"term": {"skeleton": skeleton}}], "should": [same_length]}}


def _window(length: int, threshold: float) -> dict[str, int]:
    """The lengths that can reach `threshold`: ceil(θ|x|) <= |x'| <= floor(|x|/θ)."""
    shortest = {"gte": max(1, math.ceil(threshold * length - SLACK))}
    return shortest | ({"lte": math.floor(length / threshold + SLACK)} if threshold > SLACK else {})
