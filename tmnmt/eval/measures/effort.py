"""What translators count: words to be edited, and words weighted by how much their match helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tmnmt.index.fuzzy import edit_distance
from tmnmt.text import match_tokens, words

# Of a CAT analysis, where the recipe gives none: what a word costs by the band of its segment's
# best match.
WEIGHTS = {"exact": 0.3, "0.9-1": 0.6, "0.8-0.9": 0.6, "0.7-0.8": 0.8}


@dataclass(frozen=True)
class Edits:
    """Word edits from an output to the nearest of its references, and that reference's words (match
    tokens)."""

    edits: int
    words: int

    @property
    def rate(self) -> float:
        return self.edits / max(self.words, 1)


def edits_to(output: str, references: Sequence[str]) -> Edits:
    """The edits to the reference of the lowest rate."""
    split = match_tokens(output)
    token_lists = (match_tokens(reference) for reference in references)
    return min(
        (Edits(edit_distance(split, tokens), len(tokens)) for tokens in token_lists),
        key=lambda edits: edits.rate,
    )


def words_by_band(texts: Sequence[str], bands: Sequence[str]) -> dict[str, int]:
    """How many words stand in the texts of each band."""
    counts: Counter[str] = Counter()
    for text, band in zip(texts, bands, strict=True):
        counts[band] += words(text)
    return dict(counts)


def weighted_words(by_band: Mapping[str, int], weights: Mapping[str, float]) -> float:
    """The weighted word count of a CAT analysis; a band without a weight counts whole."""
    return sum(count * weights.get(band, 1.0) for band, count in by_band.items())
