"""Quotation marks of a source, as a model reads them best."""

from __future__ import annotations

import re

# A straight quote opens behind white space or what opens itself, and before a word; it closes
# behind a word or a mark. One behind a digit may stand for inches, so it closes what is open only.
_STRAIGHT = re.compile(r'"')
_OPENS = re.compile(r"(?:^|[\s(\[{—–/=:-])\Z")
_OPENING = re.compile(r"(?<!\w)([“«„‹])(?=\w)")
STRAIGHT, QUOTES = '"', "“«„‹"


def paired(text: str) -> str:
    """A text with curly quotes in place of straight ones that open and close; each character has
    one in its place. One that has no other half stays.

    text: the text."""
    if text.count(STRAIGHT) < 2:
        return text
    signs, opening = list(text), -1
    for quote in _STRAIGHT.finditer(text):
        place = quote.start()
        following = text[place + 1 : place + 2]
        if opening < 0:
            if following.strip() and _OPENS.search(text[:place][-1:]):
                opening = place
        elif place - opening > 1 and not text[place - 1].isspace():
            signs[opening], signs[place], opening = "“", "”", -1
    return "".join(signs)


def apart(text: str) -> str:
    """A text with a blank behind every opening quote at a word, so that the word behind it is read
    as it is alone.

    text: the text."""
    return _OPENING.sub(r"\1 ", text) if any(quote in text for quote in QUOTES) else text
