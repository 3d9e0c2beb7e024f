"""Word pairs that two documents show themselves, where no model translates: words that stand
together in sentences which are aligned already (Dice 1945, as Gale and Church 1991 use it)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tmnmt.text import folded, match_tokens

SURE = 0.5  # the probability from which an aligned pair is read
ASSOCIATED = 0.3  # Dice's coefficient from which one word stands for another
TWICE = 2  # sentences in which two words must stand together


def glosses(
    sources: Sequence[str],
    targets: Sequence[str],
    pairs: Iterable[tuple[tuple[int, ...], tuple[int, ...], float]],
) -> list[str]:
    """Every source, with the word of the target language in the place of each word that has one.

    sources: the source sentences.
    targets: the target sentences.
    pairs: the numbers of sources and of targets that belong together, and the probability of
    that."""
    words, target_words = [*map(_words, sources)], [*map(_words, targets)]
    count, target_count = Counter[str](), Counter[str]()
    together = Counter[tuple[str, str]]()
    for numbers, target_numbers, probability in pairs:
        if probability < SURE:
            continue
        source_set = {word for number in numbers for word in words[number]}
        target_set = {word for number in target_numbers for word in target_words[number]}
        count.update(source_set)
        target_count.update(target_set)
        together.update((word, gloss) for word in source_set for gloss in target_set)
    best: dict[str, tuple[float, str]] = {}
    for (word, gloss), times in together.items():
        dice = 2 * times / (count[word] + target_count[gloss])
        if times >= TWICE and dice >= ASSOCIATED:
            best[word] = max(best.get(word, (0.0, "")), (dice, gloss))
    return [" ".join(best[word][1] if word in best else word for word in row) for row in words]


def _words(text: str) -> list[str]:
    tokens = (token.lower() if token.isascii() else folded(token) for token in match_tokens(text))
    return [token for token in tokens if token[:1].isalnum()]
