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
    """A text with a capital for its first letter, if a word begins it.

    text: the text."""
    return text[:1].upper() + text[1:] if len(text[:1].upper()) == 1 else text
