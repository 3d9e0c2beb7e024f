"""How much came from the memory, from the session cache and from the model, and how much of each
was right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tmnmt.records import join_subwords
from tmnmt.text import match_tokens

ORIGINS = ("memory", "cache", "model")


def origins(
    outputs: Iterable[tuple[Sequence[Mapping[str, Any]], Sequence[str]]],
) -> dict[str, dict[str, float | int | None]]:
    """{origin: {"tokens", "share", "precision"}} of outputs as (token records, references).

    Words are counted (as match tokens): a word has the origin of the greater part of its subwords,
    and a subword that of the largest part of the mixture it was drawn from. Precision is the share
    that stands in the segment's reference (in any of several), each of its words used once, in the
    order of the output."""
    counts: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for tokens, references in outputs:
        remaining = _together(references)
        for word, origin in join_subwords([(token["text"], token["origin"]) for token in tokens]):
            for token in match_tokens(word):
                counts[origin] += 1
                right[origin] += remaining[token] > 0
                remaining[token] -= 1
    total = sum(counts.values())
    return {
        origin: {
            "tokens": counts[origin],
            "share": counts[origin] / total if total else 0.0,
            "precision": right[origin] / counts[origin] if counts[origin] else None,
        }
        for origin in ORIGINS
    }


def _together(references: Sequence[str]) -> Counter[str]:
    """Every token as often as the reference has it that has it most often."""
    counts: Counter[str] = Counter()
    for reference in references:
        counts |= Counter(match_tokens(reference))
    return counts
