"""`tmnmt shortlist`: the target words that every source word may become, learned from pairs by IBM
model 1 (Brown et al. 1993).

    p(t | s)   how likely s becomes t; the end of the source stands for what comes of no word
    E          every target word of a pair is shared out over the pair's source words, by p(t | s)
    M          p(t | s) is the share of t in all that s got

All pairs at once, as flat arrays of (target position, source word, target word)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from tmnmt.errors import DataError
from tmnmt.models.shortlist import Shortlist, shares_words, source_size
from tmnmt.segments import Segment
from tmnmt.vocab import EOS, FIRST, Vocabulary

ROUNDS = 5
MOST_LINKS = 20_000_000  # (target position, source word): some 1 GB
MOST_SUBWORDS = 100  # of a side; longer pairs say little of words
MIN_PROBABILITY = 1e-4  # a p(t | s) below it is no translation
Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class Encoded(NamedTuple):
    """A pair's subwords; the source with </s>."""

    src: list[int]
    tgt: list[int]


def learn(
    segments: Iterable[Segment], vocab: Vocabulary, list_size: int = 100, frequent: int = 1000
) -> Shortlist:
    """`list_size`: of a source word, its likeliest translations. `frequent`: words that are in
    every list, beside single bytes and </s>. Takes segments until there are `MOST_LINKS`.

    Raises DataError where no pair is left to learn from."""
    pairs, links = list[Encoded](), 0
    for segment in segments:
        pair = Encoded([*vocab.encode_source(segment.src), EOS], vocab.encode(segment.tgt))
        if pair.tgt and max(map(len, pair)) <= MOST_SUBWORDS:
            pairs.append(pair)
            links += len(pair.src) * len(pair.tgt)
        if links >= MOST_LINKS:
            break
    if not pairs:
        raise DataError(
            f"nothing to learn from: no pair has 1 to {MOST_SUBWORDS} subwords on either side"
        )
    src, tgt, likely = model_1(pairs, len(vocab))
    is_likely = likely >= MIN_PROBABILITY
    of_source = best(
        src[is_likely], tgt[is_likely], likely[is_likely], source_size(vocab), list_size
    )
    return Shortlist(
        torch.from_numpy(of_source),
        torch.from_numpy(everywhere(pairs, vocab, frequent)),
        shares_words(vocab),
    )


def model_1(pairs: Sequence[Encoded], words: int) -> tuple[Int64, Int64, Float64]:
    """Source words, target words and p(t | s), one of each for all that stand in a pair together;
    by source word."""
    src = np.concatenate([np.tile(pair.src, len(pair.tgt)) for pair in pairs])
    tgt = np.concatenate([np.repeat(pair.tgt, len(pair.src)) for pair in pairs])
    sizes = np.concatenate([np.full(len(pair.tgt), len(pair.src)) for pair in pairs])
    starts = np.cumsum(sizes) - sizes  # of every target position
    together, inverse = np.unique(src * np.int64(words) + tgt, return_inverse=True)
    src, tgt = together // words, together % words
    likely: Float64 = np.ones(len(together))
    for _ in range(ROUNDS):
        shared = likely[inverse]
        shared /= np.repeat(np.add.reduceat(shared, starts), sizes)
        counts = np.bincount(inverse, shared, len(together))
        likely = counts / np.bincount(src, counts)[src]
    return src, tgt, likely


def best(src: Int64, tgt: Int64, likely: Float64, rows: int, list_size: int) -> Int64:
    """(rows, each): the target words of the greatest p(t | s), likeliest first, PAD where there are
    fewer."""
    order = np.lexsort((tgt, -likely, src))
    src, tgt = src[order], tgt[order]
    place = np.arange(len(src)) - np.searchsorted(src, src)
    is_listed = place < list_size
    lists = np.zeros((rows, list_size), np.int64)
    lists[src[is_listed], place[is_listed]] = tgt[is_listed]
    return lists


def everywhere(pairs: Sequence[Encoded], vocab: Vocabulary, frequent: int) -> Int64:
    """</s>, single bytes, and the most frequent target words."""
    counts = np.bincount(np.concatenate([pair.tgt for pair in pairs]), minlength=len(vocab))
    counts[:FIRST] = 0
    top = np.argsort(-counts, kind="stable")[:frequent]
    single = [i for i in range(FIRST, len(vocab)) if vocab.piece(i).startswith("<0x")]
    everywhere_: Int64 = np.unique([EOS, *single, *top[counts[top] > 0].tolist()])
    return everywhere_
