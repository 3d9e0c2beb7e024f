"""How a translation ends: as its source ends, with the same mark or with none.

A model of law has learned that much goes on behind a colon, so it writes "le bâtiment, selon le cas
:" for "the vessel". A phrase without any mark is translated without one, and a few words without
a bracket where they have none: a student adds "(em inglês)" to what it does not know."""

from __future__ import annotations

from tmnmt.codes.record import Source
from tmnmt.ends import PHRASE, is_phrase, marks_of, mended_end
from tmnmt.filters.contract import Filter, ModelOutput, Undo

_BRACKETS = frozenset("([{（［")


class Ends(Filter, Undo):
    """Ends a translation with the mark of its source, or with none."""

    def prepare(self, source: Source) -> tuple[Source, Undo | None]:
        return source, self

    def barred(self, model_text: str) -> frozenset[str]:
        reader = self.reader
        is_short = len(model_text.split()) <= PHRASE and _BRACKETS.isdisjoint(model_text)
        brackets = _BRACKETS if is_short else frozenset[str]()
        is_marked = not is_phrase(model_text, reader.lang)
        return brackets if is_marked else brackets | marks_of(reader.tgt_lang).of_clauses

    def restore_piece(self, output: ModelOutput) -> str:
        reader = self.reader
        if output.is_typed:
            return output.text
        return mended_end(output.model_text, output.text, reader.lang, reader.tgt_lang)
