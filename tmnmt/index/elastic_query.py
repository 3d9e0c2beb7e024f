"""One search as Elasticsearch is asked it, so that its score is the upper bound of the fuzzy score.

A multiset of match tokens becomes a set by numbering what occurs again ("the", "the␟2"). The number of the query's
terms that a document has is then the overlap of the two multisets, and overlap / max(|x|, |x'|) bounds the fuzzy score
1 - ED / max(|x|, |x'|), because an edit can save at most one token that both lack. So the documents come best bound
first: as soon as a bound is below the k-th best score verified, nothing that follows can be among the best k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tmnmt.index.fuzzy import SLACK

MOST_CLAUSES = 1000  # Elasticsearch allows 1,024 at least; more with more memory
FLOAT_SLACK = 1e-5  # its scores are 32-bit


def terms(tokens: Sequence[str]) -> list[str]:
    """The tokens as a set: an occurrence after the first carries its number. The sign stands in no token but itself."""
    seen: dict[str, int] = {}
    numbered = []
    for token in tokens:
        times = seen[token] = seen.get(token, 0) + 1
        numbered.append(token if times == 1 else f"{token}␟{times}")
    return numbered


def candidates(tokens: Sequence[str], threshold: float) -> dict[str, Any]:
    """The query for every document whose bound reaches `threshold`, bounds as scores (the module).

    Of a text with more terms than may be asked for, the first so many are asked for and the rest counts as found:
    the bound is looser, and still one."""
    asked = terms(tokens)[:MOST_CLAUSES]
    granted = len(tokens) - len(asked)
    shared = math.ceil(threshold * len(tokens) - SLACK) - granted
    overlap: dict[str, Any] = {
        "should": [{"term": {"tokens": term}} for term in asked],
        "minimum_should_match": max(0, shared),
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


def _window(length: int, threshold: float) -> dict[str, int]:
    """The lengths that can reach `threshold`: ceil(θ|x|) <= |x'| <= floor(|x|/θ)."""
    shortest = {"gte": max(1, math.ceil(threshold * length - SLACK))}
    return shortest | ({"lte": math.floor(length / threshold + SLACK)} if threshold > SLACK else {})
