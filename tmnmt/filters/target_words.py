"""The words of what a model wrote, with the subwords that each is made of."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from tmnmt.records import decode_subwords


@dataclass
class Word:
    """Target subwords that are written together.

    first: the first of them.
    end: the one behind the last.
    text: what they say, with the blank before it.
    copied: whether it was copied from the source."""

    first: int
    end: int
    text: str
    copied: bool = False


def target_words(pieces: Sequence[str]) -> list[Word]:
    """Words and signs as they are written; the last one is the end, of the row of </s>.

    pieces: the subwords of the target."""
    words: list[Word] = []
    for index, text in enumerate(decode_subwords(pieces)):
        if words and not text.startswith(" ") and is_word(text) == is_word(words[-1].text):
            words[-1].end, words[-1].text = index + 1, words[-1].text + text
        else:
            words.append(Word(index, index + 1, text))
    return [*words, Word(len(pieces), len(pieces) + 1, "")]


def is_word(text: str) -> bool:
    """Whether a text has letters and digits of a script that parts words by blanks, or nothing.

    text: the text."""
    return all(c.isalnum() and unicodedata.east_asian_width(c) not in "WF" for c in text.strip())
