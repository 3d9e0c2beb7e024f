"""IBM model 1 (Brown et al. 1993): which words translate each other, learnt from pairs, not from a
tested system."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tmnmt.text import match_tokens

PAIRS = 20_000  # learnt from, at most
LONGEST = 60  # words of a side; longer pairs are left out
ITERATIONS = 5  # of EM
NULL = 0  # the source word of target words that translate none
# of target words come from NULL before anything is learnt, as in fast_align (Dyer et al. 2013)
NULL_SHARE = 0.08

Numbers = NDArray[np.int64]


def tokens(text: str) -> list[str]:
    """The words that are aligned: match tokens, lower-cased."""
    return [token.lower() for token in match_tokens(text)]


class Aligner:
    """t(target word | source word), learnt from at most PAIRS of `pairs` (source, target)."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._src: dict[str, int] = {"": NULL}
        self._tgt: dict[str, int] = {}
        split = ((tokens(src), tokens(tgt)) for src, tgt in pairs)
        learnt_from = islice(
            (pair for pair in split if 0 < len(pair[0]) <= LONGEST and 0 < len(pair[1]) <= LONGEST),
            PAIRS,
        )
        numbered = [
            (_numbered(src, self._src), _numbered(tgt, self._tgt)) for src, tgt in learnt_from
        ]
        self._codes, self._chances = self._learn(numbered)

    def _learn(
        self, pairs: Sequence[tuple[Numbers, Numbers]]
    ) -> tuple[Numbers, NDArray[np.float64]]:
        """The codes (rising) of all pairs of words that stand in a pair of texts, and t of each."""
        if not pairs:
            return np.zeros(0, np.int64), np.zeros(0)
        # one link for every target position and source word of its pair, NULL included; `group` is
        # the target position
        links = [self._links(src, tgt) for src, tgt in pairs]
        sizes = [np.full(len(tgt), len(src) + 1) for src, tgt in pairs]
        codes, link = np.unique(np.concatenate(links), return_inverse=True)
        group = np.repeat(np.arange(sum(map(len, sizes))), np.concatenate(sizes))
        source = codes // len(self._tgt)
        prior = np.concatenate([np.tile(_prior(len(src)), len(tgt)) for src, tgt in pairs])
        chances = np.ones(len(codes))
        for _ in range(ITERATIONS):
            share = prior * chances[link]
            share /= np.bincount(group, share)[
                group
            ]  # E: what each source word explains of a target position
            counts = np.bincount(link, share, len(codes))
            chances = counts / np.bincount(source, counts)[source]  # M
        return codes, chances

    def _links(self, src: Numbers, tgt: Numbers) -> Numbers:
        links: Numbers = tgt[:, None] + len(self._tgt) * np.append(src, NULL)[None]
        return links.ravel()

    def chances(self, src: Sequence[str], tgt: Sequence[str]) -> NDArray[np.float64]:
        """t(target word | source word), (target, source + 1); the last column is NULL, unknown
        words have 0."""
        if not len(self._codes):
            return np.zeros((len(tgt), len(src) + 1))
        sources = np.array([self._src.get(word, -1) for word in src] + [NULL])
        targets = np.array([self._tgt.get(word, -1) for word in tgt], np.int64)
        codes = targets[:, None] + len(self._tgt) * sources[None]
        indices = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        is_known = (self._codes[indices] == codes) & (targets[:, None] >= 0) & (sources[None] >= 0)
        return np.where(is_known, self._chances[indices], 0.0)

    def dictionary(self, threshold: float) -> dict[str, dict[str, float]]:
        """For every source word, "" for NULL, the target words of a chance of `threshold` or more,
        with that."""
        likely = np.flatnonzero(self._chances >= threshold)
        sources, targets = list(self._src), list(self._tgt)
        words: dict[str, dict[str, float]] = {source: {} for source in sources}
        for code, chance in zip(self._codes[likely], self._chances[likely], strict=True):
            source, target = divmod(int(code), len(targets))
            words[sources[source]][targets[target]] = float(chance)
        return words

    def translations(self, src: Sequence[str], tgt: Sequence[str]) -> list[int | None]:
        """For every source word the target position that translates it: the likeliest for it, where
        that in turn is likelier from this word than from any other of the source or from none; else
        None."""
        if not src or not tgt:
            return [None] * len(src)
        chances = self.chances(src, tgt)
        best = chances[:, :-1].argmax(0)  # (source)
        explained = (chances * _prior(len(src)) / _prior(len(src))[0]).max(1)  # (target)
        certain = chances[best, np.arange(len(src))]
        return [
            int(j) if c > 0 and c >= explained[j] else None
            for j, c in zip(best, certain, strict=True)
        ]


def _prior(sources: int) -> NDArray[np.float64]:
    """What each of so many source words, and NULL behind them, explains before anything is learnt:
    (source + 1)."""
    return np.append(np.full(sources, (1 - NULL_SHARE) / max(sources, 1)), NULL_SHARE)


def _numbered(words: Sequence[str], numbers: dict[str, int]) -> Numbers:
    return np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int64)
