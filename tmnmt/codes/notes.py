"""Spans without letters that are no words of a sentence, such as the number of a footnote.

The permit<sup>1</sup> is valid.     a note
H<sub>2</sub>O is a substance.       a part of a word
The fee is <b>250</b> dollars.       a word"""

from __future__ import annotations

from tmnmt.codes.breaks import line_ends
from tmnmt.codes.record import Code, Text, pairs

_ENDS = ".,;:!?…)]»”’\"'。！？，；："  # what a note may stand behind, as behind a word


def notes(text: Text) -> dict[int, int]:
    """The notes of a text: for the number of the code that opens each, that of the code that closes
    it. They have no codes inside.

    text: the text."""
    return {
        number: closing
        for number, closing in pairs(text.codes).items()
        if closing == number + 1 and _is_note(text, number)
    }


def content_of(text: Text, number: int) -> str:
    """What stands in a span without codes.

    text: the text.
    number: the number of the code that opens it."""
    opening, closing = text.codes[number : number + 2]
    return text.plain[_end(opening) : closing.at]


def _is_note(text: Text, number: int) -> bool:
    content = content_of(text, number)
    if not content or any(map(str.isalpha, content)):
        return False
    if content.isspace():
        return True
    opening, closing = text.codes[number : number + 2]
    start, following = opening.at, text.plain[_end(closing) :]
    if following[:1].isalnum() and not (_begins_line(text, number) and following[0].isupper()):
        return False
    if _begins_line(text, number):
        return following.lstrip()[:1].isupper()
    preceding = text.plain[start - 1]
    if preceding in ".," and text.plain[start - 2 : start - 1].isdigit() and content[0].isdigit():
        ends_sentence = following[:1].isspace() and following.lstrip()[:1].isupper()
        return preceding == "." and (ends_sentence or not following.strip())
    return preceding.isalnum() or preceding in _ENDS


def _begins_line(text: Text, number: int) -> bool:
    """Whether no text of the same line stands before a code."""
    code = text.codes[number]
    if not text.plain[: code.at].strip():
        return True
    if number == 0 or _end(text.codes[number - 1]) != code.at:
        return False
    previous = text.codes[number - 1]
    return line_ends(previous, text.plain[previous.at : _end(previous)]) > 0


def _end(code: Code) -> int:
    return code.at + code.covers
