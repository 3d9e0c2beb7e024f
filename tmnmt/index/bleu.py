"""Sentence BLEU with add-one smoothing, the other similarity of Gu et al. §3.1. No index finds its best exactly."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

LONGEST = 4  # tokens of an n-gram


def sentence_bleu(tokens: Sequence[str], reference: Sequence[str]) -> float:
    """BLEU of `tokens` against one reference, in [0, 1]; 1 where they are equal, 0 where they share no token.

    Geometric mean of the clipped n-gram precisions for n = 1 to 4, times the brevity penalty (Papineni et al. 2002);
    for n > 1 one is added to both counts (Lin and Och 2004, BLEU+1). Not symmetric."""
    if not tokens:
        return 0.0
    total = 0.0
    for n in range(1, LONGEST + 1):
        common = (_ngrams(tokens, n) & _ngrams(reference, n)).total()
        if n == 1 and not common:
            return 0.0
        added = int(n > 1)
        total += math.log((common + added) / (max(len(tokens) - n + 1, 0) + added))
    brevity = min(0.0, 1 - len(reference) / len(tokens))
    return math.exp(brevity + total / LONGEST)


def _ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
