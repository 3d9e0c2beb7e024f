"""`clean` for a text with codes: they keep their places, and the white space that it changes
becomes codes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tmnmt.codes.record import Code, Part, Text, join_parts
from tmnmt.formats.clean import UNWANTED, clean

# words with single spaces between them stay as they are
_PIECE = re.compile(rf"[\s{UNWANTED}]+|[^\s{UNWANTED}]++(?: [^\s{UNWANTED}]++)*+")
_WORDLESS = re.compile(rf"[\s{UNWANTED}]*")
_ILLEGAL = re.compile(rf"(?![\t\n\r])[{UNWANTED}]")


def clean_codes(text: Text) -> tuple[Text, bool]:
    """A text whose plain text is on one line, stripped and without control characters, and whether
    other control characters than tabs and line ends were in it. A "blank" stands for white space
    that was changed or stripped, so that `written` is as before but for those control characters.

    text: the text."""
    plain, taken_out = clean(text.plain)
    if plain == text.plain:
        return text, False
    parts, run = list[Part](), list[Part]()
    for part in _pieces(text):
        if _WORDLESS.fullmatch(part if isinstance(part, str) else part[1]):
            run.append(part)
            continue
        parts += _run(run, inside=bool(parts))
        parts.append(part)
        run = []
    return join_parts([*parts, *_run(run, inside=False)]), taken_out


def _pieces(text: Text) -> Iterator[Part]:
    """Words, other white space and codes, each by itself; what a code covers is clean."""
    for part in text.parts():
        if isinstance(part, str):
            yield from _PIECE.findall(part)
        elif _WORDLESS.fullmatch(part[1]):
            yield part
        else:
            yield part[0], between_words(part[1])


def between_words(text: str) -> str:
    """A text as `clean` gives it where it stands between others: blanks at its ends stay.

    text: the text."""
    return clean(f"x{text}x")[0][1:-1]


def _run(run: list[Part], inside: bool) -> Iterator[Part]:
    """White space and codes between words, or at an end. What the plain text has there stands for
    the first of them that had white space."""
    raw = "".join(part if isinstance(part, str) else part[1] for part in run)
    pending = between_words(raw) if inside else ""
    for part in run:
        content = part if isinstance(part, str) else part[1]
        spacing, pending = (pending, "") if content else ("", pending)
        if not isinstance(part, str):
            yield part[0], spacing
        elif (blank := _ILLEGAL.sub("", part)) and blank != spacing:
            yield Code(0, "blank", blank), spacing
        elif spacing:
            yield spacing
