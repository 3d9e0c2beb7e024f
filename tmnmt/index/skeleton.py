"""The skeleton of a text: what is left of it where numbers, case and punctuation do not count.

    Page 7 of 31.    PAGE 3 of 12    have the skeleton    page 0 of 0

Two texts of one skeleton say the same but for these, whatever their fuzzy score. An index keeps a
hash of every skeleton, so that such segments are found at once, among any number."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import count as numbers_from
from itertools import pairwise
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np

from tmnmt.text import folded, match_tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

NUMBER = "0"  # in a skeleton: any number
_SAYS_SOMETHING = frozenset("%‰&#@*§+<=>$|~^")  # marks that are no mere punctuation
_BITS = 32  # of a hash; as many are left for the number of the text
_MASK = (1 << 64) - 1
_TOKENS_AT_ONCE = 1 << 21  # that are hashed together


def skeleton(text: str) -> tuple[str, ...]:
    """What counts of the match tokens of a text, in order; nothing for punctuation alone.

    text: the text."""
    return bones(match_tokens(text))


def bones(tokens: Iterable[str]) -> tuple[str, ...]:
    """The skeleton of a text.

    tokens: its match tokens."""
    return tuple(filter(None, map(bone, tokens)))


@lru_cache(1 << 16)
def bone(token: str) -> str:
    """What counts of a match token; "" for punctuation.

    token: the match token."""
    if token.isascii():
        if token.isalpha():
            return token.lower()
        return NUMBER if token[:1].isdecimal() else token if token in _SAYS_SOMETHING else ""
    if token[0].isdecimal():
        return NUMBER
    if len(token) == 1 and token not in _SAYS_SOMETHING and unicodedata.category(token)[0] == "P":
        return ""
    return folded(token)


def skeleton_hash(parts: Iterable[str]) -> int:
    """32 bits of a skeleton. Equal skeletons have equal ones, and nearly all others do not.

    parts: the skeleton."""
    total: int = sum(map(mul, map(_hashed, parts), map(_multiplier, numbers_from(0))))
    return (total & _MASK) >> _BITS


def sorted_hashes(
    words: Sequence[str], tokens: NDArray[Any], lengths: NDArray[Any]
) -> NDArray[np.uint64]:
    """The hashes of texts, (texts,), ascending. Of 64 bits the higher half is the hash, the lower
    one the number of the text. Texts without a skeleton are left out.

    words: the words, by their numbers.
    tokens: (tokens,), the match tokens of all texts end to end, as numbers of words.
    lengths: (texts,), how many tokens each text has, the shortest first."""
    of_word = np.array([_hashed(part) if (part := bone(word)) else 0 for word in words], np.uint64)
    parts = [np.empty(0, np.uint64)]
    ends = np.flatnonzero(np.diff(lengths, append=-1)) + 1  # where texts of another length begin
    start = 0
    for first, end in pairwise([0, *ends.tolist()]):
        length = int(lengths[first])
        step = max(1, _TOKENS_AT_ONCE // max(length, 1))
        for row in range(first, end, step):
            count = min(step, end - row)
            stop = start + count * length
            parts.append(_hashes(of_word, tokens[start:stop].reshape(count, length), row))
            start = stop
    return np.sort(np.concatenate(parts))


def texts_with(hashes: NDArray[np.uint64], skeletons: Sequence[int]) -> list[NDArray[np.int64]]:
    """For each of some hashes of skeletons the numbers of the texts that have it, ascending.

    hashes: what `sorted_hashes` gave.
    skeletons: the hashes that are looked for."""
    low = (1 << _BITS) - 1
    first = np.array(skeletons, np.uint64) << np.uint64(_BITS)
    begins = np.searchsorted(hashes, first).tolist()
    ends = np.searchsorted(hashes, first | np.uint64(low)).tolist()
    numbers = [hashes[begin:end] & np.uint64(low) for begin, end in zip(begins, ends, strict=True)]
    return [of_hash.astype(np.int64) for of_hash in numbers]


def _hashes(of_word: NDArray[np.uint64], rows: NDArray[Any], first: int) -> NDArray[np.uint64]:
    """As `sorted_hashes`, of texts of one length, (texts, length), numbered from `first` on."""
    parts = of_word[rows]
    counts = parts != 0
    places = np.cumsum(counts, axis=1)
    multipliers = np.array([0, *map(_multiplier, range(rows.shape[1]))], np.uint64)
    totals = (parts * multipliers[places]).sum(axis=1, dtype=np.uint64)
    numbers = np.arange(first, first + len(rows), dtype=np.uint64)
    high = totals >> np.uint64(_BITS) << np.uint64(_BITS)
    return np.asarray((high | numbers)[counts.any(axis=1)])


@lru_cache(1 << 16)
def _hashed(part: str) -> int:
    """64 bits of a word, never 0."""
    digest = blake2b(part.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1


@lru_cache(1 << 10)
def _multiplier(place: int) -> int:
    """What a word at this place of a skeleton counts: odd, and another at every place."""
    return _hashed(f" {place}") | 1
