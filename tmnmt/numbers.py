"""Numbers of a source that its translation lacks."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

# Digits, with the signs that group them or stand before decimals; a blank only groups three.
NUMBER = re.compile(
    r"\d+(?:[.,'\u2019]\d+|(?:(?<=\b\d)|(?<=\b\d\d)|(?<=\d\d\d))[ \u00a0\u2009\u202f]\d{3}(?!\d))*"
)


def missing_numbers(src: str, tgt: str) -> list[str]:
    """The numbers of `src`, as they stand there, whose digits `tgt` does not have, or not as often.

    How digits are grouped and decimals are marked does not count: 12,345.67 is 12 345,67. Nor does
    it count whether parts stand together: 31.12.1996 is 31/12/1996. Numbers in words are not
    read."""
    theirs = NUMBER.findall(tgt)
    left = Counter(map(_digits, theirs))
    others = []
    for number in NUMBER.findall(src):
        if left[_digits(number)]:
            left[_digits(number)] -= 1
        else:
            others.append(number)
    parts = Counter[str]()
    for number in theirs:
        if left[_digits(number)]:
            left[_digits(number)] -= 1
            parts.update(_parts(number))
    return [number for number in others if not _taken(_parts(number), parts)]


def _taken(wanted: list[str], parts: Counter[str]) -> bool:
    """Whether all that is wanted is among the parts; then it is taken out of them."""
    if Counter(wanted) <= parts:
        parts.subtract(wanted)
        return True
    return False


def _digits(number: str) -> str:
    return "".join(_parts(number))


def _parts(number: str) -> list[str]:
    return [
        "".join(str(unicodedata.decimal(digit)) for digit in run)
        for run in re.findall(r"\d+", number)
    ]
