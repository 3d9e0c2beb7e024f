"""Where every word of a side stands: what a concordance is answered from.

The distinct token sequences of a side lie end to end, the shortest first. A position counts their
tokens from 0. The vocabulary is sorted by how its words are spelt, so that those that differ only
in case stand side by side, and so do all that begin alike. Each has its positions, ascending."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.concordance import Phrase, Word, spelling
from tmnmt.index.embedded.packed import PackedLists
from tmnmt.index.kernels.arrays import (
    BLOCK_BITS,
    DAMAGE,
    NEWEST_COUNT,
    Sought,
    address_of,
    newest_with,
)

POSITION, POSITIONS = "position", "positions"  # a kind of lists, and its last part
TARGET = "target_"  # before the names of a part that is of the targets
_LAST = "\U0010ffff"  # no token has it
# A word is rare where there are so many times as many segments; and a word is looked for by halving
# its lists where it stands so many times as often, for each of them.
FREQUENT = 16
NEWEST = 1 << 15  # segments that are looked at one by one, before all are as they lie

Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]


def order_of(word: str) -> tuple[str, str]:
    """What words are sorted by.

    word: the word."""
    return spelling(word), word


class WordPositions:
    """The positions of the words of one side, by the parts of postings with these names."""

    def __init__(self, parts: Mapping[str, NDArray[Any]], prefix: str) -> None:
        """parts: the arrays of the postings, by their names.
        prefix: what the names of one side begin with."""
        self._text = parts[f"{prefix}vocabulary"]
        self._positions = PackedLists.of_parts(parts, prefix + POSITION)
        self._length_start = parts[f"{prefix}length_start"]
        self._token_start = parts[f"{prefix}token_start"]
        self._offsets, self._members = parts[f"{prefix}member_offsets"], parts[f"{prefix}members"]
        self._ids = parts[f"{prefix}ids"]
        self._size = int(self._token_start[-1])  # positions

    def newest(self, phrase: Phrase, k: int, allowed_ids: NDArray[np.bool_] | None) -> list[int]:
        """The ids of the newest segments that have a phrase.

        phrase: the phrase.
        k: how many ids are given at most.
        allowed_ids: (ids,), by id whether the segment counts; None lets all count.

        Raises ValueError and IndexError where what is read is damaged."""
        lists = [self._word_numbers(word, phrase.match_case) for word in phrase.words]
        start = self._positions.start
        counts = [int((start[of_word + 1] - start[of_word]).sum()) for of_word in lists]
        k = min(k, len(self._ids))
        if not k or not all(counts):
            return []
        allowed = None if allowed_ids is None else allowed_ids[self._ids].view(np.uint8)
        ranks = self._ranks(phrase, lists, counts, k, allowed)
        newest: list[int] = self._ids[np.sort(ranks)].tolist()
        return newest

    def _ranks(
        self,
        phrase: Phrase,
        lists: Sequence[Int64],
        counts: Sequence[int],
        k: int,
        allowed: UInt8 | None,
    ) -> Int64:
        """The ranks of the `k` newest, in no order. `lists`: the numbers of the words that each
        word of the phrase means."""
        rarest = counts.index(min(counts))
        is_rare = FREQUENT * counts[rarest] < len(self._members)
        bit_words = self._size // 64 + 4
        bits = {
            word: np.zeros(bit_words, np.uint64)
            for word, of_word, count in zip(phrase.words, lists, counts, strict=True)
            if not is_rare
            or (word != phrase.words[rarest] and len(of_word) * FREQUENT * counts[rarest] > count)
        }
        bits_at = np.array(
            [
                address_of("bits", bits[word], np.uint64, bit_words, writable=True)
                if word in bits
                else 0
                for word in phrase.words
            ],
            np.int64,
        )
        list_start = np.cumsum([0, *map(len, lists)])
        chosen = np.concatenate(lists)
        states, best = np.zeros(len(self._offsets) - 1, np.uint8), np.empty(k, np.int64)
        size = len(self._ids)
        sought = Sought(
            **self._side,
            words=len(lists),
            rarest=rarest,
            is_rare=is_rare,
            max_distance=phrase.within or 0,
            list_start=address_of("starts", list_start, np.int64, len(lists) + 1),
            lists=address_of("lists", chosen, np.int64, len(chosen)),
            chosen_count=len(chosen),
            bits_at=address_of("bits", bits_at, np.int64, len(lists)),
            words_of_bits=bit_words,
            allowed=0 if allowed is None else address_of("allowed", allowed, np.uint8, size),
            states=address_of("states", states, np.uint8, len(states), writable=True),
            best=address_of("best", best, np.int64, k, writable=True),
            k=k,
            newest=NEWEST,
        )
        job = array("q", sought)
        newest_with(job.buffer_info()[0])
        if job[NEWEST_COUNT] == DAMAGE:
            raise ValueError("names a text or a segment that is not there")
        return best[: job[NEWEST_COUNT]]

    @cached_property
    def _side(self) -> dict[str, int]:
        """What `Sought` says of the side, whatever the phrase is."""
        stretches, count = self._stretches, len(self._stretches.lengths)
        groups, segments, size = len(self._offsets) - 1, len(self._members), self._size
        stretch_blocks, positions = (size >> BLOCK_BITS) + 1, self._positions
        lists, blocks = len(positions.start) - 1, len(positions.firsts)
        packed_size = len(positions.packed)
        return {
            "size": size,
            "start": address_of("starts of words", positions.start, np.int64, lists + 1),
            "block_start": address_of("blocks", positions.block_start, np.int64, lists + 1),
            "lists_count": lists,
            "firsts": address_of("first positions", positions.firsts, np.int32, blocks),
            "headers": address_of("headers", positions.headers, np.int64, blocks),
            "blocks_count": blocks,
            "packed": address_of("positions", positions.packed, np.uint64, packed_size),
            "packed_size": packed_size,
            "stretches": address_of("stretches", stretches.starts, np.int64, count + 1),
            "lengths": address_of("lengths", stretches.lengths, np.int64, count),
            "stretches_count": count,
            "first_groups": address_of("first texts", stretches.first_groups, np.int64, count),
            "stretch_at": address_of("stretches", stretches.of_blocks, np.int32, stretch_blocks),
            "member_offsets": address_of("offsets", self._offsets, np.int32, groups + 1),
            "groups": groups,
            "members": address_of("members", self._members, np.int32, segments),
            "segments": segments,
            "group_of": address_of("texts of segments", self._group_of, np.int32, segments),
        }

    def _word_numbers(self, word: Word, match_case: bool) -> Int64:
        """The numbers of the words that are meant."""
        text = spelling(word.text)
        first = bisect_left(self._spellings, text)
        end = bisect_left(self._spellings, text + (_LAST if word.is_beginning else "\0"))
        numbers = range(first, end)
        if match_case:
            numbers_of = [n for n in numbers if word.is_in(spelling(self._word(n), True))]
            return np.array(numbers_of, np.int64)
        return np.arange(first, end)

    @cached_property
    def _group_of(self) -> NDArray[np.int32]:
        """The sequence of every segment, by rank."""
        counts = np.diff(self._offsets)
        groups = np.full(len(self._members), -1, np.int32)
        groups[self._members] = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        return groups

    @cached_property
    def _stretches(self) -> _Stretches:
        counts = np.diff(self._length_start)
        lengths = np.flatnonzero(counts * np.arange(len(counts)))
        starts = np.append(self._token_start[lengths], self._size)
        if not np.array_equal(np.diff(starts), counts[lengths] * lengths):
            raise ValueError("does not fit the lengths of the texts")
        if np.any(self._offsets[1:] == self._offsets[:-1]):
            raise ValueError("has a text without a segment")
        blocks = np.arange(0, self._size + 1, 1 << BLOCK_BITS)
        indices = np.minimum(np.searchsorted(starts, blocks, "right"), len(lengths)) - 1
        return _Stretches(starts, lengths, self._length_start[lengths], indices.astype(np.int32))

    @cached_property
    def _ends(self) -> Int64:
        """Where every word ends in the text of the vocabulary."""
        return np.append(np.flatnonzero(self._text == ord("\n")), len(self._text))

    def _word(self, number: int) -> str:
        begin = int(self._ends[number - 1]) + 1 if number else 0
        return self._text[begin : int(self._ends[number])].tobytes().decode()

    @cached_property
    def _spellings(self) -> _Spellings:
        return _Spellings(self._word, len(self._positions.start) - 1)


class _Stretches(NamedTuple):
    """Where the sequences of one length lie end to end, those of every length."""

    starts: Int64  # (stretches + 1,)
    lengths: Int64
    first_groups: Int64
    of_blocks: NDArray[np.int32]  # that of every first one of so many positions


class _Spellings(Sequence[str]):
    """How every word of a vocabulary is spelt, read when it is asked for: few are."""

    def __init__(self, word: Callable[[int], str], size: int) -> None:
        self._word, self._size = word, size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, number: Any) -> Any:
        return spelling(self._word(number))
