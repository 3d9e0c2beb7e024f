"""Where a sentence ends in a text: what several filters go by."""

from __future__ import annotations

import re
from functools import cache

from tmnmt.languages import listed

# A sentence ends before white space and a capital; not at a full stop behind what may be short for
# something: a single letter, a name's first three, or what has a full stop in it.
_END = re.compile(r"[.!?…][\"'”’»)\]]*\s+(?=[\"'“‘«(\[]?([^\W\d_]))")
_WORD = re.compile(r"\w+")
WORDS = 2  # a sentence has at least so many


def sentences(text: str) -> list[str]:
    """The sentences of a text where it is plain that one ends. Nothing but white space between them
    is lost.

    text: the text, in a language with capitals."""
    result, start = [], 0
    for end in _END.finditer(text):
        sentence, rest = text[start : end.start()], text[end.end() :]
        ends = end[1].isupper() and not (end[0][0] == "." and is_abbreviated(sentence))
        if ends and min(words(sentence), words(rest)) >= WORDS:
            result.append(text[start : end.end()].strip())
            start = end.end()
    return [*result, text[start:].strip()]


def words(text: str) -> int:
    """How many words and numbers a text has.

    text: the text."""
    return len(_WORD.findall(text))


def is_abbreviated(text: str) -> bool:
    """Whether a text ends in what may be an abbreviation.

    text: the text, without the full stop behind it."""
    return _abbreviation().search(text) is not None


@cache
def _abbreviation() -> re.Pattern[str]:
    titles = "|".join(listed("titles"))
    return re.compile(rf"(?:^|[^\w.])(?:\w|[A-Z]\w{{1,2}}|\w+(?:\.\w+)+|{titles})$")
