"""Several sentences in one text: a model may lose one of them. Then they are translated one by
one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from tmnmt.codes.record import Source, plain_of
from tmnmt.filters.contract import Filter, Undo
from tmnmt.languages import listed

# A sentence ends before white space and a capital; not at a full stop behind what may be short for
# something: a single letter, a name's first three, or what has a full stop in it.
_END = re.compile(r"[.!?…][\"'”’»)\]]*\s+(?=[\"'“‘«(\[]?([^\W\d_]))")
_WORD = re.compile(r"\w+")
_WORDS = 2  # a sentence has at least so many


class LostSentences(Filter):
    """Translates sentences one by one where the translation of all has fewer."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        parts = sentences(plain_of(source))
        return source, OneByOne(parts) if len(parts) > 1 else None


class OneByOne(Undo):
    """Counts the sentences of what was written."""

    def __init__(self, parts: Sequence[str]) -> None:
        self.parts = parts

    def retry(self, output: str) -> Sequence[str]:
        return self.parts if len(sentences(output)) < len(self.parts) else ()


def sentences(text: str) -> list[str]:
    """The sentences of a text, in a language with capitals, where it is plain that one ends.
    Nothing but white space between them is lost."""
    result, start = [], 0
    for end in _END.finditer(text):
        sentence, rest = text[start : end.start()], text[end.end() :]
        ends = end[1].isupper() and not (end[0][0] == "." and _abbreviation().search(sentence))
        if ends and min(len(_WORD.findall(sentence)), len(_WORD.findall(rest))) >= _WORDS:
            result.append(text[start : end.end()].strip())
            start = end.end()
    return [*result, text[start:].strip()]


@cache
def _abbreviation() -> re.Pattern[str]:
    titles = "|".join(listed("titles"))
    return re.compile(rf"(?:^|[^\w.])(?:\w|[A-Z]\w{{1,2}}|\w+(?:\.\w+)+|{titles})$")
