"""From a text to the numbers of its tokens, compiled: ASCII is cut as `tmnmt.text.match_tokens`
cuts it.

The vocabulary is a hash table with open addressing and linear probing. Equal hashes prove nothing:
bytes are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tmnmt.compiled.addresses import array_of
from tmnmt.compiled.compiling import compiled, inner, part
from tmnmt.index.kernels.arrays import UNKNOWN, Words, placed
from tmnmt.text import MAX_TOKEN_CHARS, written_for_tokens

UInt8 = NDArray[np.uint8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
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


class NewWords:
    """A vocabulary that grows: new tokens are numbered from 0 in order of appearance."""

    def __init__(self) -> None:
        self._words = Words(
            np.zeros(0, np.uint8), np.zeros(1, np.int64), np.full(8, UNKNOWN, np.int32)
        )
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def text(self) -> UInt8:
        """The tokens in UTF-8, one a line."""
        return self._words.text[: max(0, self._words.start[self._size] - 1)]

    def encode(self, texts: Sequence[str]) -> tuple[Int32, Int32]:
        """The numbers of the match tokens of all texts, end to end, and how many each text has.

        texts: the texts.

        Raises UnicodeEncodeError where a text is no Unicode."""
        encoded = list(map(written_for_tokens, texts))
        text = np.frombuffer(bytearray().join(content for content, _ in encoded), np.uint8)
        ends = np.cumsum([len(content) for content, _ in encoded], dtype=np.int64)
        one_a_line = np.array([lines for _, lines in encoded], np.bool_)
        numbers, lengths = np.empty(len(text), np.int32), np.empty(len(texts), np.int32)
        row = filled = 0
        while row < len(texts):
            row, filled, self._size = enter(
                self._words, self._size, text, ends, one_a_line, row, filled, numbers, lengths
            )
            if row < len(texts):
                self._grow(len(encoded[row][0]))
        return numbers[:filled], lengths

    def _grow(self, extra: int) -> None:
        text, start, _ = self._words
        start = np.concatenate([start, np.zeros(len(start) + extra, np.int64)])
        text = np.concatenate([text, np.zeros(len(text) + 2 * extra, np.uint8)])
        self._words = Words(text, start, placed(text, start, self._size, len(start)))


@inner
def place_of(text: UInt8, begin: int, end: int) -> np.int64:
    """A hash of some bytes (FNV-1a), folded."""
    mixed = _OFFSET
    for i in range(begin, end):
        mixed = (mixed ^ np.uint64(text[i])) * _PRIME
    return np.int64((mixed ^ (mixed >> _HALF)) & np.uint64(0x7FFFFFFF))


def place_all(text: int, start: int, size: int, slots: int, room: int) -> int:
    """Puts the first `size` tokens into `room` slots, given by their addresses."""
    starts, places = array_of(start, size + 1, np.int64), array_of(slots, room, np.int32)
    letters = array_of(text, starts[size] if size else 0, np.uint8)
    for number in range(size):
        place = place_of(letters, starts[number], starts[number + 1] - 1) & (room - 1)
        while places[place] != UNKNOWN:
            place = (place + 1) & (room - 1)
        places[place] = number
    return 0


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
            matched = 0
            while matched < end - begin and words.text[first + matched] == text[begin + matched]:
                matched += 1
            if matched == end - begin:
                return number
        place += 1


@inner
def token_end(text: UInt8, begin: int, end: int) -> int:
    """Where the token ends that begins at `begin` in ASCII text; `begin`: none does."""
    kind, position = _KINDS[text[begin]], begin + 1
    if kind == _NONE:
        return begin
    while kind != _MARK and position < end:
        if _KINDS[text[position]] == kind:
            position += 1
        elif (
            kind == _DIGIT
            and (text[position] == _DOT or text[position] == _COMMA)
            and position + 1 < end
            and _KINDS[text[position + 1]] == _DIGIT
        ):
            position += 2
        else:
            break
    return position


@inner
def line_end(text: UInt8, begin: int, end: int) -> int:
    position = begin
    while position < end and text[position] != _END:
        position += 1
    return position


@inner
def next_token(text: UInt8, begin: int, end: int, one_a_line: bool) -> tuple[int, int]:
    """Where what begins at `begin` ends as a token (at `begin`: it is none), and where to go on."""
    resume = line_end(text, begin, end) if one_a_line else token_end(text, begin, end)
    cut = resume if one_a_line else min(resume, begin + MAX_TOKEN_CHARS)
    return cut, resume if resume > begin and not one_a_line else resume + 1


@part
def encode(
    words: Words, text: UInt8, begin: int, end: int, one_a_line: bool, numbers: Int32
) -> int:
    """Writes the numbers of the tokens of text[begin:end], which is ASCII or has its tokens one a
    line, to `numbers`; how many there are."""
    count, position = 0, begin
    while position < end:
        cut, resume = next_token(text, position, end, one_a_line)
        if cut > position:
            numbers[count] = number_of(words, text, position, cut)
            count += 1
        position = resume
    return count


@inner
def entered(words: Words, size: int, text: UInt8, begin: int, end: int) -> bool:
    """Makes a token the one after `size` of them; False where there is no room."""
    first = words.start[size]
    if size + 2 > words.start.size or first + end - begin + 1 > words.text.size:
        return False
    for i in range(end - begin):
        words.text[first + i] = text[begin + i]
    words.text[first + end - begin] = _END
    words.start[size + 1] = first + end - begin + 1
    place = place_of(text, begin, end) & (words.slots.size - 1)
    while words.slots[place] != UNKNOWN:
        place = (place + 1) & (words.slots.size - 1)
    words.slots[place] = size
    return True


@compiled
def enter(
    words: Words,
    size: int,
    text: UInt8,
    ends: Int64,
    one_a_line: NDArray[np.bool_],
    first_row: int,
    filled: int,
    numbers: Int32,
    lengths: Int32,
) -> tuple[int, int, int]:
    """As `encode` for every text from the one `first_row` on; its numbers come behind the `filled`
    ones, new tokens behind the `size` ones. Returns all three as they are then: fewer than all
    texts are done where there is no more room."""
    for row in range(first_row, ends.size):
        position, count = ends[row - 1] if row else 0, 0
        while position < ends[row]:
            cut, resume = next_token(text, position, ends[row], one_a_line[row])
            if cut > position:
                number = number_of(words, text, position, cut)
                if number == UNKNOWN:
                    if not entered(words, size, text, position, cut):
                        return row, filled, size
                    number = size
                    size += 1
                numbers[filled + count] = number
                count += 1
            position = resume
        lengths[row], filled = count, filled + count
    return ends.size, filled, size
