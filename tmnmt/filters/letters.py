"""Words in small letters and in capitals."""

from __future__ import annotations

import re
from collections.abc import Callable

WORD = re.compile(r"[^\W\d_]+")


def known_form(word: str, size: Callable[[str], int]) -> str:
    """A word in small letters, with one capital or as it is, letter for letter: the first of these
    that has the least size.

    word: the word.
    size: gives the size of a word for the model."""
    forms = [form for form in (word.lower(), word.title(), word) if len(form) == len(word)]
    return min(forms, key=size)


def capitalised(text: str) -> str:
    """A text with a capital for its first letter, if a word begins it. A letter whose capital is
    that of another letter stays, as the i without a dot does.

    text: the text."""
    first, capital = text[:1], text[:1].upper()
    is_same = len(capital) == 1 and capital.casefold() == first.casefold()
    return capital + text[1:] if is_same else text
