"""Texts in capitals throughout, such as headings: models and memories hardly know them, so they are
read in the letters of a sentence, and what comes out is in capitals again. Headings with capitals
at the beginning of words can be read as what stands within a sentence.

    THE MINISTER OF CANADA    the source
    The minister of Canada    what the model reads, and the memories are asked for

    Minister of Canada        a heading
    minister of Canada        what the model may read"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby

from tmnmt.codes.record import Text
from tmnmt.languages import listed

HEADING = 12  # words at most
_NO_HEADING = ".!?…。！？:;,"  # how none ends
LONG = 4  # letters of a word that is no mere abbreviation
_BYTE = re.compile("<0x[0-9A-Fa-f]{2}>")  # of a letter that no subword has
_WORD = re.compile(r"[^\W\d_]+")
_BEGIN = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+[\"'“‘«(\[]?[^\W\d_]")  # of another sentence
_VOWELS = "aeiouyáàâäéèêëíìîïóòôöúùûü"


def in_capitals(text: Text) -> bool:
    """Whether all letters are capitals, and one word at least is long; what codes cover does not
    count."""
    words = [word for part in text.parts() if isinstance(part, str) for word in _WORD.findall(part)]
    return any(len(word) >= LONG and word.isupper() for word in words) and not any(
        any(letter.islower() for letter in word) for word in words
    )


def recased(text: Text, size: Callable[[str], int]) -> str:
    """The plain text of `text`, which is in capitals, as in a sentence, letter for letter: of small
    letters, one capital or all capitals every word has the first of the least `size`, which is that
    of a word for the model. What codes cover stays."""
    shown = ""
    for part in text.parts():
        if isinstance(part, str):
            shown += _WORD.sub(lambda word: _as_known(word[0], size), part)
        else:
            shown += part[1]
    return shown


def within_sentence(text: str, size: Callable[[str], int]) -> str | None:
    """A heading in the letters that it would have within a sentence: words in small letters but for
    names, which are of least `size` as they stand, and words in capitals throughout. None of what
    is no heading: what begins with a small letter, ends like a sentence or a clause, or is
    longer."""
    if not text[:1].isupper() or text[-1:] in _NO_HEADING or len(text.split()) > HEADING:
        return None
    read = _WORD.sub(
        lambda word: word[0] if word[0][1:].isupper() else _as_known(word[0], size), text
    )
    return read if read != text else None


def pieces_in_capitals(pieces: Sequence[str]) -> list[str]:
    """The subwords of a text in capitals. A letter that is written byte by byte, <0xC5><0x82>,
    becomes the bytes of its capital; one whose capital has not as many bytes stays."""
    made = list[str]()
    for are_bytes, run in groupby(pieces, lambda piece: bool(_BYTE.fullmatch(piece))):
        own = list(run)
        made += _bytes_in_capitals(own) if are_bytes else map(str.upper, own)
    return made


def _bytes_in_capitals(pieces: list[str]) -> list[str]:
    letters = bytes(int(piece[3:5], 16) for piece in pieces).decode(errors="ignore")
    capitals = letters.upper().encode()
    if len(letters.encode()) != len(pieces) or len(capitals) != len(pieces):
        return pieces
    return [f"<0x{byte:02X}>" for byte in capitals]


def _as_known(word: str, size: Callable[[str], int]) -> str:
    forms = [form for form in (word.lower(), word.title(), word) if len(form) == len(word)]
    return min(forms, key=size)


def as_sentences(text: str) -> str:
    """With a capital for the first letter of every sentence."""
    return capitalised(_BEGIN.sub(_begun, text))


@cache
def _abbreviation() -> re.Pattern[str]:
    """Behind what no sentence ends with a full stop: a letter, letters without a vowel, or an
    abbreviation."""
    known = "|".join(listed("abbreviations"))
    return re.compile(rf"(?<![^\W\d_])(?:[^\W\d_]|[^\W\d_{_VOWELS}]+|{known})\.$", re.IGNORECASE)


def _begun(begin: re.Match[str]) -> str:
    if _abbreviation().search(begin.string, max(0, begin.start() - LONG - 2), begin.start()):
        return begin[0]
    return begin[0][:-1] + capitalised(begin[0][-1])


def capitalised(text: str) -> str:
    """With a capital for its first letter, if a word begins the text."""
    return text[:1].upper() + text[1:] if len(text[:1].upper()) == 1 else text
