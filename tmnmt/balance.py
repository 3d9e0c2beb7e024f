"""Brackets and quotation marks that lack their other half."""

from __future__ import annotations

import re

_OPENING, _CLOSING = "([{（［｛「『【〈《〔", ")]}）］｝」』】〉》〕"
_OPENING_OF = dict(zip(_CLOSING, _OPENING, strict=True))
# what counts or names an item: "a)", "12(1)b)", "iii)", "aa)"; and a face as in ":)"
_ITEM = re.compile(r"(?:(?<![^\W\d_])(?:\d+|\d*(?:([^\W\d_])\1?|[ivxlcIVXLC]+))|[:;][-']?)\s?\Z")
# the marks of one kind come in even numbers, whichever of them a language opens with
_QUOTES = (re.compile("[«»]"), re.compile('[“”„‟]|(?<!\\d)"'))
LONGEST_ITEM = 10  # characters
# a text in single quotes, or a part of one: an apostrophe stands inside a word
_SINGLE_OPENING, _SINGLE_CLOSING = re.compile("\\s*['‘‚`´]"), re.compile(r"['’`´][\s.;,]*\Z")


def unbalanced_brackets(text: str) -> str:
    """The brackets of a text that lack their other half, in their order. A closing one behind the
    letter or number of an item lacks none, as in "a)".

    text: the text."""
    waiting: list[str] = []
    alone: list[str] = []
    for place, sign in enumerate(text):
        if sign in _OPENING:
            waiting.append(sign)
        elif (opening := _OPENING_OF.get(sign)) is None:
            continue
        elif opening in waiting:
            while (last := waiting.pop()) != opening:
                alone.append(last)
        elif not _ITEM.search(text[max(0, place - LONGEST_ITEM) : place]):
            alone.append(sign)
    return "".join([*alone, *waiting])


def unbalanced_quotes(text: str) -> str:
    """The quotation marks of a kind of which a text has an odd number. Marks for inches, as in 5",
    do not count.

    text: the text."""
    marks_by_kind = (pattern.findall(text) for pattern in _QUOTES)
    return "".join("".join(marks) for marks in marks_by_kind if len(marks) % 2)


def is_part_of_quotation(text: str) -> bool:
    """Whether a text opens or closes a quotation and does not do both, in single quotes, too.

    text: the text."""
    ends = _SINGLE_OPENING.match(text), _SINGLE_CLOSING.search(text)
    return bool(unbalanced_quotes(text)) or (ends[0] is None) != (ends[1] is None)
