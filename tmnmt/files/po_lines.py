"""Strings of a PO file broken into lines, as gettext does: behind line ends, and at column 79."""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import combining, east_asian_width

from tmnmt.files.po_syntax import escaped

WIDTH = 79
_PART = re.compile(r"[^\n]*\n|[^\n]+")
_WORD = re.compile(r"\S*\s*")


def lines_of(string: str, keyword: str, width: int | None) -> list[str]:
    """The lines, with quotation marks, on which a string stands behind its keyword: one where it
    fits, else an empty one first.

    string: the string.
    keyword: the keyword.
    width: how many columns a line may have; None breaks lines only where the string's lines end."""
    parts = _PART.findall(string)
    lines = [line for part in parts for line in (_pieces(part, width) if width else [part])]
    fits = width is None or len(keyword) + 3 + _columns(escaped(string)) <= width
    if len(lines) > 1 or not fits:
        lines = ["", *lines]
    return [f'"{escaped(line)}"' for line in lines or [""]]


def is_wrapped(text: str) -> bool:
    """Whether the strings of a file have no longer lines than gettext makes where it can.

    text: the file."""
    long = (line for line in text.split("\n") if len(line) > WIDTH + 1)
    strings = (line[line.find('"') :] for line in long if not line.startswith("#"))
    return not any(len(string) > WIDTH + 1 and " " in string[:WIDTH] for string in strings)


def _columns(text: str) -> int:
    """How wide a text stands on a terminal."""
    if text.isascii():
        return len(text)
    return sum(1 + (east_asian_width(sign) in "WF") for sign in text if not combining(sign))


def _pieces(line: str, width: int) -> Iterator[str]:
    """A line in pieces that fit, escaped and between quotation marks, where blanks allow it."""
    piece, columns = "", 2
    for word in _WORD.findall(line):
        wide = _columns(escaped(word.rstrip()))
        if piece and columns + wide > width:
            yield piece
            piece, columns = "", 2
        piece += word
        columns += _columns(escaped(word))
    if piece:
        yield piece
