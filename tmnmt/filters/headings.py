"""Headings with capitals at the beginning of words: a model that doubts one reads it as what stands
within a sentence, too.

    Minister of Canada        the heading
    minister of Canada        what the model may read"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tmnmt.codes.record import Source, Text, plain_of
from tmnmt.filters.contract import Filter, ModelOutput, Reading, Undo
from tmnmt.filters.letters import WORD, capitalised, known_form

MAX_WORDS = 12  # words
_NO_HEADING = ".!?…。！？:;,"  # how none ends


class Headings(Filter):
    """Reads a heading in the letters that it would have within a sentence, too."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        codes = source.codes if isinstance(source, Text) else ()
        if any(code.covers or code.kind == "placeholder" for code in codes):
            return source, None
        recased = within_sentence(plain_of(source).strip(), self.reader.size)
        return source, None if recased is None else HeadingUndo(recased)


class HeadingUndo(Undo):
    """Offers the other reading; and no heading ends as a clause does."""

    trailing = frozenset(":;,")

    def __init__(self, recased: str) -> None:
        """recased: the heading as the model may read it."""
        self.reading = Reading(recased, FirstCapital())


class FirstCapital(Undo):
    """Gives a translation a capital at its beginning."""

    def restore_piece(self, output: ModelOutput) -> str:
        return capitalised(output.text)

    def restore_tokens(self, tokens: Sequence[str]) -> Sequence[str]:
        rest = tokens[0].removeprefix("▁") if tokens else ""
        return [tokens[0].removesuffix(rest) + capitalised(rest), *tokens[1:]] if rest else tokens


def within_sentence(text: str, size: Callable[[str], int]) -> str | None:
    """A heading in the letters that it would have within a sentence: words in small letters but for
    names, which are of least size as they stand, and words in capitals throughout. None for what is
    no heading: what begins with a small letter, ends like a sentence or a clause, or is longer.

    text: the heading.
    size: gives the size of a word for the model."""
    if not text[:1].isupper() or text[-1:] in _NO_HEADING or len(text.split()) > MAX_WORDS:
        return None
    recased = WORD.sub(
        lambda word: word[0] if word[0][1:].isupper() else known_form(word[0], size), text
    )
    return recased if recased != text else None
