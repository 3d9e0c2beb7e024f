"""The arrays that compiled code is given, by their addresses: taking arrays apart costs more than a
short search. Nothing here needs numba."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.native import Native

UNKNOWN = -1  # the number of a token that is not in the vocabulary
LIST_BLOCK = 128  # numbers of a packed list that have one width
WIDTH_BITS = 6  # of a block's header that say the width

UInt8 = NDArray[np.uint8]
UInt32 = NDArray[np.uint32]
UInt64 = NDArray[np.uint64]
Int16 = NDArray[np.int16]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Kinds = Mapping[str, type[np.generic]]


class Arrays(NamedTuple):
    """The postings. A group is a distinct token sequence; groups are sorted by length. A feature is
    a token with the number of its occurrence in the segment ("the", the second "the"), which makes
    a multiset a set. The most frequent features are columns, the others have postings. Ranks number
    the segments from newest (greatest `changed`, then smallest id) to oldest."""

    length_start: Int64  # (longest + 2,) first group of every length
    token_start: Int64  # (longest + 2,) where that group's tokens begin
    tokens: UInt64  # all tokens of the groups, each in `token_width` bits
    feature_start: Int32  # (vocabulary + 1,) first feature of every token
    column_of: Int16  # (features,) -1: it has postings
    columns: UInt64  # (columns + 1, 8 words a block), flat; bit g: group g has the feature;
    # rarest last but for an empty one
    column_blocks: UInt64  # (columns + 1, 1 word every 64 blocks), flat; bit b: some group of block
    # b has the feature
    # the groups of every feature that has no column, as `PackedLists`
    posting_start: Int64  # (features + 1,)
    posting_block: Int64  # (features + 1,)
    posting_first: Int32
    posting_header: Int64
    postings: UInt64
    member_offsets: Int32  # (groups + 1,)
    members: Int32  # (segments,) ranks of every group's segments, ascending
    document_of: Int32  # (segments,) by rank
    ids: UInt32  # (segments,) by rank


KINDS: Kinds = {
    "length_start": np.int64,
    "token_start": np.int64,
    "tokens": np.uint64,
    "feature_start": np.int32,
    "column_of": np.int16,
    "columns": np.uint64,
    "column_blocks": np.uint64,
    "posting_start": np.int64,
    "posting_block": np.int64,
    "posting_first": np.int32,
    "posting_header": np.int64,
    "postings": np.uint64,
    "member_offsets": np.int32,
    "members": np.int32,
    "document_of": np.int32,
    "ids": np.uint32,
}  # of the numbers in `Arrays`


class Words(NamedTuple):
    """The vocabulary. While it grows there is room behind the text and the starts."""

    text: UInt8  # the tokens in UTF-8, one a line
    start: Int64  # (tokens + 1,) where each begins
    slots: Int32  # (a power of two,) the number of the token whose place it is, or UNKNOWN


_OF_WORDS: Kinds = {"text": np.uint8, "start": np.int64, "slots": np.int32}


class Job(NamedTuple):
    """What `best_of_each` is told beside the arrays and the text, as 64-bit numbers, and how far it
    is."""

    queries: int  # address of (queries, 5) numbers: where its bytes end in the text, whether they
    # are tokens, one a line, the least score, a float64; to be written: how many groups share
    # enough tokens with it, and how many edit distances were computed
    queries_count: int
    limit: int  # k
    without_equal: int
    room: int  # address of the hits, and of where compiled code writes
    room_size: int  # in words of 64 bits
    parts: int  # address of (parts, 4) numbers: the addresses of a part's table, of a byte a rank,
    # 0 where the segment is left out (0: all are kept), and of its dead ids; how many those are
    parts_count: int
    documents: int  # address of (parts, queries) numbers of the document that is left out
    completed: int = 0  # queries
    hits: int = 0  # rows of 5 floats each at the beginning of the room: query, part, rank, edit
    # distance, score
    required: int = 0  # words of room to go on; 0: all is done


(
    QUERIES,
    COUNT,
    LIMIT,
    WITHOUT_EQUAL,
    ROOM,
    ROOM_SIZE,
    PARTS,
    PARTS_COUNT,
    DOCUMENTS,
    COMPLETED,
    HITS,
    REQUIRED,
) = range(len(Job._fields))
QUERY, COLUMNS = 5, 5  # numbers of a query's row, and of a hit's


class Sought(NamedTuple):
    """What `newest_with` is told, as 64-bit numbers: a phrase, and where the words of a side stand;
    and how it went. All but numbers are addresses."""

    words: int  # of the phrase
    rarest: int  # which of them is gone through
    is_rare: int  # the positions of that one are gone through; else all words have bits
    max_distance: int  # tokens that words near each other may be apart; 0: they stand in a row
    size: int  # of the positions
    # the positions of every word, as `PackedLists`
    start: int
    block_start: int
    lists_count: int
    firsts: int
    headers: int
    blocks_count: int
    packed: int
    packed_size: int  # words
    stretches: int  # (stretches + 1,) where those of sequences of one length begin
    lengths: int  # (stretches,) of their sequences
    stretches_count: int
    first_groups: int  # (stretches,)
    stretch_at: int  # (size >> BLOCK_BITS, + 1) the stretch of every so many positions
    member_offsets: int
    groups: int
    members: int
    segments: int
    group_of: int  # (segments,) by rank
    list_start: int  # (words + 1,) of `lists`
    lists: int  # the lists that a word has, one or several
    chosen_count: int  # of them
    bits_at: int  # (words,): the addresses of bits that are all 0; 0: the word has none
    words_of_bits: int  # of 64 bits each
    allowed: int  # a byte a rank: 0 where the segment is left out; 0: all are kept
    states: int  # a byte a group, 0
    best: int  # (k,) the ranks that are found
    k: int
    newest: int  # segments that are looked at one by one, where no word is rare
    newest_count: int = 0  # or DAMAGE


BLOCK_BITS = 8
DAMAGE = -1  # what was read names something that is not there
NEWEST_COUNT = Sought._fields.index("newest_count")
best_of_each = Native("index.kernels.search", "best_of_each", "search", "int64", "bytes")
newest_with = Native("index.kernels.phrases", "newest_with", "concordance", "int64")
_place_all = Native("index.kernels.tokens", "place_all", "table of words", *("int64",) * 5)


def address_of(
    label: str, array: NDArray[Any], kind: type[np.generic], size: int, writable: bool = False
) -> int:
    """The address of an array, as compiled code takes it.

    label: what messages call the array.
    array: the array.
    kind: the type that its items must have.
    size: how many items it must have.
    writable: whether compiled code writes to it.

    Raises ValueError for another type or size, for an array that is not contiguous, and for one
    that may not be written where it has to be."""
    flags = array.flags
    if (
        array.dtype != kind
        or array.size != size
        or not flags.c_contiguous
        or (writable and not flags.writeable)
    ):
        expected = f"{size:,} {np.dtype(kind)}, contiguous{', writable' if writable else ''}"
        raise ValueError(
            f"{label}: {array.size:,} {array.dtype} of strides {[*array.strides]}, "
            f"{'writable' if flags.writeable else 'read-only'}; wanted: {expected}"
        )
    return array.ctypes.data


def table_of(arrays: Arrays, words: Words) -> Int64:
    """(all arrays, 2): the address and the number of items of each. The caller keeps the arrays.

    arrays: the postings.
    words: the vocabulary.

    Raises ValueError for arrays that compiled code would misread."""
    all_arrays: tuple[NDArray[Any], ...] = (*arrays, *words)
    kinds = (*KINDS.items(), *_OF_WORDS.items())
    rows = [
        (address_of(name, array, kind, array.size), array.size)
        for (name, kind), array in zip(kinds, all_arrays, strict=True)
    ]
    return np.array(rows, np.int64)


def numbered(text: UInt8) -> Words:
    """A vocabulary of tokens, numbered from 0.

    text: the tokens, which stand one a line."""
    ends = np.flatnonzero(text == ord("\n")) + 1
    last = [len(text) + 1] if len(text) else []
    start = np.concatenate([[0], ends, last]).astype(np.int64)
    return Words(text, start, placed(text, start, len(start) - 1, len(start) - 1))


def placed(text: UInt8, start: Int64, size: int, room: int) -> Int32:
    """The slots of tokens.

    text: the tokens, which stand one a line.
    start: where each token begins.
    size: how many of the first tokens get a slot.
    room: how many tokens there are slots for."""
    slots = np.full(max(8, 1 << (2 * room - 1).bit_length()), UNKNOWN, np.int32)
    of_text = address_of("text", text, np.uint8, len(text))
    of_start = address_of("starts of words", start, np.int64, len(start))
    of_slots = address_of("slots", slots, np.int32, len(slots), writable=True)
    _place_all(of_text, of_start, size, of_slots, len(slots))
    return slots
