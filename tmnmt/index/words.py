"""From a text to the numbers of its tokens, compiled: ASCII is cut as `tmnmt.text.match_tokens` cuts it.

The vocabulary is a hash table with open addressing and linear probing. Equal hashes prove nothing: bytes are compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tmnmt.index.compiling import compiled, inner
from tmnmt.text import MAX_TOKEN_CHARS

UInt8 = NDArray[np.uint8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UNKNOWN = -1  # the number of a token that is not in the vocabulary
_OFFSET, _PRIME, _HALF = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3), np.uint64(32)
_END, _DOT, _COMMA = 10, 46, 44
_NONE, _LETTER, _DIGIT, _MARK = 0, 1, 2, 3


def _kind(character: str) -> int:
    if character.isalpha():
        return _LETTER
    if character.isdigit():
        return _DIGIT
    return _MARK if character.isprintable() and character != " " else _NONE


_KINDS = np.array([_kind(chr(byte)) if byte < 128 else _NONE for byte in range(256)], np.uint8)


class Words(NamedTuple):
    """The vocabulary."""

    text: UInt8  # the tokens in UTF-8, one a line
    start: Int64  # (tokens + 1,) where each begins
    slots: Int32  # (a power of two,) the number of the token whose place it is, or UNKNOWN


@inner
def place_of(text: UInt8, begin: int, end: int) -> np.int64:
    """A hash of some bytes (FNV-1a), folded."""
    mixed = _OFFSET
    for i in range(begin, end):
        mixed = (mixed ^ np.uint64(text[i])) * _PRIME
    return np.int64((mixed ^ (mixed >> _HALF)) & np.uint64(0x7FFFFFFF))


@compiled
def numbered(text: UInt8) -> Words:
    """The vocabulary of tokens that stand one a line, numbered from 0."""
    size = 0
    for byte in text:
        size += byte == _END
    size = size + 1 if text.size else 0
    start, slots = np.zeros(size + 1, np.int64), np.full(8, UNKNOWN, np.int32)
    while slots.size < 2 * size:
        slots = np.full(2 * slots.size, UNKNOWN, np.int32)
    number, begin = 0, 0
    for i in range(text.size + 1 if size else 0):
        if i == text.size or text[i] == _END:
            place = place_of(text, begin, i) & (slots.size - 1)
            while slots[place] != UNKNOWN:
                place = (place + 1) & (slots.size - 1)
            slots[place] = number
            number, begin = number + 1, i + 1
            start[number] = begin
    return Words(text, start, slots)


@inner
def number_of(words: Words, text: UInt8, begin: int, end: int) -> int:
    """The number of a token, or UNKNOWN."""
    place = place_of(text, begin, end)
    while True:
        number: int = words.slots[place & (words.slots.size - 1)]
        if number == UNKNOWN:
            return UNKNOWN
        first = words.start[number]
        if words.start[number + 1] - 1 - first == end - begin:
            same = 0
            while same < end - begin and words.text[first + same] == text[begin + same]:
                same += 1
            if same == end - begin:
                return number
        place += 1


@inner
def token_end(text: UInt8, begin: int, end: int) -> int:
    """Where the token ends that begins at `begin` in ASCII text; `begin`: none does."""
    kind, at = _KINDS[text[begin]], begin + 1
    if kind == _NONE:
        return begin
    while kind != _MARK and at < end:
        if _KINDS[text[at]] == kind:
            at += 1
        elif (
            kind == _DIGIT
            and (text[at] == _DOT or text[at] == _COMMA)
            and at + 1 < end
            and _KINDS[text[at + 1]] == _DIGIT
        ):
            at += 2
        else:
            break
    return at


@inner
def line_end(text: UInt8, begin: int, end: int) -> int:
    at = begin
    while at < end and text[at] != _END:
        at += 1
    return at


@inner
def encode(words: Words, text: UInt8, begin: int, end: int, one_a_line: bool, numbers: Int32) -> int:
    """Writes the numbers of the tokens of text[begin:end], which is ASCII or has its tokens one a line, to `numbers`;
    how many there are."""
    held, at = 0, begin
    while at < end:
        after = line_end(text, at, end) if one_a_line else token_end(text, at, end)
        if after > at:
            cut = after if one_a_line else min(after, at + MAX_TOKEN_CHARS)
            numbers[held] = number_of(words, text, at, cut)
            held += 1
        at = after if after > at and not one_a_line else after + 1
    return held
