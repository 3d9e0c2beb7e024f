"""Control characters and line breaks, which no model has learned: a text is on one line."""

from __future__ import annotations

from tmnmt.codes.record import Source, Text, plain_of
from tmnmt.filters.contract import Filter, ModelOutput, Undo
from tmnmt.formats.clean import clean, legible
from tmnmt.formats.clean_codes import clean_codes


class ControlCharacters(Filter):
    """Takes control characters out, and puts the text on one line."""

    level = "text"
    is_for_people = True

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        if isinstance(source, Text):
            return clean_codes(source)[0], None
        return clean(source)[0], None


class IllegibleSigns(Filter):
    """Takes signs out of what the model wrote that stand for bytes which are no character."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        return source, Legible(plain_of(source))


class Legible(Undo):
    """Takes illegible signs out of a target."""

    def __init__(self, source: str) -> None:
        """source: the source; the signs that it has may stay."""
        self._source = source

    def restore_piece(self, output: ModelOutput) -> str:
        # single bytes could spell a line end
        return legible(clean(output.text)[0], output.model_text).strip()

    def display(self, text: str) -> str:
        return legible(text, self._source)
