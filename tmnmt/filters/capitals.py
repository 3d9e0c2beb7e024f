"""Texts in capitals throughout, such as headings: models and memories hardly know them, so they are
read in the letters of a sentence, and what comes out is in capitals again.

    THE MINISTER OF CANADA    the source
    The minister of Canada    what the model reads, and the memories are asked for"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby

from tmnmt.codes.placeholders import with_placeholders
from tmnmt.codes.record import Part, Source, Text, join_parts
from tmnmt.filters.contract import Filter, ModelOutput, Undo
from tmnmt.filters.letters import WORD, capitalised, known_form
from tmnmt.languages import listed

LONG = 4  # letters of a word that is no mere abbreviation
_BYTE = re.compile("<0x[0-9A-Fa-f]{2}>")  # of a letter that no subword has
_BEGIN = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+[\"'“‘«(\[]?[^\W\d_]")  # of another sentence
_VOWELS = "aeiouyáàâäéèêëíìîïóòôöúùûü"


class Capitals(Filter, Undo):
    """Reads a text in capitals in the letters of a sentence."""

    is_recased = True

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        text = source if isinstance(source, Text) else Text(source)
        if not in_capitals(text):
            return source, None
        reading = self._read(text)
        return reading if isinstance(source, Text) else reading.plain, self

    def _read(self, text: Text) -> Text:
        """What the codes cover stays, and counts as what a model reads for it."""
        recased_text = Text(recased(text, self.reader.size), text.codes)
        pieces = [
            part if isinstance(part, str) else self._reading(part[1])
            for part in recased_text.parts()
        ]
        whole, offset, parts = as_sentences("".join(pieces)), 0, list[Part]()
        for part, piece in zip(recased_text.parts(), pieces, strict=True):
            parts.append(whole[offset : offset + len(piece)] if isinstance(part, str) else part)
            offset += len(piece)
        return join_parts(parts)

    def _reading(self, covered: str) -> str:
        character = self.reader.reads(covered) if covered.strip() else covered
        return "0" if character is None else character

    def restore_piece(self, output: ModelOutput) -> str:
        return output.text.upper()

    def restore_tokens(self, tokens: Sequence[str]) -> Sequence[str]:
        return pieces_in_capitals(tokens)

    def display(self, text: str) -> str:
        return text.upper()

    def query(self, text: str) -> str:
        return as_sentences(recased(with_placeholders(Text(text)), self.reader.size))


def in_capitals(text: Text) -> bool:
    """Whether all letters of a text are capitals, and one word at least is long. What codes cover
    does not count.

    text: the text."""
    words = [word for part in text.parts() if isinstance(part, str) for word in WORD.findall(part)]
    return any(len(word) >= LONG and word.isupper() for word in words) and not any(
        any(letter.islower() for letter in word) for word in words
    )


def recased(text: Text, size: Callable[[str], int]) -> str:
    """The plain text of a text in capitals, as in a sentence, letter for letter: of small letters,
    one capital or all capitals every word has the first of the least size. What codes cover stays.

    text: the text.
    size: gives the size of a word for the model."""
    result = ""
    for part in text.parts():
        if isinstance(part, str):
            result += WORD.sub(lambda word: known_form(word[0], size), part)
        else:
            result += part[1]
    return result


def pieces_in_capitals(pieces: Sequence[str]) -> list[str]:
    """The subwords of a text in capitals. A letter that is written byte by byte, <0xC5><0x82>,
    becomes the bytes of its capital; one whose capital has not as many bytes stays.

    pieces: the subwords."""
    result = list[str]()
    for are_bytes, run in groupby(pieces, lambda piece: bool(_BYTE.fullmatch(piece))):
        group = list(run)
        result += _bytes_in_capitals(group) if are_bytes else map(str.upper, group)
    return result


def _bytes_in_capitals(pieces: list[str]) -> list[str]:
    letters = bytes(int(piece[3:5], 16) for piece in pieces).decode(errors="ignore")
    capitals = letters.upper().encode()
    if len(letters.encode()) != len(pieces) or len(capitals) != len(pieces):
        return pieces
    return [f"<0x{byte:02X}>" for byte in capitals]


def as_sentences(text: str) -> str:
    """A text with a capital for the first letter of every sentence.

    text: the text."""
    return capitalised(_BEGIN.sub(_capitalise_start, text))


@cache
def _abbreviation() -> re.Pattern[str]:
    """Behind what no sentence ends with a full stop: a letter, letters without a vowel, or an
    abbreviation."""
    abbreviations = "|".join(listed("abbreviations"))
    return re.compile(
        rf"(?<![^\W\d_])(?:[^\W\d_]|[^\W\d_{_VOWELS}]+|{abbreviations})\.$", re.IGNORECASE
    )


def _capitalise_start(begin: re.Match[str]) -> str:
    if _abbreviation().search(begin.string, max(0, begin.start() - LONG - 2), begin.start()):
        return begin[0]
    return begin[0][:-1] + capitalised(begin[0][-1])
